"""Whether the rows of our tables are ones that we wrote: SQLite stores any type in any column of a sound page."""

from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import Column, Connection, Integer, Table, Text

from sync.db.expected_schema import CorruptionFound
from sync.db.rebuild.corrupt_reader import Row, decode_row
from sync.db.schema import (
    KEYED_TABLES,
    MAX_KEY,
    SMALL_TABLES,
    cursors,
    table_of_watermark,
    watermarks,
    written,
)
from sync.db.sqlite_errors import corruption_errors

_VALUE_TYPES: Final = {"text": str, "integer": int}
# Each finds a row that contradicts the others.
_CONTRADICTIONS: Final = (
    """select 1 from deliveries where destination is not :to or typeof(position) <> 'integer'
    or state not in ('pending', 'acked', 'quarantined', 'dropped') or position not in (select position from events)""",
    "select 1 from quarantine where position not in (select position from events)",
    """select destination from (select destination, state, count(*) as count from deliveries group by destination, state
    union all select destination, state, -count from delivery_counts) group by destination, state
    having sum(count) is not 0""",
    """select 1 from replica where one <> 1 or next_seq <= (select max(replica_seq) from events
    where replica_id = replica.replica_id)""",
    "select 1 from accounts where one <> 1",
    "select 1 from delivery_counts where typeof(count) <> 'integer'",
)


class _TextBytes(bytes):
    """What SQLite holds as text; other bytes are a blob."""


def check_rows(driver: Any, destination: str) -> None:
    """Raise CorruptionFound if a row of a small table, or a version, is not one that we wrote."""
    plain, driver.text_factory = driver.text_factory, _TextBytes  # text that is no UTF-8 fails the driver
    try:
        for table in (*SMALL_TABLES, cursors, written):
            names = [column.name for column in table.columns]
            rows = driver.execute(f"select {', '.join(names)} from {table}")  # noqa: S608 - names of ours
            if not all(_is_valid_row(table, dict(zip(names, values, strict=True))) for values in rows):
                raise CorruptionFound(f"a row of {table.name} cannot be understood")
        for query in _CONTRADICTIONS:
            if driver.execute(query, {"to": destination} if ":to" in query else {}).fetchone():
                raise CorruptionFound("rows contradict each other")
        _check_keys(driver)
    finally:
        driver.text_factory = plain


def _check_keys(driver: Any) -> None:
    """The highest key ever given is one number, and no watermark is beyond it."""
    recorded = driver.execute("select name, seq from sqlite_sequence").fetchall()
    marks = [(bytes(name).decode(), mark) for name, mark in driver.execute("select name, position from watermarks")]
    for table, key in KEYED_TABLES:
        highest = driver.execute(f"select coalesce(max({key}), 0) from {table}").fetchone()[0]  # noqa: S608 - names of ours
        numbers = [number for name, number in recorded if name == table.name.encode()]
        if not all(map(_is_valid_number, numbers)) or len(numbers) > 1 or highest > max(numbers, default=0):
            raise CorruptionFound("the highest key that was given is not known")
        if any(mark > max(numbers, default=0) for name, mark in marks if table_of_watermark(name) is table):
            raise CorruptionFound(f"a row of {watermarks.name} is beyond every key")


def _is_valid_row(table: Table, row: Row) -> bool:
    """Whether a row has our types, and numbers that can be counted on from."""
    return all(_is_of_type(column, row[column.name]) for column in table.columns) and decode_row(table, row) is not None


def _is_of_type(column: Column[Any], value: object) -> bool:
    if value is None:
        return bool(column.nullable)
    if isinstance(column.type, Integer):
        return _is_valid_number(value)
    return isinstance(value, _TextBytes) if isinstance(column.type, Text) else type(value) is bytes


def _is_valid_number(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= MAX_KEY


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
