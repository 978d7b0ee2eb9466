"""What is run when a transaction fails on a row: works that drop the derived rows which they cannot understand."""

import logging
from collections import Counter
from collections.abc import Callable

from sqlalchemy import Connection

from sync.db.sqlite_errors import may_be_bad_row
from sync.errors import StorageError

log = logging.getLogger(__name__)


class RowRepairs:
    """Those of one database. `mended`: how many rows of which table they dropped."""

    def __init__(self) -> None:
        self.functions: list[Callable[[Connection], Counter[str]]] = []
        self.dropped_rows: Counter[str] = Counter()
        self._found_nothing = False  # nothing was found to mend: what fails now fails for another reason

    def run(self, connection: Connection) -> Counter[str]:
        """All of them, in one transaction."""
        return sum((work(connection) for work in self.functions), Counter())

    def report_dropped(self, dropped: Counter[str]) -> Counter[str]:
        """What was dropped, once that is committed."""
        if dropped:
            self.dropped_rows += dropped
            log.error("rows of derived data could not be understood and were dropped: %s", dict(dropped))
        return dropped

    def may_help(self, error: Exception) -> bool:
        """Whether a row may be the reason of an error."""
        return bool(self.functions) and not self._found_nothing and may_be_bad_row(error)

    def have_helped(self, error: Exception, dropped: Counter[str]) -> bool:
        """Whether rows are gone that may have been the reason."""
        self._found_nothing = not dropped and not isinstance(error, StorageError)
        return bool(dropped)
