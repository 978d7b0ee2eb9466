"""Files of other programs, read: what is in them stands in `sync.archive.conversations`."""

import lzma
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import msgspec

from sync.archive.items import items
from sync.errors import InvalidInput
from sync.files import told
from sync.log.envelope import UNDECODABLE

LARGEST: Final = 1024 * 1024 * 1024  # bytes of JSON
PIECE: Final = 1024 * 1024  # bytes read at once
CONVERSATIONS: Final = "conversations.json"
BEGINNING: Final = 64  # bytes that tell what a file is
LOCKED: Final = 0x1  # the flag of a member of a zip that takes a password
# What unpacking raises beside OSError: damaged in one way or another, or packed in a way that is not known here.
UNPACKABLE: Final = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError)
SQLITE: Final = b"SQLite format 3\0"
LARGEST_TEXT: Final = 16 * 1024 * 1024  # bytes of a memory file or a page


def beginning(path: Path) -> bytes:
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}", field="path", hint="Name a file that can be read here.")
    with path.open("rb") as file:
        return file.read(BEGINNING)


def is_json(beginning: bytes) -> bool:
    """Whether it is JSON or a zip with it, as an export of conversations is; all else is read as text."""
    return beginning.removeprefix(BOM_UTF8).lstrip()[:1] in {b"[", b"{"} or beginning.startswith(b"PK")


def text(path: Path) -> bytes:
    """The bytes of a text file. Raises InvalidInput where they are too many, StorageError."""
    with told(path):
        if (size := path.stat().st_size) > LARGEST_TEXT:
            raise InvalidInput(f"it has {size} bytes, at most {LARGEST_TEXT} are read", field="path")
        return path.read_bytes()


def conversations(path: Path, go_on: Callable[[], None]) -> Iterator[object]:
    """What an export lists, from the file itself or from the zip it came in, in bounded memory.

    `go_on` is called for each piece; it raises to end the reading. Raises InvalidInput, StorageError.
    """
    with told(path), _export(path) as file:
        try:
            for item in items(_pieces(file, go_on)):
                yield msgspec.json.decode(item)
        except (*UNDECODABLE, *UNPACKABLE) as error:
            raise InvalidInput(f"{path.name} is no export that is known here", field="path") from error


def _pieces(file: IO[bytes], go_on: Callable[[], None]) -> Iterator[bytes]:
    read = 0
    while piece := file.read(PIECE):
        go_on()
        read += len(piece)
        _check(read)
        yield piece


@contextmanager
def _export(path: Path) -> Iterator[IO[bytes]]:
    """The JSON of an export, opened."""
    if not zipfile.is_zipfile(path):
        _check(path.stat().st_size)
        with path.open("rb") as file:
            yield file
        return
    try:
        with zipfile.ZipFile(path) as packed, packed.open(_member(path, packed)) as file:
            yield file
    except UNPACKABLE as error:
        raise InvalidInput(f"{path.name} is no export that is known here", field="path") from error


def _member(path: Path, packed: zipfile.ZipFile) -> zipfile.ZipInfo:
    found = next((info for info in packed.infolist() if info.filename.rpartition("/")[2] == CONVERSATIONS), None)
    if found is None:
        raise InvalidInput(f"there is no {CONVERSATIONS} in {path.name}", field="path")
    if found.flag_bits & LOCKED:
        raise InvalidInput(
            f"{path.name} is locked with a password",
            field="path",
            hint=f"Unpack it, and import the {CONVERSATIONS} that is in it.",
        )
    _check(found.file_size)
    return found


def _check(size: int) -> None:
    if size > LARGEST:
        raise InvalidInput(f"it has {size} bytes, at most {LARGEST} are read", field="path")
