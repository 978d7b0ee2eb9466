"""The memory folder of a project: read its notes and INDEX.md, and write one file at a time.

Synchronous; call it in a thread. A write replaces only the bytes that were read. Links out of the folder are not
followed when writing, and below `notes/share/` nothing is written.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sync.errors import InvalidInput, StorageError
from sync.notes.index_format import Index, index_of, parse_index
from sync.notes.model import NOTES_PREFIX, SHARE_PREFIX, NoteFile
from sync.notes.note_draft import index_row
from sync.notes.note_format import parse_note
from sync.system.atomic_swap import compare_and_swap, remove_unchanged
from sync.system.digests import sha256
from sync.system.files import make_folder_below, read_once, remove_temporary_files, translate_os_errors

LINGXI_BASE: Final = ".cursor/.lingxi"
OWN_BASE: Final = ".xiaobai"
INDEX_FILE: Final = "memory/INDEX.md"
TEMPLATE_FILE: Final = "memory/references/memory-note-template.md"
MAX_NOTE_BYTES: Final = 256 * 1024
MAX_NOTES: Final = 5_000  # files that are read of a project


@dataclass(frozen=True, slots=True)
class NoteFolderContent:
    """What a memory folder holds. `notes`: by id, those of the project over those of `share/`.

    `index` is None if there is no INDEX.md or it cannot be read; then `index_bytes` are what it holds.
    """

    notes: dict[str, NoteFile] = field(default_factory=dict)
    index: Index | None = None
    index_bytes: bytes | None = None
    warnings: tuple[str, ...] = ()

    @property
    def index_sha256(self) -> str | None:
        return None if self.index_bytes is None else sha256(self.index_bytes)


class NoteFolder:
    """The memory folder of one project. Raises InvalidInput if the project is no folder of this machine."""

    def __init__(self, project: str) -> None:
        path = Path(project)
        if "\0" in project or not path.is_absolute() or not os.path.isdir(path):  # noqa: PTH112 - no OSError
            hint = "Give the project's folder as an absolute path."
            raise InvalidInput("projectPath is no folder of this machine", field="projectPath", hint=hint)
        self.project = path
        self.base = LINGXI_BASE if os.path.isdir(path / LINGXI_BASE) else OWN_BASE  # noqa: PTH112
        self.root = path / self.base

    def read(self) -> NoteFolderContent:
        """Read everything. What cannot be read is named in `warnings` and left as it is. Raises StorageError."""
        warnings: list[str] = []
        notes = self._read_notes(warnings)
        probe = read_once(self.root / INDEX_FILE)
        index = None
        if probe is not None:
            index = self._parse_index(probe.data)
            if index is None:
                warnings.append(
                    "INDEX.md has no table with the columns Id and File; the notes are read from their files"
                )
            else:
                warnings += index.problems
        return NoteFolderContent(notes, index, None if probe is None else probe.data, tuple(warnings))

    def write_note(self, file: str, text: str, expected_sha256: str | None) -> str:
        """Write a note; the SHA-256 of its new bytes. Raises DocumentChanged, StorageError."""
        path = self._writable(file)
        data = text.encode()
        make_folder_below(self.project, path.parent)
        compare_and_swap(path, expected_sha256, data)
        return sha256(data)

    def remove_note(self, file: str, expected_sha256: str) -> None:
        """Raises DocumentChanged, StorageError."""
        remove_unchanged(self._writable(file), expected_sha256)

    def write_index(self, content: NoteFolderContent, index: Index) -> None:
        """Write INDEX.md. One that could not be read is copied beside it first, byte for byte."""
        path = self._writable(INDEX_FILE)
        make_folder_below(self.project, path.parent)
        if content.index is None and content.index_bytes is not None:
            copy = path.with_name(f"INDEX.broken-{sha256(content.index_bytes)[:8]}.md")
            if read_once(copy) is None:
                compare_and_swap(copy, None, content.index_bytes)
        bom = b"\xef\xbb\xbf" if content.index is not None and (content.index_bytes or b"").startswith(b"\xef") else b""
        compare_and_swap(path, content.index_sha256, bom + index.render().encode())

    def create(self, template: str) -> None:
        """Create the folder with its template; what exists stays."""
        path = self._writable(TEMPLATE_FILE)
        for folder in (path.parent, self.root / NOTES_PREFIX):
            make_folder_below(self.project, folder)
        if read_once(path) is None:
            compare_and_swap(path, None, template.encode())

    def remove_leftovers(self, before: float) -> None:
        """Remove the temporary files of killed writers, last written before this time in seconds since 1970."""
        for folder in (self.root / "memory", self.root / NOTES_PREFIX):
            remove_temporary_files(folder, before=before)

    def exists(self) -> bool:
        return os.path.isdir(self.root / "memory")  # noqa: PTH112 - no OSError

    def _read_notes(self, warnings: list[str]) -> dict[str, NoteFile]:
        notes: dict[str, NoteFile] = {}
        for path in sorted(self._note_paths(), key=lambda path: (_is_below_share(self._name(path)), path)):
            name = self._name(path)
            file = self._read_note(path, name, warnings)
            if file is None:
                continue
            first = notes.setdefault(file.note_id, file)
            if first is not file:
                warnings.append(f"{file.note_id} is the id of {first.file} and of {name}; {first.file} is used")
        return notes

    def _note_paths(self) -> list[Path]:
        folder = self.root / NOTES_PREFIX
        with translate_os_errors(folder):
            found = (Path(at) / name for at, _, names in os.walk(folder) for name in names)
            paths = [path for path in found if path.suffix == ".md" and not path.name.startswith(".")]
        return sorted(path for path in paths if _is_note_name(self._name(path)))[:MAX_NOTES]

    def _read_note(self, path: Path, name: str, warnings: list[str]) -> NoteFile | None:
        try:
            probe = read_once(path)
            if probe is None:
                return None
            if probe.size > MAX_NOTE_BYTES:
                warnings.append(f"{name} is larger than {MAX_NOTE_BYTES} bytes and is left out")
                return None
            note = parse_note(probe.data.decode("utf-8"))
        except (UnicodeDecodeError, StorageError) as error:
            what = error.message if isinstance(error, StorageError) else "is not UTF-8"
            warnings.append(f"{name} {what}; it is left as it is")
            return None
        if not note.title:
            warnings.append(f"{name} has no title; its name is used")
        return NoteFile(note.meta.get("Id") or path.stem, name, probe.sha256, note)

    def _parse_index(self, data: bytes) -> Index | None:
        try:
            return parse_index(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            return None

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _writable(self, file: str) -> Path:
        """The path of a file below `memory/`. Raises StorageError if a link leads out of the project."""
        path = self.root / file
        inside = os.path.realpath(path.parent).startswith(os.path.realpath(self.project) + os.sep)
        if _is_below_share(file) or ".." in path.parts or not inside or path.is_symlink():
            raise StorageError(f"{file} is not written: it is shared, or a link", hint="Change it where it comes from.")
        return path


def repaired_index(content: NoteFolderContent) -> tuple[Index, list[str]]:
    """The index as the notes say it, and what had to change. Rows of notes that cannot be read stay."""
    index, changes = content.index, list[str]()
    if index is None:
        return index_of(map(index_row, content.notes.values())), ["INDEX.md was written from the notes"]
    unread = " ".join(content.warnings)
    rows = index.rows
    for note_id, listed in rows.items():
        if note_id not in content.notes and listed.get("File", "") not in unread:
            index = index.without_row(note_id)
            changes.append(f"{note_id}: its file is gone, so its row was removed")
    for note_id, file in content.notes.items():
        row = rows.get(note_id)
        wanted = index_row(file)
        if row is None:
            changes.append(f"{note_id}: its row was missing")
        elif any(row.get(name, value) != " ".join(value.split()) for name, value in wanted.items() if value):
            changes.append(f"{note_id}: its row differed from the note")
        else:
            continue
        index = index.with_row(
            {name: " ".join(value.split()) for name, value in wanted.items() if value or row is None}
        )
    return index, changes


def _is_below_share(name: str) -> bool:
    return name.startswith(SHARE_PREFIX)


def _is_note_name(name: str) -> bool:
    return _is_below_share(name) or name.count("/") == NOTES_PREFIX.count("/")
