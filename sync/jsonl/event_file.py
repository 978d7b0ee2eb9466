"""One file of events and its index on disk: appended to in place, mended after a kill, replaced as a whole.

Decisions
    Appending happens in place, so that an outside `tail -f` goes on reading; a file is replaced only where something in
    it was forgotten, or where it is not what the log says.
    A line is whole or it is cut: whoever was killed, or met a full disk, leaves at most a half line at the end, which
    the next writer takes away before it does anything else.
    Nothing is flushed to the disk: what a power failure takes away shows at the next start (`tail`), and is written
    again from the log. An fsync for each batch would make every `update` wait for a file that can be built anew.
    The lock stands beside the file under the name of seed 002 §7.2, for other programs too; it dies with its holder.
"""

import contextlib
import filecmp
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from sync.errors import StorageBusy, StorageError
from sync.jsonl.model import INDEX_BLOCK, FileKey, IndexEntry, build_index_entries, encode_index, is_month
from sync.log.envelope import DECODE_ERRORS
from sync.log.model import Event
from sync.system.files import (
    PRIVATE_FILE,
    make_private_folder,
    remove_temporary_files,
    translate_os_errors,
    write_private,
)
from sync.system.process_lock import ProcessLock

T = TypeVar("T")

LOCK_TIMEOUT: Final = 5.0  # seconds for another program that holds a project's lock
READ_SIZE: Final = 64 * 1024  # bytes read at once, from the end backwards
BUILD_SUFFIX: Final = ".new"  # beside a file that is being built

_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class LineHeader(msgspec.Struct):
    """What a line says of itself."""

    position: int
    event_id: str


class _IndexedLine(LineHeader):
    ts: str


@dataclass(frozen=True, slots=True)
class FileTail:
    """How far a file has come. `last`: None where it is empty; `readable`: false where its end is no line of ours."""

    size: int = 0
    last_line_offset: int | None = None  # where the last line does
    last_line: LineHeader | None = None
    is_readable: bool = True


