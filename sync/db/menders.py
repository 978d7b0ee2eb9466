"""What is run when a transaction fails on a row: works that drop the derived rows which they cannot understand."""

import logging
from collections import Counter
from collections.abc import Callable

from sqlalchemy import Connection

from sync.db.failures import may_be_a_bad_row
from sync.errors import StorageError

log = logging.getLogger(__name__)


class Menders:
    """Those of one database. `mended`: how many rows of which table they dropped."""

    def __init__(self) -> None:
        self.works: list[Callable[[Connection], Counter[str]]] = []
        self.mended: Counter[str] = Counter()
        self._in_vain = False  # nothing was found to mend: what fails now fails for another reason

    def run(self, connection: Connection) -> Counter[str]:
        """All of them, in one transaction."""
        return sum((work(connection) for work in self.works), Counter())

    def note(self, dropped: Counter[str]) -> Counter[str]:
        """What was dropped, once that is committed."""
        if dropped:
            self.mended += dropped
            log.error("rows of derived data could not be understood and were dropped: %s", dict(dropped))
        return dropped

    def may_help(self, error: Exception) -> bool:
        """Whether a row may be the reason of an error."""
        return bool(self.works) and not self._in_vain and may_be_a_bad_row(error)

    def have_helped(self, error: Exception, dropped: Counter[str]) -> bool:
        """Whether rows are gone that may have been the reason."""
        self._in_vain = not dropped and not isinstance(error, StorageError)
        return bool(dropped)
