"""Check the index's tables row by row, and drop a term index that is damaged."""

from typing import Any, Final

from sync.db.engine import Transaction
from sync.db.sqlite_errors import corruption_errors

# By table, the Python types of the columns.
_COLUMN_TYPES: Final[dict[str, tuple[type | tuple[type, ...], ...]]] = {
    "recall_items": (int, int, int, (str, type(None)), str, str, int, int, (float, int), str, str),
    "recall_totals": (int, int, int),
    "recall_vectors": (int, int, bytes),
    "recall_model": (int, str, int, int),
}
_SINGLE_ROW_TABLES: Final = ("recall_totals", "recall_model")
_CHECK_TERM_INDEX: Final = "insert into recall_words (recall_words) values ('integrity-check')"
_SHADOW_TABLES: Final = "select name from sqlite_master where name like 'recall\\_words\\_%' escape '\\'"


def drop_term_index(connection: Transaction) -> None:
    """Drop the term index, even if SQLite cannot open and therefore not drop it."""
    driver: Any = connection.connection.driver_connection
    try:
        driver.execute("drop table if exists recall_words")
    except corruption_errors():
        driver.execute("pragma writable_schema = on")
        driver.execute("delete from sqlite_master where name = 'recall_words'")
        driver.execute("pragma writable_schema = reset")
        for (name,) in driver.execute(_SHADOW_TABLES).fetchall():
            driver.execute(f"drop table {name}")


def is_intact(connection: Transaction) -> bool:
    """Check every row, and the structure of the term index."""
    driver: Any = connection.connection.driver_connection
    try:
        driver.execute(_CHECK_TERM_INDEX)
        return all(_is_table_intact(driver, table) for table in _COLUMN_TYPES)
    except corruption_errors():
        return False


def _is_table_intact(driver: Any, table: str) -> bool:
    count, row = 0, (0,)
    for row in driver.execute(f"select * from {table}"):  # noqa: S608 - our own table names
        if not all(map(isinstance, row, _COLUMN_TYPES[table])):
            return False
        count += 1
    return table not in _SINGLE_ROW_TABLES or (count, row[0]) == (1, 1)
