"""The vectors of lines and records, for rooms that show them; none of them needs numpy for it."""

from array import array
from collections.abc import Mapping, Sequence
from struct import unpack_from
from typing import Final

from sqlalchemy import Connection

from sync.db.engine import Database
from sync.log import store as log_store
from sync.recall import store, vector_store
from sync.recall.view import RecallView
from sync.signals import Signal

SCALE_BYTES: Final = 4
DIGITS: Final = 5  # after the point; a number is known to a hundredth of the vector's largest


class LentVectors:
    """One profile's vectors by the ids of what they tell. `changed` is set where they may be others than before."""

    def __init__(self, database: Database, changed: Signal) -> None:
        self.changed = changed
        self._database = database

    async def known(self, said_at: Mapping[str, int]) -> tuple[str, dict[str, int]]:
        """The model, and for each entry that has a vector a number; another vector has another number.

        `said_at`: up to which position of the log the index must have come to tell what the entry says now. An entry
        that it is behind for has none. Raises StorageError.
        """

        def looking(connection: Connection) -> tuple[str, dict[str, int]]:
            if not store.exists(connection):
                return "", {}
            mark = log_store.watermark(connection, RecallView.name)
            told = [entry_id for entry_id, position in said_at.items() if position <= mark]
            return vector_store.made(connection).model, vector_store.of_entries(connection, told)

        return await self._database.read(looking)

    async def read(self, numbers: Sequence[int]) -> dict[int, tuple[str, list[float]]]:
        """(text, vector) by the numbers that `known` gave; what has gone since is left out. Raises StorageError."""
        found = await self._database.read(lambda connection: vector_store.with_texts(connection, numbers))
        return {number: (text, _plain(vector)) for number, (text, vector) in found.items()}


def _plain(vector: bytes) -> list[float]:
    """A vector as it is stored (`matrix.packed`) → its numbers."""
    (scale,) = unpack_from("<f", vector)
    return [round(code * scale, DIGITS) for code in array("b", vector[SCALE_BYTES:])]
