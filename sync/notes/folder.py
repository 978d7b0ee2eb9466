"""The memory folder of a project: read its notes and INDEX.md, and write one file at a time.

Synchronous; call it in a thread. A write replaces only the bytes that were read. Links out of the folder are not
followed when writing, and below `notes/share/` nothing is written.
"""

import os
import stat
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.errors import DocumentChanged, InvalidInput, StorageError
from sync.log.model import MAX_NAME_LENGTH
from sync.notes.index_format import Index, index_of, new_index, parse_index
from sync.notes.model import NOTES_PREFIX, SHARE_PREFIX, Note, NoteFile, note_id_of
from sync.notes.note_draft import index_row, superseded_ids
from sync.notes.note_format import parse_note
from sync.system.atomic_swap import compare_and_swap, remove_unchanged
from sync.system.digests import sha256
from sync.system.files import FileStamp, make_folder_below, pinned_folder, read_once, remove_temporary_files
from sync.system.swap_journal import SwapJournal

LINGXI_BASE: Final = ".cursor/.lingxi"
OWN_BASE: Final = ".xiaobai"
INDEX_FILE: Final = "memory/INDEX.md"
BROKEN_COPY: Final = "INDEX.broken-"
TEMPLATE_FILE: Final = "memory/references/memory-note-template.md"
MAX_NOTE_BYTES: Final = 256 * 1024
MAX_NOTES: Final = 5_000  # files that are read of a project, those of the project before those of `share/`
GOVERNING: Final = ("Status", "Strength", "Supersedes", "File")  # cells that follow the note
INDEX_DEFAULTS: Final = ("Status", "Strength", "Kind", "Source")  # cells that count if the note's Meta lacks them

NONE_TAKEN: Final[Mapping[str, str]] = {}

_LEFT: Final = "it is left as it is"


class NoteFolderContent(msgspec.Struct, frozen=True):
    """What a memory folder holds. `notes`: by id, those of the project over those of `share/`.

    `index` is None if there is no INDEX.md or it has no table; then `index_bytes` are what it holds. An INDEX.md that
    is not readable (a folder, a link out of the project, no permission) is not written. `is_complete`: every file was
    listed. `unread_files`: files that exist and were not read, and those that INDEX.md names elsewhere.
    """

    notes: dict[str, NoteFile] = msgspec.field(default_factory=dict)
    index: Index | None = None
    index_bytes: bytes | None = None
    is_index_readable: bool = True
    warnings: tuple[str, ...] = ()
    is_complete: bool = True
    unread_files: frozenset[str] = frozenset()

    @property
    def current(self) -> list[NoteFile]:
        """The notes without the shared ones that a note of the project supersedes."""
        own = (file for file in self.notes.values() if not file.is_shared)
        superseded = {note_id for file in own for note_id in superseded_ids(file.note)}
        return [file for file in self.notes.values() if not (file.is_shared and file.note_id in superseded)]

    @property
    def index_sha256(self) -> str | None:
        return None if self.index_bytes is None else sha256(self.index_bytes)

    def row_id(self, file: str) -> str:
        """The id of the row of INDEX.md that names this file; empty if there is none."""
        rows = {} if self.index is None else self.index.rows
        return next((note_id for note_id, row in rows.items() if row.get("File") == file), "")

    def is_gone(self, note_id: str) -> bool:
        """Whether the note of this id has no file any more; False if that is not certain."""
        is_certain = self.is_complete and self.is_index_readable and not (self.index is None and self.unread_files)
        if note_id in self.notes or not is_certain:
            return False
        row = {} if self.index is None else self.index.rows.get(note_id, {})
        return row.get("File") not in self.unread_files and note_id not in {
            Path(name).stem for name in self.unread_files
        }


