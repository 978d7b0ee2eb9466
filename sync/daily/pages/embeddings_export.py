"""Export the records' vectors to `index/embeddings.json`; nothing here reads that file.

It has the newest `MAX_ENTRIES` sessions, limited by `max_file_size_mb`, and is written only if its content changes.
Without entries, or if `semantic.enabled` is false, there is no file. A file of another program is left as it is.
"""

from collections.abc import Mapping, Sequence
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
from sync.system.files import pinned_folder, read_once

MAX_ENTRIES: Final = 2_000

Vector = tuple[str, Sequence[float]]
"""The embedded text, and its numbers."""


class VectorSource(Protocol):
    """Provides the vectors. `changed` counts up when they may have changed."""

    changed: ChangeCounter

    async def vector_numbers(self, text_positions: Mapping[str, int]) -> tuple[str, dict[str, int]]:
        """The model, and a number for the vector of each record that has one; a new vector has a new number.

        `text_positions`: by record, the position in the log of its current text.
        """

    async def read_vectors(self, numbers: Sequence[int]) -> Mapping[int, Vector]:
        """Vectors by number, without those that no longer exist."""


class VectorEntry(msgspec.Struct, frozen=True):
    """A session that has a vector: its page, and the vector's number."""

    date: str
    session: int
    file: str | None
    project: str | None
    record_id: str
    vector_number: int


class PendingExport(msgspec.Struct, frozen=True):
    """A folder whose file is to be written or removed."""

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
        """The folders whose file differs from what it should be. Raises StorageError."""
        contents = self._page_files.folder_contents(records)
        exports = (_pending_export(content, model, vector_numbers) for content in contents)
        return [due for due in exports if self._written.get(due.folder.root) != due and self._may_write(due.folder)]

    def write(self, pending: PendingExport, vectors: Mapping[int, Vector]) -> bool:
        """Write a file; False if it has to be retried. Raises StorageError."""
        with self._page_files.exclusive(pending.folder) as is_locked:
            if not is_locked:
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
        """Write or remove the file; False if it belongs to another program."""
        path, owner = folder.root / EMBEDDINGS_FILE, self._page_files.owner
        ours = owner.read(folder.root).get("vectors", [])
        found = read_once(path) if data is not None or ours else None
        on_disk = None if found is None else found.sha256
        if on_disk == (None if data is None else sha256(data)):
            return True
        if on_disk is not None and on_disk not in ours:
            self._page_files.notices[str(path)] = "was written by somebody else and is left as it is"
            return False
        try:
            if data is not None:
                owner.update_marker(folder.root, vectors=[sha256(data), *([on_disk] if on_disk else [])])
                with pinned_folder(path.parent, within=folder.boundary) as pinned:
                    compare_and_swap(pinned / path.name, on_disk, data)
            elif on_disk is not None:
                remove_unchanged(path, on_disk)
        except DocumentChanged:  # by another program, this moment
            return False
        return True


def embeddings_json(pending: PendingExport, vectors: Mapping[int, Vector]) -> bytes | None:
    """The file's content, a line for each entry; None without entries."""
    lines: list[bytes] = []
    bytes_left = pending.limit
    for entry in reversed(pending.entries):
        if (vector := vectors.get(entry.vector_number)) is None:
            continue
        line = msgspec.json.encode(_entry_json(entry, vector))
        bytes_left -= len(line) + 2
        if bytes_left < 0:
            break
        lines.append(line)
    if not lines:
        return None
    head = msgspec.json.encode({"version": "1.0", "model": pending.model}).removesuffix(b"}")
    return head + b',"entries":[\n' + b",\n".join(reversed(lines)) + b"\n]}\n"


def _entry_json(entry: VectorEntry, vector: Vector) -> dict[str, object]:
    fields: dict[str, object] = {"date": entry.date, "session": entry.session}
    if entry.file is not None:
        fields["file"] = entry.file
    if entry.project is not None:
        fields["project"] = entry.project
    return {**fields, "text": vector[0], "embedding": vector[1]}


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
