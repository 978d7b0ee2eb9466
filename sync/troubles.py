"""What fails and is tried again every few seconds: logged when it is new, not at every try."""

import logging
from collections.abc import Collection, Hashable


class Troubles:
    """The troubles of one place in the program that were logged and are not over, by what they are with."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._met: dict[Hashable, str] = {}

    def met(self, what: Hashable, told: str, *, level: int = logging.WARNING) -> None:
        """Log a trouble; at DEBUG where it is the one that was met there last and is not over."""
        self._log.log(logging.DEBUG if self._met.get(what) == told else level, "%s", told)
        self._met[what] = told

    def over(self, what: Hashable) -> None:
        """It went well: the same trouble would be news."""
        self._met.pop(what, None)

    def end_but(self, lasting: Collection[Hashable]) -> None:
        """Everything is over except what there was trouble with in the last round."""
        self._met = {what: told for what, told in self._met.items() if what in lasting}