class EventFile:
    """The file of one project and month. Not for several threads at once."""

    def __init__(self, folder: Path, stem: str) -> None:
        self.path = folder / f"{stem}.jsonl"
        self.index = folder / f"{stem}.idx"
        self._lock = folder / f"{stem}.lock"

    @classmethod
    def of(cls, root: Path, key: FileKey) -> "EventFile":
        return cls(root / "events" / key.month, key.stem)

    def read_tail(self) -> FileTail:
        """What stands at the end, after a half line there was cut off. Raises StorageError."""
        with self._locked(), self._open(self.path) as descriptor:
            return _read_tail(descriptor)

    def append(self, lines: Sequence[tuple[Event, bytes]], after: FileTail) -> FileTail:
        """Write lines behind `after`, and what they add to the index. Raises StorageError; then nothing was added."""
        with self._locked(), self._open(self.path) as descriptor:
            if os.fstat(descriptor).st_size != after.size:
                raise StorageError(f"{self.path} was written by another program")
            placed, size = _with_offsets(lines, after.size)
            _write_at(descriptor, after.size, _join_lines(lines))
            with self._open(self.index) as index:
                self._complete_index(index, after)
                _write_at(
                    index, os.fstat(index).st_size, encode_index(build_index_entries(placed, after.last_line_offset))
                )
            event, begins = placed[-1]
            return FileTail(size, begins, LineHeader(event.position, event.event_id))

    def build(self, lines: Sequence[tuple[Event, bytes]], after: FileTail) -> FileTail:
        """Write lines into the file that is to take this one's place; with the tail of nothing it begins."""
        _make_unlinked_folder(self.path.parent)
        placed, size = _with_offsets(lines, after.size)
        for path, data in zip(
            self._build_paths,
            (_join_lines(lines), encode_index(build_index_entries(placed, after.last_line_offset))),
            strict=True,
        ):
            with translate_os_errors(path):
                if after.last_line is None:
                    path.unlink(missing_ok=True)
                with self._open(path) as descriptor:
                    _write_at(descriptor, os.fstat(descriptor).st_size, data)
        event, begins = placed[-1]
        return FileTail(size, begins, LineHeader(event.position, event.event_id))

    def install_built(self) -> bool:
        """Put what was built into the file's place; whether it held anything else.

        What stands there already stays untouched, so that whoever reads it can go on.
        """
        with self._locked():
            there = (self.path, self.index)
            changed = not all(_same_content(built, path) for built, path in zip(self._build_paths, there, strict=True))
            for built, path in zip(self._build_paths, there, strict=True):
                with translate_os_errors(path):
                    if changed:
                        built.replace(path)
                    else:
                        built.unlink()
            return changed

    def remove(self) -> bool:
        """Take both away; whether there was anything. The lock stays, because somebody may hold it."""
        there = self.path.exists()
        with translate_os_errors(self.path):
            self.path.unlink(missing_ok=True)
            self.index.unlink(missing_ok=True)
        return there

    @property
    def _build_paths(self) -> tuple[Path, Path]:
        return self.path.with_name(self.path.name + BUILD_SUFFIX), self.index.with_name(self.index.name + BUILD_SUFFIX)

    def _complete_index(self, index: int, tail: FileTail) -> None:
        """Where a killed writer left the index behind its file, make it anew from the lines."""
        found = _last_line(index)
        last = None if found is None else _decode(found[1], IndexEntry)
        covered = None if last is None else last.offset // INDEX_BLOCK
        if covered != (None if tail.last_line_offset is None else tail.last_line_offset // INDEX_BLOCK):
            os.ftruncate(index, 0)
            _write_at(index, 0, encode_index(_read_index_entries(self.path, tail.size)))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The right to write the file, among programs that ask for it."""
        _make_unlinked_folder(self.path.parent)
        busy = partial(StorageBusy, f"another program holds {self._lock}")
        with ProcessLock(self._lock, timeout=LOCK_TIMEOUT, timeout_error=busy).hold_blocking():
            yield

    @contextmanager
    def _open(self, path: Path) -> Iterator[int]:
        with translate_os_errors(path):
            descriptor = os.open(path, _FLAGS, PRIVATE_FILE)
            try:
                yield descriptor
            finally:
                os.close(descriptor)


def find_event_files(root: Path) -> Iterator[EventFile]:
    """Every file of events that lies below a root. Raises StorageError."""
    folder = root / "events"
    with translate_os_errors(folder), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for month in sorted(folder.iterdir()):
            if is_month(month.name) and month.is_dir():
                yield from (EventFile(month, path.stem) for path in sorted(month.glob("project_*_events.jsonl")))


def copy_event_files(root: Path, folder: Path) -> bool:
    """Copy every file of events below a root into a private folder; whether there was any. Raises StorageError."""
    with translate_os_errors(root):
        found = [file.path for file in find_event_files(root) if file.path.is_file()] if root.is_dir() else []
    for path in found:
        copy = folder / path.parent.name / path.name
        _make_unlinked_folder(copy.parent)
        with translate_os_errors(copy):
            copy.touch(PRIVATE_FILE)
            shutil.copyfile(path, copy)
    return bool(found)


def find_session_meta_files(root: Path) -> Iterator[Path]:
    """Every file about a session that lies below a root."""
    yield from sorted((root / "sessions").glob("*/*.meta.json"))


def remove_partial_files(root: Path) -> None:
    """Take away what killed writers left half made below a root: it may say what was forgotten since."""
    for folder in (root / "index", *(root / "sessions").glob("*")):
        remove_temporary_files(folder)
    for path in (root / "events").glob(f"*/project_*{BUILD_SUFFIX}"):
        with translate_os_errors(path):
            path.unlink(missing_ok=True)


def write_if_changed(path: Path, data: bytes) -> bool:
    """Replace a small file unless it holds these bytes already; whether it did not."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return False
    _make_unlinked_folder(path.parent)
    write_private(path, data)
    return True


def _make_unlinked_folder(path: Path) -> None:
    """Make a folder two levels below the root at most, private on each, and no link to anywhere else."""
    make_private_folder(path.parent)
    make_private_folder(path)
    if os.path.realpath(path) != str(path):
        raise StorageError(f"{path} is a link to somewhere else", hint="Take the link away; what it leads to is kept.")


def _write_at(descriptor: int, size: int, data: bytes) -> None:
    """Write behind the first `size` bytes, all of it or nothing."""
    os.lseek(descriptor, size, os.SEEK_SET)
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _read_tail(descriptor: int) -> FileTail:
    found = _last_line(descriptor)
    if found is None:
        return FileTail()
    begins, line = found
    last = _decode(line, LineHeader)
    return FileTail(begins + len(line), begins, last, is_readable=last is not None)


def _last_line(descriptor: int) -> tuple[int, bytes] | None:
    """Cut what follows the last newline; then where the last line begins, and the line. None where there is none."""
    size = os.fstat(descriptor).st_size
    end = _newline_before(descriptor, size)
    whole = 0 if end is None else end + 1
    if whole < size:
        os.ftruncate(descriptor, whole)
    if end is None:
        return None
    before = _newline_before(descriptor, end)
    begins = 0 if before is None else before + 1
    os.lseek(descriptor, begins, os.SEEK_SET)
    return begins, os.read(descriptor, whole - begins)


def _decode(line: bytes, shape: type[T]) -> T | None:
    try:
        return msgspec.json.decode(line, type=shape)
    except DECODE_ERRORS:
        return None


def _read_index_entries(path: Path, size: int) -> list[IndexEntry]:
    """The index of the first `size` bytes of a file."""
    found: list[IndexEntry] = []
    with path.open("rb") as file:
        offset = 0
        while offset < size and (line := file.readline()):
            if not found or offset // INDEX_BLOCK != found[-1].offset // INDEX_BLOCK:
                said = msgspec.json.decode(line, type=_IndexedLine)
                found.append(IndexEntry(said.position, offset, said.ts, said.event_id))
            offset += len(line)
    return found


def _with_offsets(lines: Sequence[tuple[Event, bytes]], size: int) -> tuple[list[tuple[Event, int]], int]:
    """Each event with the place where its line begins, in a file of so many bytes; where the last one ends."""
    placed = []
    for event, line in lines:
        placed.append((event, size))
        size += len(line)
    return placed, size


def _join_lines(lines: Sequence[tuple[Event, bytes]]) -> bytes:
    return b"".join(line for _, line in lines)


def _same_content(one: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def _newline_before(descriptor: int, end: int) -> int | None:
    """Where the last newline before `end` stands."""
    while end > 0:
        start = max(0, end - READ_SIZE)
        os.lseek(descriptor, start, os.SEEK_SET)
        found = os.read(descriptor, end - start).rfind(b"\n")
        if found >= 0:
            return start + found
        end = start
    return None
