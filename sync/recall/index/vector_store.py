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

from sync.db.engine import Transaction

TABLES: Final = (
    "create table recall_vectors (item_id integer primary key, dense integer not null, vector blob not null)",
    """create table recall_model (
      one integer primary key check (one = 1), name text not null, through integer not null, removed integer not null
    )""",
    "insert into recall_model values (1, '', 0, abs(random() % 1000000007))",  # no index counts on from another
)
CHUNK_VALUES: Final = 500  # values of one statement
TABLE_NAMES: Final = ("recall_vectors", "recall_model")


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """By which model vectors are made, up to which item; `removed` counts those that were taken away."""

    model: str
    embedded_through: int
    removed_count: int


@dataclass(frozen=True, slots=True)
class VectorRow:
    """A vector of an item; `dense`: of a text in a script without spaces."""

    item_id: int
    is_dense: bool
    vector: bytes


@dataclass(frozen=True, slots=True)
class PendingEmbeddings:
    """(id, text) of the next items without a vector, and what is made before them."""

    state: EmbeddingState
    items: tuple[tuple[int, str], ...]


def embedding_state(connection: Transaction) -> EmbeddingState:
    row = connection.exec_driver_sql("select name, through, removed from recall_model").one()
    return EmbeddingState(row.name, row.through, row.removed)


def start_model(connection: Transaction, model: str, limit: int) -> PendingEmbeddings:
    """Another model: its vectors from the first item on, which are waiting then."""
    connection.exec_driver_sql("delete from recall_vectors")
    connection.exec_driver_sql("update recall_model set name = ?, through = 0, removed = removed + 1", (model,))
    return pending_embeddings(connection, limit)


def pending_embeddings(connection: Transaction, limit: int) -> PendingEmbeddings:
    now = embedding_state(connection)
    found = connection.exec_driver_sql(
        "select id, text from recall_items where id > ? order by id limit ?", (now.embedded_through, limit)
    )
    return PendingEmbeddings(now, tuple((row.id, row.text) for row in found))


def is_complete(connection: Transaction, embedded_through: int) -> bool:
    return (
        connection.exec_driver_sql("select 1 from recall_items where id > ? limit 1", (embedded_through,)).first()
        is None
    )


def add_vectors(connection: Transaction, expected_state: EmbeddingState, rows: Sequence[VectorRow]) -> bool:
    """Add the next vectors; False where the mark has moved or the model has changed since."""
    now = embedding_state(connection)
    if (now.model, now.embedded_through) != (expected_state.model, expected_state.embedded_through):
        return False
    connection.exec_driver_sql(
        "insert into recall_vectors select ?, ?, ? where exists (select 1 from recall_items where id = ?)",
        [(row.item_id, row.is_dense, row.vector, row.item_id) for row in rows],
    )
    connection.exec_driver_sql("update recall_model set through = ?", (max(row.item_id for row in rows),))
    return True


def remove_vectors(connection: Transaction, item_ids: Sequence[int]) -> None:
    """Take the vectors of items away that go."""
    if not item_ids:
        return
    places = ", ".join("?" * len(item_ids))
    gone = connection.exec_driver_sql(f"delete from recall_vectors where item_id in ({places})", tuple(item_ids))
    if gone.rowcount:
        connection.exec_driver_sql("update recall_model set removed = removed + ?", (gone.rowcount,))


def vectors_after(connection: Transaction, item_id: int) -> list[VectorRow]:
    """The vectors of later items, in order."""
    found = connection.exec_driver_sql(
        "select item_id, dense, vector from recall_vectors where item_id > ? order by item_id", (item_id,)
    )
    return [VectorRow(row.item_id, bool(row.dense), row.vector) for row in found]


def vector_item_ids(connection: Transaction) -> list[int]:
    found: Any = connection.exec_driver_sql("select item_id from recall_vectors order by item_id").scalars()
    return list(found)


def item_ids_of_entries(connection: Transaction, entry_ids: Sequence[str]) -> dict[str, int]:
    """The items of lines and records by their own ids; those without a vector are left out."""
    return {
        row.entry_id: row.id
        for some in _chunks(entry_ids)
        for row in connection.exec_driver_sql(
            "select i.entry_id, i.id from recall_items i join recall_vectors v on v.item_id = i.id"
            f" where i.entry_id in ({', '.join('?' * len(some))})",
            some,
        )
    }


def texts_and_vectors(connection: Transaction, item_ids: Sequence[int]) -> dict[int, tuple[str, bytes]]:
    """(text, vector) of items."""
    return {
        row.id: (row.text, row.vector)
        for some in _chunks(item_ids)
        for row in connection.exec_driver_sql(
            "select i.id, i.text, v.vector from recall_items i join recall_vectors v on v.item_id = i.id"
            f" where i.id in ({', '.join('?' * len(some))})",
            some,
        )
    }


def _chunks(values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """As many as one statement takes."""
    for start in range(0, len(values), CHUNK_VALUES):
        yield tuple(values[start : start + CHUNK_VALUES])
