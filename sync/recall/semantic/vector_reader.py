"""The vectors of lines and records, for rooms that show them; none of them needs numpy for it."""

from array import array
from collections.abc import Mapping, Sequence
from struct import unpack_from
from typing import Final

from sync.db.engine import Database, Transaction
from sync.log import store as log_store
from sync.log.projections.registry import RECALL
from sync.recall.index import store, vector_store
from sync.runtime.change_counter import ChangeCounter

SCALE_BYTES: Final = 4
DIGITS: Final = 5  # after the point; a number is known to a hundredth of the vector's largest


class VectorReader:
    """One profile's vectors by the ids of what they tell. `changed` is set where they may be others than before."""

    def __init__(self, database: Database, changed: ChangeCounter) -> None:
        self.changed = changed
        self._database = database

    async def vector_numbers(self, text_positions: Mapping[str, int]) -> tuple[str, dict[str, int]]:
        """The model, and for each entry that has a vector a number; another vector has another number.

        `said_at`: up to which position of the log the index must have come to tell what the entry says now. An entry
        that it is behind for has none. Raises StorageError.
        """

        def looking(connection: Transaction) -> tuple[str, dict[str, int]]:
            if not store.is_created(connection):
                return "", {}
            mark = log_store.watermark(connection, RECALL.name)
            told = [entry_id for entry_id, position in text_positions.items() if position <= mark]
            return vector_store.embedding_state(connection).model, vector_store.item_ids_of_entries(connection, told)

        return await self._database.read(looking)

    async def read_vectors(self, numbers: Sequence[int]) -> dict[int, tuple[str, list[float]]]:
        """(text, vector) by the numbers that `known` gave; what has gone since is left out. Raises StorageError."""
        found = await self._database.read(lambda connection: vector_store.texts_and_vectors(connection, numbers))
        return {number: (text, _dequantize(vector)) for number, (text, vector) in found.items()}


def _dequantize(vector: bytes) -> list[float]:
    """A vector as it is stored (`quantize`) → its numbers."""
    (scale,) = unpack_from("<f", vector)
    return [round(code * scale, DIGITS) for code in array("b", vector[SCALE_BYTES:])]
