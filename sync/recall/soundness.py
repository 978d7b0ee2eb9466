"""Whether the tables of the index can be understood, row by row, and how those go that cannot."""

from typing import Any, Final

from sqlalchemy import Connection

from sync.db.failures import of_damage

# By table, the types that Python gives to the columns, in order.
_TYPES: Final[dict[str, tuple[type | tuple[type, ...], ...]]] = {
    "recall_items": (int, int, int, (str, type(None)), str, str, int, int, (float, int), str, str),
    "recall_totals": (int, int, int),
    "recall_vectors": (int, int, bytes),
    "recall_model": (int, str, int, int),
}
_ONE_ROW: Final = ("recall_totals", "recall_model")
_WORDS: Final = "insert into recall_words (recall_words) values ('integrity-check')"
_SHADOWS: Final = "select name from sqlite_master where name like 'recall\\_words\\_%' escape '\\'"


def drop_words(connection: Connection) -> None:
    """Drop the word index, also one that SQLite cannot open, and therefore does not drop."""
    driver: Any = connection.connection.driver_connection
    try:
        driver.execute("drop table if exists recall_words")
    except of_damage():
        driver.execute("pragma writable_schema = on")
        driver.execute("delete from sqlite_master where name = 'recall_words'")
        driver.execute("pragma writable_schema = reset")
        for (name,) in driver.execute(_SHADOWS).fetchall():
            driver.execute(f"drop table {name}")


def is_sound(connection: Connection) -> bool:
    """Look at every row, and at the structure of the word index."""
    driver: Any = connection.connection.driver_connection
    try:
        driver.execute(_WORDS)
        return all(_is_sound(driver, table) for table in _TYPES)
    except of_damage():
        return False


def _is_sound(driver: Any, table: str) -> bool:
    count, row = 0, (0,)
    for row in driver.execute(f"select * from {table}"):  # noqa: S608 - names of ours
        if not all(map(isinstance, row, _TYPES[table])):
            return False
        count += 1
    return table not in _ONE_ROW or (count, row[0]) == (1, 1)
