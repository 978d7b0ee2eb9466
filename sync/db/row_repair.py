"""Repairs to run when a transaction fails on a row: functions that drop invalid derived rows."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from sqlalchemy import Connection

from sync.db.sqlite_errors import corruption_errors, may_be_bad_row
from sync.errors import StorageError

_VALUE_TYPES: Final = {"text": str, "integer": int}

log = logging.getLogger(__name__)


class RowRepairs:
    """The repairs of one database."""

    def __init__(self) -> None:
        self.functions: list[Callable[[Connection], Counter[str]]] = []
        self.dropped_rows: Counter[str] = Counter()
        self._found_nothing = False  # nothing was repaired: a later failure has another reason

    def run(self, connection: Connection) -> Counter[str]:
        """Run all repairs in one transaction."""
        return sum((work(connection) for work in self.functions), Counter())

    def report_dropped(self, dropped: Counter[str]) -> Counter[str]:
        """Report the dropped rows after the commit."""
        if dropped:
            self.dropped_rows += dropped
            log.error("rows of derived data could not be understood and were dropped: %s", dict(dropped))
        return dropped

    def may_help(self, error: Exception) -> bool:
        """Whether an invalid row may have caused the error."""
        return bool(self.functions) and not self._found_nothing and may_be_bad_row(error)

    def have_helped(self, error: Exception, dropped: Counter[str]) -> bool:
        """Whether rows were dropped that may have caused the error."""
        self._found_nothing = not dropped and not isinstance(error, StorageError)
        return bool(dropped)


def has_valid_rows(connection: Connection, tables: Iterable[str]) -> bool:
    """Whether every value in these tables of `text` and `integer` columns can be read and has its column's type."""
    driver: Any = connection.connection.driver_connection
    try:
        return all(_has_valid_rows(driver, table) for table in tables)
    except corruption_errors():
        return False


def _has_valid_rows(driver: Any, table: str) -> bool:
    columns = driver.execute(f"pragma table_info({table})").fetchall()
    types = tuple(
        (_VALUE_TYPES[kind.lower()], *(() if required or key else (type(None),)))
        for _, _, kind, required, _, key in columns
    )
    rows = driver.execute(f"select * from {table}")  # noqa: S608 - names of ours
    return all(all(map(isinstance, row, types)) for row in rows)
