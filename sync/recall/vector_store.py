"""The vectors' SQL, beside the items they belong to. Every function runs inside a transaction of the caller.

Decisions
    The tables are made and dropped with those of the items (`store.create`): an index that is built anew has its
    vectors made anew.
    Items are embedded in the order of their ids, and one mark says how far: what waits is what stands behind it. A
    vector is only added while its item is there and nobody else has moved the mark, so what is forgotten or edited
    meanwhile gets none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

TABLES: Final = (
    "create table recall_vectors (item_id integer primary key, dense integer not null, vector blob not null)",
    """create table recall_model (
      one integer primary key check (one = 1), name text not null, through integer not null, removed integer not null
    )""",
    "insert into recall_model values (1, '', 0, abs(random() % 1000000007))",  # no index counts on from another
)
PORTION: Final = 500  # values of one statement
NAMES: Final = ("recall_vectors", "recall_model")


@dataclass(frozen=True, slots=True)
class Made:
    """By which model vectors are made, up to which item; `removed` counts those that were taken away."""

    model: str
    through: int
    removed: int


@dataclass(frozen=True, slots=True)
class Row:
    """A vector of an item; `dense`: of a text in a script without spaces."""

    item_id: int
    dense: bool
    vector: bytes


@dataclass(frozen=True, slots=True)
class Waiting:
    """(id, text) of the next items without a vector, and what is made before them."""

    made: Made
    items: tuple[tuple[int, str], ...]


def made(connection: Connection) -> Made:
    row = connection.exec_driver_sql("select name, through, removed from recall_model").one()
    return Made(row.name, row.through, row.removed)


def begin(connection: Connection, model: str, limit: int) -> Waiting:
    """Another model: its vectors from the first item on, which are waiting then."""
    connection.exec_driver_sql("delete from recall_vectors")
    connection.exec_driver_sql("update recall_model set name = ?, through = 0, removed = removed + 1", (model,))
    return waiting(connection, limit)


def waiting(connection: Connection, limit: int) -> Waiting:
    now = made(connection)
    found = connection.exec_driver_sql(
        "select id, text from recall_items where id > ? order by id limit ?", (now.through, limit)
    )
    return Waiting(now, tuple((row.id, row.text) for row in found))


def is_complete(connection: Connection, through: int) -> bool:
    return connection.exec_driver_sql("select 1 from recall_items where id > ? limit 1", (through,)).first() is None


def add(connection: Connection, before: Made, rows: Sequence[Row]) -> bool:
    """Add the next vectors; False where the mark has moved or the model has changed since."""
    now = made(connection)
    if (now.model, now.through) != (before.model, before.through):
        return False
    connection.exec_driver_sql(
        "insert into recall_vectors select ?, ?, ? where exists (select 1 from recall_items where id = ?)",
        [(row.item_id, row.dense, row.vector, row.item_id) for row in rows],
    )
    connection.exec_driver_sql("update recall_model set through = ?", (max(row.item_id for row in rows),))
    return True


def remove(connection: Connection, item_ids: Sequence[int]) -> None:
    """Take the vectors of items away that go."""
    if not item_ids:
        return
    places = ", ".join("?" * len(item_ids))
    gone = connection.exec_driver_sql(f"delete from recall_vectors where item_id in ({places})", tuple(item_ids))
    if gone.rowcount:
        connection.exec_driver_sql("update recall_model set removed = removed + ?", (gone.rowcount,))


def after(connection: Connection, item_id: int) -> list[Row]:
    """The vectors of later items, in order."""
    found = connection.exec_driver_sql(
        "select item_id, dense, vector from recall_vectors where item_id > ? order by item_id", (item_id,)
    )
    return [Row(row.item_id, bool(row.dense), row.vector) for row in found]


def ids(connection: Connection) -> list[int]:
    found: Any = connection.exec_driver_sql("select item_id from recall_vectors order by item_id").scalars()
    return list(found)


def of_entries(connection: Connection, entry_ids: Sequence[str]) -> dict[str, int]:
    """The items of lines and records by their own ids; those without a vector are left out."""
    return {
        row.entry_id: row.id
        for some in _portions(entry_ids)
        for row in connection.exec_driver_sql(
            "select i.entry_id, i.id from recall_items i join recall_vectors v on v.item_id = i.id"
            f" where i.entry_id in ({', '.join('?' * len(some))})",
            some,
        )
    }


def with_texts(connection: Connection, item_ids: Sequence[int]) -> dict[int, tuple[str, bytes]]:
    """(text, vector) of items."""
    return {
        row.id: (row.text, row.vector)
        for some in _portions(item_ids)
        for row in connection.exec_driver_sql(
            "select i.id, i.text, v.vector from recall_items i join recall_vectors v on v.item_id = i.id"
            f" where i.id in ({', '.join('?' * len(some))})",
            some,
        )
    }


def _portions(values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """As many as one statement takes."""
    for start in range(0, len(values), PORTION):
        yield tuple(values[start : start + PORTION])
