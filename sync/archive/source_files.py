"""Read the files of other programs; `sync.archive.chat_exports` parses their content."""

import lzma
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import msgspec

from sync.archive.json_objects import scan_objects
from sync.errors import InvalidInput
from sync.log.envelope import DECODE_ERRORS
from sync.system.files import translate_os_errors

MAX_JSON_BYTES: Final = 1024 * 1024 * 1024
READ_SIZE: Final = 1024 * 1024  # bytes read at once
CONVERSATIONS_FILE: Final = "conversations.json"
SIGNATURE_BYTES: Final = 64  # enough to recognise a format
ZIP_ENCRYPTED_FLAG: Final = 0x1  # the flag of an encrypted member
# What unpacking raises besides OSError: damaged, or an unknown compression.
UNPACK_ERRORS: Final = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError)
SQLITE_SIGNATURE: Final = b"SQLite format 3\0"
MAX_TEXT_BYTES: Final = 16 * 1024 * 1024  # bytes of a memory file or a page


def read_signature(path: Path) -> bytes:
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}", field="path", hint="Name a file that can be read here.")
    with path.open("rb") as file:
        return file.read(SIGNATURE_BYTES)


def is_json(signature: bytes) -> bool:
    """Return whether a file is JSON or a zip, as exports of conversations are. All else is read as text."""
    return signature.removeprefix(BOM_UTF8).lstrip()[:1] in {b"[", b"{"} or signature.startswith(b"PK")


def read_text_file(path: Path) -> bytes:
    """Return the bytes of a text file. Raises InvalidInput if it is too large, StorageError."""
    with translate_os_errors(path):
        if (size := path.stat().st_size) > MAX_TEXT_BYTES:
            raise InvalidInput(f"it has {size} bytes, at most {MAX_TEXT_BYTES} are read", field="path")
        return path.read_bytes()


def read_conversations(path: Path, check_cancelled: Callable[[], None]) -> Iterator[object]:
    """Yield the items of an export, from the file or from its zip, in bounded memory.

    `check_cancelled` is called for each piece; it raises to stop. Raises InvalidInput, StorageError.
    """
    with translate_os_errors(path), _open_export(path) as file:
        try:
            for item in scan_objects(_read_pieces(file, check_cancelled)):
                yield msgspec.json.decode(item)
        except (*DECODE_ERRORS, *UNPACK_ERRORS) as error:
            raise InvalidInput(f"{path.name} is no export that is known here", field="path") from error


def _read_pieces(file: IO[bytes], check_cancelled: Callable[[], None]) -> Iterator[bytes]:
    read = 0
    while piece := file.read(READ_SIZE):
        check_cancelled()
        read += len(piece)
        _check_size(read)
        yield piece


@contextmanager
def _open_export(path: Path) -> Iterator[IO[bytes]]:
    """Open the JSON of an export."""
    if not zipfile.is_zipfile(path):
        _check_size(path.stat().st_size)
        with path.open("rb") as file:
            yield file
        return
    try:
        with zipfile.ZipFile(path) as packed, packed.open(_conversations_member(path, packed)) as file:
            yield file
    except UNPACK_ERRORS as error:
        raise InvalidInput(f"{path.name} is no export that is known here", field="path") from error


def _conversations_member(path: Path, packed: zipfile.ZipFile) -> zipfile.ZipInfo:
    member = next((info for info in packed.infolist() if info.filename.rpartition("/")[2] == CONVERSATIONS_FILE), None)
    if member is None:
        raise InvalidInput(f"there is no {CONVERSATIONS_FILE} in {path.name}", field="path")
    if member.flag_bits & ZIP_ENCRYPTED_FLAG:
        raise InvalidInput(
            f"{path.name} is locked with a password",
            field="path",
            hint=f"Unpack it, and import the {CONVERSATIONS_FILE} that is in it.",
        )
    _check_size(member.file_size)
    return member


def _check_size(size: int) -> None:
    if size > MAX_JSON_BYTES:
        raise InvalidInput(f"it has {size} bytes, at most {MAX_JSON_BYTES} are read", field="path")
