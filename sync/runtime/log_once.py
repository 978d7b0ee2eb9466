"""Log a failure that is retried every few seconds once, not at every try."""

import logging
from collections.abc import Collection, Hashable


class LogOnce:
    """Lasting failures that were logged, by key."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._reported: dict[Hashable, str] = {}

    def report(self, key: Hashable, message: str, *, level: int = logging.WARNING) -> None:
        """Log a failure; at DEBUG if the same one was the last of this key."""
        self._log.log(logging.DEBUG if self._reported.get(key) == message else level, "%s", message)
        self._reported[key] = message

    def clear(self, key: Hashable) -> None:
        """The failure is over: log the same one again."""
        self._reported.pop(key, None)

    def retain(self, keys: Collection[Hashable]) -> None:
        """Clear all failures but those of `keys`."""
        self._reported = {key: message for key, message in self._reported.items() if key in keys}
