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

from sync.daily.pages.indexes import file_name
from sync.daily.pages.page_files import EMBEDDINGS_FILE, MEGABYTE, FolderContent, PageFiles
from sync.daily.pages.page_folders import PageFolder, is_folder, lies_within
from sync.daily.records.reducer import DailyRecords
from sync.errors import DocumentChanged
from sync.runtime.change_counter import ChangeCounter
from sync.system.atomic_swap import compare_and_swap, remove_unchanged
from sync.system.digests import sha256
from sync.system.files import read_once

MAX_ENTRIES: Final = 2_000

Vector = tuple[str, Sequence[float]]
"""The text that was read, and its numbers."""


class VectorSource(Protocol):
    """Where vectors come from. `changed` is set where they may be others than before."""

    changed: ChangeCounter

    async def vector_numbers(self, text_positions: Mapping[str, int]) -> tuple[str, dict[str, int]]:
        """The model, and for each of these records that has a vector a number; another vector has another number.

        `said_at`: the position in the log from which on a record says what it says now.
        """

    async def read_vectors(self, numbers: Sequence[int]) -> Mapping[int, Vector]:
        """Vectors by these numbers; what has gone since is left out."""


@dataclass(frozen=True, slots=True)
class VectorEntry:
    """A session that has a vector: where it stands, and the vector's number."""

    date: str
    session: int
    file: str | None
    project: str | None
    record_id: str
    vector_number: int


@dataclass(frozen=True, slots=True)
class PendingExport:
    """A place whose file is to be written, or to go."""

    folder: PageFolder
    model: str
    entries: tuple[VectorEntry, ...]  # oldest first
    limit: int  # bytes


class EmbeddingsExport:
    """The files of one profile. Synchronous; call it in a thread."""

    def __init__(self, page_files: PageFiles) -> None:
        self._page_files = page_files
        self._written: dict[Path, PendingExport] = {}

    def pending(self, records: DailyRecords, model: str, vector_numbers: Mapping[str, int]) -> list[PendingExport]:
        """The places where the file says something else by now. Raises StorageError."""
        found = (_pending_export(shown, model, vector_numbers) for shown in self._page_files.folder_contents(records))
        return [due for due in found if self._written.get(due.folder.root) != due and self._may_write(due.folder)]

    def write(self, pending: PendingExport, vectors: Mapping[int, Vector]) -> bool:
        """Whether the file stands as it should; else it is to be tried again. Raises StorageError."""
        with self._page_files.exclusive(pending.folder) as alone:
            if not alone:
                return False
            if self._write_file(pending.folder, embeddings_json(pending, vectors)):
                self._written[pending.folder.root] = pending
        return True

    def _may_write(self, folder: PageFolder) -> bool:
        owner = self._page_files.owner
        if not (folder.is_shared or lies_within(folder.root)):
            return False
        return (
            is_folder(folder.root)
            and not owner.is_other_installation(folder.root)
            and not owner.is_other_profile(folder.root)
        )

    def _write_file(self, folder: PageFolder, data: bytes | None) -> bool:
        """Make the file say this; False where it is somebody else's."""
        path, owner = folder.root / EMBEDDINGS_FILE, self._page_files.owner
        ours = owner.read(folder.root).get("vectors", [])
        found = read_once(path) if data is not None or ours else None
        stands = None if found is None else found.sha256
        if stands == (None if data is None else sha256(data)):
            return True
        if stands is not None and stands not in ours:
            self._page_files.notices[str(path)] = "was written by somebody else and is left as it is"
            return False
        try:
            if data is not None:
                owner.update_marker(folder.root, vectors=[sha256(data), *([stands] if stands else [])])
                compare_and_swap(path, stands, data)
            elif stands is not None:
                remove_unchanged(path, stands)
        except DocumentChanged:  # by another program, this moment
            return False
        return True


def embeddings_json(pending: PendingExport, vectors: Mapping[int, Vector]) -> bytes | None:
    """The file, a line for each entry; None where there would be none."""
    lines: list[bytes] = []
    room = pending.limit
    for entry in reversed(pending.entries):
        if (vector := vectors.get(entry.vector_number)) is None:
            continue
        line = msgspec.json.encode(_entry_json(entry, vector))
        room -= len(line) + 2
        if room < 0:
            break
        lines.append(line)
    if not lines:
        return None
    head = msgspec.json.encode({"version": "1.0", "model": pending.model}).removesuffix(b"}")
    return head + b',"entries":[\n' + b",\n".join(reversed(lines)) + b"\n]}\n"


def _entry_json(entry: VectorEntry, vector: Vector) -> dict[str, object]:
    told: dict[str, object] = {"date": entry.date, "session": entry.session}
    if entry.file is not None:
        told["file"] = entry.file
    if entry.project is not None:
        told["project"] = entry.project
    return {**told, "text": vector[0], "embedding": vector[1]}


def _pending_export(content: FolderContent, model: str, vector_numbers: Mapping[str, int]) -> PendingExport:
    entries = tuple(
        VectorEntry(
            date=file.page.day,
            session=note.number,
            file=file_name(file.page.day, file.part) if file.part > 1 else None,
            project=note.origin if content.folder.is_shared else None,
            record_id=record_id,
            vector_number=vector_numbers[record_id],
        )
        for file in content.files
        for note in file.page.sessions
        if (record_id := file.records[note.number].record_id) in vector_numbers
    )
    limit = int(content.options.storage.max_file_size_mb * MEGABYTE)
    return PendingExport(
        content.folder, model, entries[-MAX_ENTRIES:] if content.options.semantic.enabled else (), limit
    )