class NoteFolder:
    """The memory folder of one project. Raises InvalidInput if the project is no folder of this machine."""

    def __init__(self, project: str, journal: SwapJournal | None = None) -> None:
        """`journal`: of a caller that writes and holds the lock."""
        path = Path(project)
        self._journal = journal
        self._parsed: dict[str, tuple[FileStamp, str, Note]] = {}  # a note that did not change is parsed once
        if "\0" in project or not path.is_absolute() or not os.path.isdir(path):  # noqa: PTH112 - no OSError
            hint = "Give the project's folder as an absolute path."
            raise InvalidInput("projectPath is no folder of this machine", field="projectPath", hint=hint)
        self.project = path
        self.base = LINGXI_BASE if os.path.isdir(path / LINGXI_BASE) else OWN_BASE  # noqa: PTH112
        self.root = path / self.base

    def read(self, taken: Mapping[str, str] = NONE_TAKEN) -> NoteFolderContent:
        """Read everything. What cannot be read is named in `warnings` and left as it is. Raises StorageError.

        `taken`: of a repository, the SHA-256 of each text that is the person's, with the id of the note that has it
        now or "". Such a note keeps its id whatever other files say, and INDEX.md adds nothing to it.
        """
        warnings: list[str] = []
        if not self._is_inside(self.root / NOTES_PREFIX):
            warnings.append(f"{self.base}/{NOTES_PREFIX} is a link out of the project and is left out")
            return NoteFolderContent(warnings=tuple(warnings), is_complete=False)
        index_bytes, is_readable = self._read_index(warnings)
        index = None if index_bytes is None else self._parse_index(index_bytes)
        if index is not None:
            warnings += index.problems
        elif index_bytes is not None:
            warnings.append("INDEX.md has no table with the columns Id and File; the notes are read from their files")
        rows = {} if index is None else {row.get("File", ""): row for row in reversed(index.rows.values())}
        paths, is_complete = self._note_paths(warnings)
        notes, unread = self._read_notes(paths, rows, warnings, taken)
        read = {self._name(path) for path in paths} - unread
        unread |= {name for name in rows if name not in read and self._may_exist(name)}
        return NoteFolderContent(
            notes, index, index_bytes, is_readable, tuple(warnings), is_complete, frozenset(unread)
        )

    def write_note(self, file: str, text: str, expected_sha256: str | None) -> str:
        """Write a note; the SHA-256 of its new bytes. Raises DocumentChanged, StorageError."""
        path = self._writable(file)
        data = text.encode()
        make_folder_below(self.project, path.parent)
        self._swap(path, expected_sha256, data)
        return sha256(data)

    def remove_note(self, file: str, expected_sha256: str) -> None:
        """Raises DocumentChanged, StorageError."""
        remove_unchanged(self._writable(file), expected_sha256)

    def write_index(self, content: NoteFolderContent, index: Index) -> None:
        """Write INDEX.md. One that could not be read is copied beside it first, byte for byte."""
        path = self._writable(INDEX_FILE)
        make_folder_below(self.project, path.parent)
        if content.index is None and content.index_bytes is not None:
            copy = path.with_name(f"{BROKEN_COPY}{sha256(content.index_bytes)[:8]}.md")
            if read_once(copy) is None:
                compare_and_swap(copy, None, content.index_bytes)
        bom = b"\xef\xbb\xbf" if content.index is not None and (content.index_bytes or b"").startswith(b"\xef") else b""
        self._swap(path, content.index_sha256, bom + index.render().encode())

    def copies_with(self, words: Collection[str]) -> list[Path]:
        """The copies of an INDEX.md that was broken which have one of these words. Raises StorageError."""
        copies = sorted((self.root / INDEX_FILE).parent.glob(f"{BROKEN_COPY}*.md"))
        probes = ((path, read_once(path)) for path in copies if self._is_inside(path))
        return [path for path, probe in probes if probe and any(word.encode() in probe.data for word in words)]

    def create(self, template: str) -> None:
        """Create the folder with its template; what exists stays."""
        path = self._writable(TEMPLATE_FILE)
        for folder in (path.parent, self.root / NOTES_PREFIX):
            make_folder_below(self.project, folder)
        with suppress(DocumentChanged):  # it exists, perhaps since a moment ago by another process
            compare_and_swap(path, None, template.encode())

    def remove_leftovers(self, before: float) -> None:
        """Remove the temporary files of killed writers, last written before this time in seconds since 1970."""
        for folder in {(self.root / name).parent for name in (INDEX_FILE, f"{NOTES_PREFIX}x", TEMPLATE_FILE)}:
            if self._is_inside(folder):
                remove_temporary_files(folder, before=before)

    def exists(self) -> bool:
        return os.path.isdir(self.root / "memory")  # noqa: PTH112 - no OSError

    def _swap(self, path: Path, expected_sha256: str | None, data: bytes) -> None:
        recorded: AbstractContextManager[None] = nullcontext()
        if self._journal is not None and expected_sha256 is not None:
            recorded = self._journal.record(path, expected_sha256, sha256(data))
        with recorded, pinned_folder(path.parent, within=self.project) as pinned:
            compare_and_swap(pinned / path.name, expected_sha256, data)

    def _read_index(self, warnings: list[str]) -> tuple[bytes | None, bool]:
        """What INDEX.md holds, and whether it can be read."""
        if not self._is_inside(self.root / INDEX_FILE):
            warnings.append("INDEX.md is a link out of the project and is left out")
            return None, False
        try:
            probe = read_once(self.root / INDEX_FILE)
        except StorageError as error:
            warnings.append(
                f"INDEX.md cannot be read ({error.message}); {_LEFT}, and the notes are read from their files"
            )
            return None, False
        return None if probe is None else probe.data, True

    def _read_notes(
        self,
        paths: list[Path],
        rows: Mapping[str, Mapping[str, str]],
        warnings: list[str],
        taken: Mapping[str, str],
    ) -> tuple[dict[str, NoteFile], set[str]]:
        """The notes by id, and the files that exist and cannot be read."""
        notes, unread = dict[str, NoteFile](), set[str]()
        for path in paths:
            name = self._name(path)
            try:
                file = self._read_note(path, name, rows.get(name, {}), taken)
            except (ValueError, OSError, StorageError) as error:
                what = error.message if isinstance(error, StorageError) else str(error)
                warnings.append(f"{name} {'is not UTF-8' if isinstance(error, UnicodeDecodeError) else what}; {_LEFT}")
                unread.add(name)
                continue
            if file is None:
                continue
            if not file.note.title:
                warnings.append(f"{name} has no title; its name is used")
            first = notes.setdefault(file.note_id, file)
            if first is not file:
                used = notes[file.note_id] = max(first, file, key=lambda one: _precedence(one, taken))
                warnings.append(f"{file.note_id} is the id of {first.file} and of {name}; {used.file} is used")
        return notes, unread

    def _note_paths(self, warnings: list[str]) -> tuple[list[Path], bool]:
        """The files of notes, those of the project first, and whether they are all."""
        errors: list[OSError] = []
        walk = os.walk(self.root / NOTES_PREFIX, onerror=errors.append)
        found = (Path(at) / name for at, _, names in walk for name in names)
        paths = [path for path in found if path.suffix == ".md" and not path.name.startswith(".")]
        paths = [path for path in paths if _is_note_name(self._name(path))]
        paths.sort(key=lambda path: (_is_below_share(self._name(path)), path))
        failed = [error for error in errors if not isinstance(error, FileNotFoundError)]
        warnings += [
            f"{error.filename} cannot be listed ({error.strerror}); its notes are left out" for error in failed
        ]
        if len(paths) > MAX_NOTES:
            warnings.append(f"the project has {len(paths)} notes; only the first {MAX_NOTES} are read")
        return paths[:MAX_NOTES], not failed and len(paths) <= MAX_NOTES

    def _read_note(self, path: Path, name: str, row: Mapping[str, str], taken: Mapping[str, str]) -> NoteFile | None:
        """The note of a file; None if it has gone. Raises ValueError, OSError, StorageError."""
        if path.is_symlink() and not self._is_inside(path):
            raise ValueError("is a link out of the project")
        try:
            found = path.stat()
        except FileNotFoundError:
            if path.is_symlink():
                raise ValueError("is a link to nothing") from None
            return None
        if stat.S_ISREG(found.st_mode) and found.st_size > MAX_NOTE_BYTES:
            raise ValueError(f"is larger than {MAX_NOTE_BYTES} bytes")
        if name not in self._parsed or self._parsed[name][0] != (found.st_size, found.st_mtime_ns, found.st_ino):
            probe = read_once(path)
            if probe is None:
                return None
            stamp = probe.size, probe.mtime_ns, probe.inode
            self._parsed[name] = stamp, probe.sha256, parse_note(probe.data.decode("utf-8"))
        _, digest, parsed = self._parsed[name]
        is_taken = digest in taken and not _is_below_share(name)
        note = parsed if is_taken else _with_defaults(parsed, row)
        note_id = note_id_of(note, name, (is_taken and taken[digest]) or row.get("Id", ""))
        if len(note_id) > MAX_NAME_LENGTH:
            raise ValueError(f"has an Id of more than {MAX_NAME_LENGTH} characters")
        return NoteFile(note_id, name, digest, note)

    def _may_exist(self, name: str) -> bool:
        """Whether INDEX.md names a file that exists, or that cannot be looked for."""
        try:
            return stat.S_ISREG((self.root / name).lstat().st_mode)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return False
        except OSError:
            return True

    def _is_inside(self, path: Path) -> bool:
        """Whether a path leads to a place below the project."""
        return os.path.realpath(path).startswith(os.path.realpath(self.project).rstrip(os.sep) + os.sep)

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
        if _is_below_share(file) or ".." in path.parts or not self._is_inside(path.parent) or path.is_symlink():
            raise StorageError(f"{file} is not written: it is shared, or a link", hint="Change it where it comes from.")
        return path


