"""SQL of the vectors. Every function runs inside a transaction of the caller.

The tables are created and dropped with those of the items. Items are embedded in the order of their ids, and
`embedded_through` says how far. A vector is added only if its item still exists and that number has not changed.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import msgspec

from sync.db.engine import Transaction

CHUNK_VALUES: Final = 500  # parameters of one statement
TABLE_NAMES: Final = ("recall_vectors", "recall_model")


class EmbeddingState(msgspec.Struct, frozen=True):
    """The model, the last embedded item, and the number of vectors removed so far."""

    model: str
    embedded_through: int
    removed_count: int


class VectorRow(msgspec.Struct, frozen=True):
    """An item's vector; `is_dense`: of a text in a script without spaces."""

    item_id: int
    is_dense: bool
    vector: bytes


class PendingEmbeddings(msgspec.Struct, frozen=True):
    """The id and text of the next items to embed, and the state before them."""

    state: EmbeddingState
    items: tuple[tuple[int, str], ...]


def embedding_state(connection: Transaction) -> EmbeddingState:
    row = connection.exec_driver_sql("select name, through, removed from recall_model").one()
    return EmbeddingState(row.name, row.through, row.removed)


def start_model(
    connection: Transaction, model: str, limit: int, hidden_kinds: Collection[str] = ()
) -> PendingEmbeddings:
    """Delete all vectors and begin again with another model; its first pending items."""
    connection.exec_driver_sql("delete from recall_vectors")
    connection.exec_driver_sql("update recall_model set name = ?, through = 0, removed = removed + 1", (model,))
    return pending_embeddings(connection, limit, hidden_kinds)


def pending_embeddings(connection: Transaction, limit: int, hidden_kinds: Collection[str] = ()) -> PendingEmbeddings:
    """The next items without a vector. Those of `hidden_kinds` come without their text, which must not be sent."""
    state = embedding_state(connection)
    rows = connection.exec_driver_sql(
        "select id, kind, text from recall_items where id > ? order by id limit ?", (state.embedded_through, limit)
    )
    return PendingEmbeddings(state, tuple((row.id, "" if row.kind in hidden_kinds else row.text) for row in rows))


def is_complete(connection: Transaction, embedded_through: int) -> bool:
    return (
        connection.exec_driver_sql("select 1 from recall_items where id > ? limit 1", (embedded_through,)).first()
        is None
    )


def add_vectors(connection: Transaction, expected_state: EmbeddingState, rows: Sequence[VectorRow]) -> bool:
    """Add the next vectors; False if another process has added some or the model has changed."""
    state = embedding_state(connection)
    if (state.model, state.embedded_through) != (expected_state.model, expected_state.embedded_through):
        return False
    connection.exec_driver_sql(
        "insert into recall_vectors select ?, ?, ? where exists (select 1 from recall_items where id = ?)",
        [(row.item_id, row.is_dense, row.vector, row.item_id) for row in rows],
    )
    connection.exec_driver_sql("update recall_model set through = ?", (max(row.item_id for row in rows),))
    return True


def remove_vectors(connection: Transaction, item_ids: Sequence[int]) -> None:
    """Delete the vectors of items."""
    if not item_ids:
        return
    marks = ", ".join("?" * len(item_ids))
    result = connection.exec_driver_sql(f"delete from recall_vectors where item_id in ({marks})", tuple(item_ids))
    if result.rowcount:
        connection.exec_driver_sql("update recall_model set removed = removed + ?", (result.rowcount,))


def vectors_after(connection: Transaction, item_id: int) -> list[VectorRow]:
    """The vectors of later items, in order."""
    rows = connection.exec_driver_sql(
        "select item_id, dense, vector from recall_vectors where item_id > ? order by item_id", (item_id,)
    )
    return [VectorRow(row.item_id, bool(row.dense), row.vector) for row in rows]


def vector_item_ids(connection: Transaction) -> list[int]:
    item_ids: Any = connection.exec_driver_sql("select item_id from recall_vectors order by item_id").scalars()
    return list(item_ids)


def item_ids_of_entries(connection: Transaction, entry_ids: Sequence[str]) -> dict[str, int]:
    """The items of entries and records by entry id, without those that have no vector."""
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
    """Items' texts and vectors."""
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
    for start in range(0, len(values), CHUNK_VALUES):
        yield tuple(values[start : start + CHUNK_VALUES])
