"""One file of events and its index: appended in place, repaired after a kill, replaced as a whole.

Appending in place lets other programs `tail -f`. A killed writer or a full disk leaves at most one partial line, which
the next writer truncates. Nothing is flushed: `read_tail` finds what a power failure lost, and the log still has it;
an fsync would delay every `update`. The lock file has a documented name, so other programs can use it.
"""

import contextlib
import filecmp
import heapq
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from sync.errors import StorageBusy, StorageError
from sync.jsonl.model import INDEX_BLOCK, FileKey, IndexEntry, build_index_entries, encode_index, is_month
from sync.jsonl.unfinished import mark_whole
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

LOCK_TIMEOUT: Final = 5.0  # seconds for another program to release the lock
READ_SIZE: Final = 64 * 1024  # bytes; read backwards from the end
MAX_TAILS: Final = 100  # files whose last line a start compares with the log
BUILD_SUFFIX: Final = ".new"  # of a file that is being built

_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class LineHeader(msgspec.Struct):
    """The fields that identify a line."""

    position: int
    event_id: str


class _IndexedLine(LineHeader):
    ts: str


class FileTail(msgspec.Struct, frozen=True):
    """The end of a file. `last_line`: None if the file is empty; `is_readable`: false if its end is no valid line."""

    size: int = 0
    last_line_offset: int | None = None  # where the last line begins
    last_line: LineHeader | None = None
    is_readable: bool = True


