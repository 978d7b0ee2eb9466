"""`index/embeddings.json` (seed 000 §3.3): the vectors of the records, where they are made, as a file.

Decisions
    It is an export: the vectors lie beside the index of recall, and nothing here reads them back. A record has an entry
    as soon as there is a vector of what it says now, and none any more when it was removed, forgotten or put away.
    Written whole, and only where it would say something else. Without entries, without vectors, or where
    `semantic.enabled` is false there is no such file. One that we did not write is left as it is.
    The newest `MOST` sessions, as many of them as `max_file_size_mb` has room for: each takes some kilobytes, and the
    file is written anew with every session that is kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import msgspec

from sync.digests import sha256
from sync.errors import DocumentChanged
from sync.files import compare_and_swap, probe, remove_unchanged
from sync.memory.daily.book import Book
from sync.memory.daily.files import EMBEDDINGS, MEGABYTE, Pages, Shown
from sync.memory.daily.overview import file_name
from sync.memory.daily.places import Place, is_folder, lies_within
from sync.signals import Signal

MOST: Final = 2_000

Vector = tuple[str, Sequence[float]]
"""The text that was read, and its numbers."""


class Vectors(Protocol):
    """Where vectors come from. `changed` is set where they may be others than before."""

    changed: Signal

    async def known(self, said_at: Mapping[str, int]) -> tuple[str, dict[str, int]]:
        """The model, and for each of these records that has a vector a number; another vector has another number.

        `said_at`: the position in the log from which on a record says what it says now.
        """

    async def read(self, numbers: Sequence[int]) -> Mapping[int, Vector]:
        """Vectors by these numbers; what has gone since is left out."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A session that has a vector: where it stands, and the vector's number."""

    date: str
    session: int
    file: str | None
    project: str | None
    record_id: str
    number: int


@dataclass(frozen=True, slots=True)
class Due:
    """A place whose file is to be written, or to go."""

    place: Place
    model: str
    entries: tuple[Entry, ...]  # oldest first
    limit: int  # bytes


class Export:
    """The files of one profile. Synchronous; call it in a thread."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._stands: dict[Path, Due] = {}

    def due(self, book: Book, model: str, numbers: Mapping[str, int]) -> list[Due]:
        """The places where the file says something else by now. Raises StorageError."""
        found = (_due(shown, model, numbers) for shown in self._pages.shown(book))
        return [due for due in found if self._stands.get(due.place.root) != due and self._is_ours(due.place)]

    def write(self, due: Due, vectors: Mapping[int, Vector]) -> bool:
        """Whether the file stands as it should; else it is to be tried again. Raises StorageError."""
        with self._pages.alone(due.place) as alone:
            if not alone:
                return False
            if self._put(due.place, embeddings_json(due, vectors)):
                self._stands[due.place.root] = due
        return True

    def _is_ours(self, place: Place) -> bool:
        owner = self._pages.owner
        if not (place.shared or lies_within(place.root)):
            return False
        return is_folder(place.root) and not owner.is_foreign(place.root) and not owner.is_anothers(place.root)

    def _put(self, place: Place, data: bytes | None) -> bool:
        """Make the file say this; False where it is somebody else's."""
        path, owner = place.root / EMBEDDINGS, self._pages.owner
        ours = owner.read(place.root).get("vectors", [])
        found = probe(path) if data is not None or ours else None
        stands = None if found is None else found.sha256
        if stands == (None if data is None else sha256(data)):
            return True
        if stands is not None and stands not in ours:
            self._pages.notices[str(path)] = "was written by somebody else and is left as it is"
            return False
        try:
            if data is not None:
                owner.mark(place.root, vectors=[sha256(data), *([stands] if stands else [])])
                compare_and_swap(path, stands, data)
            elif stands is not None:
                remove_unchanged(path, stands)
        except DocumentChanged:  # by another program, this moment
            return False
        return True


def embeddings_json(due: Due, vectors: Mapping[int, Vector]) -> bytes | None:
    """The file, a line for each entry; None where there would be none."""
    lines: list[bytes] = []
    room = due.limit
    for entry in reversed(due.entries):
        if (vector := vectors.get(entry.number)) is None:
            continue
        line = msgspec.json.encode(_told(entry, vector))
        room -= len(line) + 2
        if room < 0:
            break
        lines.append(line)
    if not lines:
        return None
    head = msgspec.json.encode({"version": "1.0", "model": due.model}).removesuffix(b"}")
    return head + b',"entries":[\n' + b",\n".join(reversed(lines)) + b"\n]}\n"


def _told(entry: Entry, vector: Vector) -> dict[str, object]:
    told: dict[str, object] = {"date": entry.date, "session": entry.session}
    if entry.file is not None:
        told["file"] = entry.file
    if entry.project is not None:
        told["project"] = entry.project
    return {**told, "text": vector[0], "embedding": vector[1]}


def _due(shown: Shown, model: str, numbers: Mapping[str, int]) -> Due:
    entries = tuple(
        Entry(
            date=file.page.day,
            session=note.number,
            file=file_name(file.page.day, file.part) if file.part > 1 else None,
            project=note.origin if shown.place.shared else None,
            record_id=record_id,
            number=numbers[record_id],
        )
        for file in shown.files
        for note in file.page.notes
        if (record_id := file.records[note.number].record_id) in numbers
    )
    limit = int(shown.options.storage.max_file_size_mb * MEGABYTE)
    return Due(shown.place, model, entries[-MOST:] if shown.options.semantic.enabled else (), limit)