def repaired_index(content: NoteFolderContent, written_ids: Collection[str] = ()) -> tuple[Index, list[str]]:
    """The index as the notes say it, and what had to change. Rows of notes that cannot be read stay.

    A row says what governs a note; its other cells are the person's, but for notes that were just written.
    """
    index, changes = content.index, list[str]()
    if not content.is_index_readable:
        return index or new_index(), []
    if index is None:
        return index_of(map(index_row, content.notes.values())), ["INDEX.md was written from the notes"]
    ids = {file.file: note_id for note_id, file in content.notes.items()}
    removed: set[str] = set()
    for note_id, listed in index.rows.items():
        new_id = ids.get(listed.get("File", ""))
        if note_id not in content.notes and new_id is not None and new_id not in index.rows:
            index = index.with_new_id(note_id, new_id)
            changes.append(f"{note_id}: its file has the id {new_id} now, so its row was renamed")
        elif note_id not in content.notes and new_id is not None:
            removed.add(note_id)
            changes.append(f"{note_id}: its file is that of {new_id}, so its row was removed")
        elif content.is_gone(note_id):
            removed.add(note_id)
            changes.append(f"{note_id}: its file is gone, so its row was removed")
    index = index.without_rows(removed)
    rows = index.rows
    for note_id, file in content.notes.items():
        row = rows.get(note_id)
        wanted = {name: " ".join(value.split()) for name, value in index_row(file).items()}
        if row is not None:
            names = [name for name in wanted if note_id in written_ids or name in GOVERNING or not row.get(name, "-")]
            wanted = {name: wanted[name] for name in names if wanted[name] not in {"", row.get(name, wanted[name])}}
        if not wanted:
            continue
        index = index.with_row({"Id": note_id, **wanted})
        changes.append(f"{note_id}: its row {'was missing' if row is None else 'differed from the note'}")
    return index, changes


def _with_defaults(note: Note, row: Mapping[str, str]) -> Note:
    """The note with the cells of its row in INDEX.md for what its Meta lacks."""
    lacking = {name: row[name] for name in INDEX_DEFAULTS if row.get(name) and not note.meta.get(name)}
    return replace(note, meta={**note.meta, **lacking}) if lacking else note


def _precedence(file: NoteFile, taken: Mapping[str, str]) -> int:
    """Which of two notes with one id counts: the person's newest text, then an older one of theirs; else the first."""
    is_taken = not file.is_shared and file.sha256 in taken
    return is_taken + (is_taken and taken[file.sha256] == file.note_id)


def _is_below_share(name: str) -> bool:
    return name.startswith(SHARE_PREFIX)


def _is_note_name(name: str) -> bool:
    return _is_below_share(name) or name.count("/") == NOTES_PREFIX.count("/")