class EventFile:
    """The file of one project and month. Not thread-safe."""

    def __init__(self, folder: Path, stem: str) -> None:
        self.path = folder / f"{stem}.jsonl"
        self.index = folder / f"{stem}.idx"
        self._lock = folder / f"{stem}.lock"

    @classmethod
    def of(cls, root: Path, key: FileKey) -> "EventFile":
        return cls(root / "events" / key.month, key.stem)

    def read_tail(self) -> FileTail:
        """Truncate a partial line and return the end of the file. Raises StorageError."""
        with self._locked(), self._open(self.path) as descriptor:
            return _read_tail(descriptor)

    def append(self, lines: Sequence[tuple[Event, bytes]], after: FileTail) -> FileTail:
        """Append lines and their index entries after `after`. Raises StorageError; then nothing was added."""
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
            event, offset = placed[-1]
            return FileTail(size, offset, LineHeader(event.position, event.event_id))

    def build(self, lines: Sequence[tuple[Event, bytes]], after: FileTail) -> FileTail:
        """Write lines into the file that will replace this one; an empty `after` starts it."""
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
        event, offset = placed[-1]
        return FileTail(size, offset, LineHeader(event.position, event.event_id))

    def install_built(self) -> bool:
        """Replace the file by the built one; return whether it differed.

        A file with the same content is not touched, so that readers can continue.
        """
        with self._locked():
            pairs = list(zip(self._build_paths, (self.path, self.index), strict=True))
            changed = not all(_same_content(built, path) for built, path in pairs)
            for built, path in pairs:
                with translate_os_errors(path):
                    if changed:
                        built.replace(path)
                    else:
                        built.unlink()
            return changed

    def remove(self) -> bool:
        """Remove file and index; return whether the file existed. The lock file stays: another program may hold it."""
        existed = self.path.exists()
        with translate_os_errors(self.path):
            self.path.unlink(missing_ok=True)
            self.index.unlink(missing_ok=True)
        return existed

    @property
    def _build_paths(self) -> tuple[Path, Path]:
        return self.path.with_name(self.path.name + BUILD_SUFFIX), self.index.with_name(self.index.name + BUILD_SUFFIX)

    def _complete_index(self, index: int, tail: FileTail) -> None:
        """Rebuild the index from the lines if a killed writer left it incomplete."""
        last_line = _last_line(index)
        last = None if last_line is None else _decode(last_line[1], IndexEntry)
        covered = None if last is None else last.offset // INDEX_BLOCK
        if covered != (None if tail.last_line_offset is None else tail.last_line_offset // INDEX_BLOCK):
            os.ftruncate(index, 0)
            _write_at(index, 0, encode_index(_read_index_entries(self.path, tail.size)))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the file."""
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
    """Yield every file of events below a root. Raises StorageError."""
    folder = root / "events"
    with translate_os_errors(folder), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for month in sorted(folder.iterdir()):
            if is_month(month.name) and month.is_dir():
                yield from (EventFile(month, path.stem) for path in sorted(month.glob("project_*_events.jsonl")))


def newest_line_ids(root: Path) -> list[str]:
    """Return the event ids of the last lines of the files written last. Raises StorageError."""
    with translate_os_errors(root):
        paths = [file.path for file in find_event_files(root)]
        newest = heapq.nlargest(MAX_TAILS, paths, key=lambda path: path.stat().st_mtime_ns)
        headers = [_decode(_read_last_line(path), LineHeader) for path in newest]
    return [header.event_id for header in headers if header is not None]


def _read_last_line(path: Path) -> bytes:
    with path.open("rb") as file:
        if (end := _newline_before(file.fileno(), path.stat().st_size)) is None:
            return b""
        before = _newline_before(file.fileno(), end)
        file.seek(0 if before is None else before + 1)
        return file.readline()


def find_session_meta_files(root: Path) -> Iterator[Path]:
    """Yield every file about a session below a root."""
    yield from sorted((root / "sessions").glob("*/*.meta.json"))


def remove_partial_files(root: Path) -> None:
    """Remove the partial files of killed writers below a root; they may hold text that was erased since."""
    for folder in (root / "index", *(root / "sessions").glob("*")):
        remove_temporary_files(folder)
    for path in (root / "events").glob(f"*/project_*{BUILD_SUFFIX}"):
        with translate_os_errors(path):
            path.unlink(missing_ok=True)


def remove_event_tree(root: Path) -> None:
    """Remove what was written below a root; the files of damaged databases that were kept there stay."""
    with translate_os_errors(root):
        for folder in (root / "events", root / "sessions", root / "index"):
            if folder.is_dir() and not folder.is_symlink():
                shutil.rmtree(folder)
    mark_whole(root)
    with contextlib.suppress(OSError):
        root.rmdir()


def write_if_changed(path: Path, data: bytes) -> bool:
    """Replace a small file if its bytes differ; return whether they did."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return False
    _make_unlinked_folder(path.parent)
    write_private(path, data)
    return True


def _make_unlinked_folder(path: Path) -> None:
    """Create a folder and its parent, both private. Raises StorageError if it is a link."""
    make_private_folder(path.parent)
    make_private_folder(path)
    if os.path.realpath(path) != str(path):
        raise StorageError(f"{path} is a link to somewhere else", hint="Take the link away; what it leads to is kept.")


def _write_at(descriptor: int, size: int, data: bytes) -> None:
    """Write after the first `size` bytes, all or nothing."""
    os.lseek(descriptor, size, os.SEEK_SET)
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _read_tail(descriptor: int) -> FileTail:
    last_line = _last_line(descriptor)
    if last_line is None:
        return FileTail()
    offset, line = last_line
    last = _decode(line, LineHeader)
    return FileTail(offset + len(line), offset, last, is_readable=last is not None)


def _last_line(descriptor: int) -> tuple[int, bytes] | None:
    """Truncate what follows the last newline; return offset and bytes of the last line, None if there is none."""
    size = os.fstat(descriptor).st_size
    end = _newline_before(descriptor, size)
    whole = 0 if end is None else end + 1
    if whole < size:
        os.ftruncate(descriptor, whole)
    if end is None:
        return None
    before = _newline_before(descriptor, end)
    offset = 0 if before is None else before + 1
    os.lseek(descriptor, offset, os.SEEK_SET)
    return offset, os.read(descriptor, whole - offset)


def _decode(line: bytes, shape: type[T]) -> T | None:
    try:
        return msgspec.json.decode(line, type=shape)
    except DECODE_ERRORS:
        return None


def _read_index_entries(path: Path, size: int) -> list[IndexEntry]:
    """Return the index entries of the first `size` bytes of a file."""
    entries: list[IndexEntry] = []
    with path.open("rb") as file:
        offset = 0
        while offset < size and (line := file.readline()):
            if not entries or offset // INDEX_BLOCK != entries[-1].offset // INDEX_BLOCK:
                header = msgspec.json.decode(line, type=_IndexedLine)
                entries.append(IndexEntry(header.position, offset, header.ts, header.event_id))
            offset += len(line)
    return entries


def _with_offsets(lines: Sequence[tuple[Event, bytes]], size: int) -> tuple[list[tuple[Event, int]], int]:
    """Return each event with the offset of its line in a file of `size` bytes, and the new size."""
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
    """Return the offset of the last newline before `end`."""
    while end > 0:
        start = max(0, end - READ_SIZE)
        os.lseek(descriptor, start, os.SEEK_SET)
        index = os.read(descriptor, end - start).rfind(b"\n")
        if index >= 0:
            return start + index
        end = start
    return None
