"""What fails and is tried again every few seconds: logged when it is new, not at every try."""

import logging
from collections.abc import Collection, Hashable


class LogOnce:
    """The troubles of one place in the program that were logged and are not over, by what they are with."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._reported: dict[Hashable, str] = {}

    def report(self, key: Hashable, message: str, *, level: int = logging.WARNING) -> None:
        """Log a trouble; at DEBUG where it is the one that was met there last and is not over."""
        self._log.log(logging.DEBUG if self._reported.get(key) == message else level, "%s", message)
        self._reported[key] = message

    def clear(self, key: Hashable) -> None:
        """It went well: the same trouble would be news."""
        self._reported.pop(key, None)

    def retain(self, keys: Collection[Hashable]) -> None:
        """Everything is over except what there was trouble with in the last round."""
        self._reported = {what: told for what, told in self._reported.items() if what in keys}
