"""Read the vectors of entries and records, without numpy, for other packages to export."""

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
DIGITS: Final = 5  # after the point; int8 codes are not more precise


class VectorReader:
    """One profile's vectors by entry id. `changed` counts up when they may have changed."""

    def __init__(self, database: Database, changed: ChangeCounter) -> None:
        self.changed = changed
        self._database = database

    async def vector_numbers(self, text_positions: Mapping[str, int]) -> tuple[str, dict[str, int]]:
        """The model, and a number for the vector of each entry that has one; a new vector has a new number.

        `text_positions`: by entry, the position of its current text. An entry that is not indexed up to there has no
        number. Raises StorageError.
        """

        def lookup(connection: Transaction) -> tuple[str, dict[str, int]]:
            if not store.is_created(connection):
                return "", {}
            offset = log_store.watermark(connection, RECALL.name)
            ids = [entry_id for entry_id, position in text_positions.items() if position <= offset]
            return vector_store.embedding_state(connection).model, vector_store.item_ids_of_entries(connection, ids)

        return await self._database.read(lookup)

    async def read_vectors(self, numbers: Sequence[int]) -> dict[int, tuple[str, list[float]]]:
        """Texts and vectors by number, without those that no longer exist. Raises StorageError."""
        rows = await self._database.read(vector_store.texts_and_vectors, numbers)
        return {number: (text, _dequantize(vector)) for number, (text, vector) in rows.items()}


def _dequantize(vector: bytes) -> list[float]:
    """The numbers of a stored vector (see `quantize`)."""
    (scale,) = unpack_from("<f", vector)
    return [round(code * scale, DIGITS) for code in array("b", vector[SCALE_BYTES:])]
