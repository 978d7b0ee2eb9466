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
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from filelock import FileLock, Timeout

from sync.errors import StorageBusy, StorageError
from sync.files import PRIVATE_FILE, make_private_folder, remove_leftovers, told, write_private
from sync.log.envelope import UNDECODABLE
from sync.log.model import Event
from sync.tree.model import BLOCK, FileKey, Mark, is_month, mark_lines, marks

T = TypeVar("T")

LOCK_PATIENCE: Final = 5.0  # seconds for another program that holds a project's lock
PIECE: Final = 64 * 1024  # bytes read at once, from the end backwards
NEW: Final = ".new"  # beside a file that is being built

_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class Line(msgspec.Struct):
    """What a line says of itself."""

    position: int
    event_id: str


class _Marked(Line):
    ts: str


@dataclass(frozen=True, slots=True)
class Tail:
    """How far a file has come. `last`: None where it is empty; `readable`: false where its end is no line of ours."""

    size: int = 0
    begins: int | None = None  # where the last line does
    last: Line | None = None
    readable: bool = True


class EventFile:
    """The file of one project and month. Not for several threads at once."""

    def __init__(self, folder: Path, stem: str) -> None:
        self.path = folder / f"{stem}.jsonl"
        self.index = folder / f"{stem}.idx"
        self._lock = folder / f"{stem}.lock"

    @classmethod
    def of(cls, root: Path, key: FileKey) -> "EventFile":
        return cls(root / "events" / key.month, key.stem)

    def tail(self) -> Tail:
        """What stands at the end, after a half line there was cut off. Raises StorageError."""
        with self._alone(), self._opened(self.path) as descriptor:
            return _tail(descriptor)

    def append(self, lines: Sequence[tuple[Event, bytes]], after: Tail) -> Tail:
        """Write lines behind `after`, and what they add to the index. Raises StorageError; then nothing was added."""
        with self._alone(), self._opened(self.path) as descriptor:
            if os.fstat(descriptor).st_size != after.size:
                raise StorageError(f"{self.path} was written by another program")
            placed, size = _placed(lines, after.size)
            _write_at(descriptor, after.size, _joined(lines))
            with self._opened(self.index) as index:
                self._complete_index(index, after)
                _write_at(index, os.fstat(index).st_size, mark_lines(marks(placed, after.begins)))
            event, begins = placed[-1]
            return Tail(size, begins, Line(event.position, event.event_id))

    def build(self, piece: Sequence[tuple[Event, bytes]], after: Tail) -> Tail:
        """Write lines into the file that is to take this one's place; with the tail of nothing it begins."""
        _own_folder(self.path.parent)
        placed, size = _placed(piece, after.size)
        for path, data in zip(self._new, (_joined(piece), mark_lines(marks(placed, after.begins))), strict=True):
            with told(path):
                if after.last is None:
                    path.unlink(missing_ok=True)
                with self._opened(path) as descriptor:
                    _write_at(descriptor, os.fstat(descriptor).st_size, data)
        event, begins = placed[-1]
        return Tail(size, begins, Line(event.position, event.event_id))

    def take_built(self) -> bool:
        """Put what was built into the file's place; whether it held anything else.

        What stands there already stays untouched, so that whoever reads it can go on.
        """
        with self._alone():
            there = (self.path, self.index)
            changed = not all(_same(built, path) for built, path in zip(self._new, there, strict=True))
            for built, path in zip(self._new, there, strict=True):
                with told(path):
                    if changed:
                        built.replace(path)
                    else:
                        built.unlink()
            return changed

    def remove(self) -> bool:
        """Take both away; whether there was anything. The lock stays, because somebody may hold it."""
        there = self.path.exists()
        with told(self.path):
            self.path.unlink(missing_ok=True)
            self.index.unlink(missing_ok=True)
        return there

    @property
    def _new(self) -> tuple[Path, Path]:
        return self.path.with_name(self.path.name + NEW), self.index.with_name(self.index.name + NEW)

    def _complete_index(self, index: int, upto: Tail) -> None:
        """Where a killed writer left the index behind its file, make it anew from the lines."""
        found = _last_line(index)
        last = None if found is None else _decoded(found[1], Mark)
        covered = None if last is None else last.offset // BLOCK
        if covered != (None if upto.begins is None else upto.begins // BLOCK):
            os.ftruncate(index, 0)
            _write_at(index, 0, mark_lines(_marks_of(self.path, upto.size)))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The right to write the file, among programs that ask for it."""
        _own_folder(self.path.parent)
        lock = FileLock(self._lock, timeout=LOCK_PATIENCE, mode=PRIVATE_FILE)
        with told(self._lock):
            try:
                lock.acquire()
            except Timeout as error:  # an OSError to Python, so it is met first
                raise StorageBusy(f"another program holds {self._lock}") from error
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def _opened(self, path: Path) -> Iterator[int]:
        with told(path):
            descriptor = os.open(path, _FLAGS, PRIVATE_FILE)
            try:
                yield descriptor
            finally:
                os.close(descriptor)


def event_files(root: Path) -> Iterator[EventFile]:
    """Every file of events that lies below a root. Raises StorageError."""
    folder = root / "events"
    with told(folder), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for month in sorted(folder.iterdir()):
            if is_month(month.name) and month.is_dir():
                yield from (EventFile(month, path.stem) for path in sorted(month.glob("project_*_events.jsonl")))


def copy_event_files(root: Path, folder: Path) -> bool:
    """Copy every file of events below a root into a private folder; whether there was any. Raises StorageError."""
    with told(root):
        found = [file.path for file in event_files(root) if file.path.is_file()] if root.is_dir() else []
    for path in found:
        copy = folder / path.parent.name / path.name
        _own_folder(copy.parent)
        with told(copy):
            copy.touch(PRIVATE_FILE)
            shutil.copyfile(path, copy)
    return bool(found)


def meta_files(root: Path) -> Iterator[Path]:
    """Every file about a session that lies below a root."""
    yield from sorted((root / "sessions").glob("*/*.meta.json"))


def remove_unfinished(root: Path) -> None:
    """Take away what killed writers left half made below a root: it may say what was forgotten since."""
    for folder in (root / "index", *(root / "sessions").glob("*")):
        remove_leftovers(folder)
    for path in (root / "events").glob(f"*/project_*{NEW}"):
        with told(path):
            path.unlink(missing_ok=True)


def write_changed(path: Path, data: bytes) -> bool:
    """Replace a small file unless it holds these bytes already; whether it did not."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return False
    _own_folder(path.parent)
    write_private(path, data)
    return True


def _own_folder(path: Path) -> None:
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


def _tail(descriptor: int) -> Tail:
    found = _last_line(descriptor)
    if found is None:
        return Tail()
    begins, line = found
    last = _decoded(line, Line)
    return Tail(begins + len(line), begins, last, readable=last is not None)


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


def _decoded(line: bytes, shape: type[T]) -> T | None:
    try:
        return msgspec.json.decode(line, type=shape)
    except UNDECODABLE:
        return None


def _marks_of(path: Path, size: int) -> list[Mark]:
    """The index of the first `size` bytes of a file."""
    found: list[Mark] = []
    with path.open("rb") as file:
        offset = 0
        while offset < size and (line := file.readline()):
            if not found or offset // BLOCK != found[-1].offset // BLOCK:
                said = msgspec.json.decode(line, type=_Marked)
                found.append(Mark(said.position, offset, said.ts, said.event_id))
            offset += len(line)
    return found


def _placed(lines: Sequence[tuple[Event, bytes]], size: int) -> tuple[list[tuple[Event, int]], int]:
    """Each event with the place where its line begins, in a file of so many bytes; where the last one ends."""
    placed = []
    for event, line in lines:
        placed.append((event, size))
        size += len(line)
    return placed, size


def _joined(lines: Sequence[tuple[Event, bytes]]) -> bytes:
    return b"".join(line for _, line in lines)


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def _newline_before(descriptor: int, end: int) -> int | None:
    """Where the last newline before `end` stands."""
    while end > 0:
        start = max(0, end - PIECE)
        os.lseek(descriptor, start, os.SEEK_SET)
        found = os.read(descriptor, end - start).rfind(b"\n")
        if found >= 0:
            return start + found
        end = start
    return None
