"""Files of other programs, read: what is in them stands in `sync.archive.conversations`."""

import lzma
import zipfile
import zlib
from codecs import BOM_UTF8
from pathlib import Path
from typing import Final

import msgspec

from sync.errors import InvalidInput
from sync.files import told
from sync.log.envelope import UNDECODABLE

LARGEST: Final = 1024 * 1024 * 1024  # bytes of JSON; it is decoded as a whole
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


def conversations(path: Path) -> object:
    """The JSON of an export, from the file itself or from the zip it came in. Raises InvalidInput, StorageError."""
    with told(path):
        try:
            return msgspec.json.decode(_bytes(path).removeprefix(BOM_UTF8))
        except (*UNDECODABLE, *UNPACKABLE) as error:
            raise InvalidInput(f"{path.name} is no export that is known here", field="path") from error


def _bytes(path: Path) -> bytes:
    if not zipfile.is_zipfile(path):
        _check(path.stat().st_size)
        return path.read_bytes()
    with zipfile.ZipFile(path) as packed:
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
        return packed.read(found)


def _check(size: int) -> None:
    if size > LARGEST:
        raise InvalidInput(f"it has {size} bytes, at most {LARGEST} are read", field="path")
