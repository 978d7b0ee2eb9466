"""Read the files of other programs; `sync.archive.chat_exports` parses their content."""

import json
import lzma
import os
import re
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Final, NamedTuple

import msgspec

from sync.archive.json_objects import scan_objects
from sync.archive.model import Skipped, SkippedCounts
from sync.errors import InvalidInput
from sync.log.envelope import DECODE_ERRORS
from sync.system.files import translate_os_errors

MAX_JSON_BYTES: Final = 1024 * 1024 * 1024
READ_SIZE: Final = 1024 * 1024  # bytes read at once
CONVERSATIONS_FILE: Final = "conversations.json"
EXPORT_PART: Final = re.compile(  # also conversations-000.json, projects/UUID.json
    r"(?:\A|/)(?:conversations(?:[-_.]?\d+)?|projects|memories|(?:conversations|projects|memories|design_chats)/[^/]+)\.json\Z"
)
SUPPORTED_SOURCES_HINT: Final = (
    "Give an archive of this program, a memory or notes in Markdown or text (a file or a folder), the app's database,"
    " or an export of Claude or ChatGPT (its zip, its folder or a conversations.json)."
)
SIGNATURE_BYTES: Final = 64  # enough to recognise a format
ZIP_ENCRYPTED_FLAG: Final = 0x1  # the flag of an encrypted member
# What unpacking raises besides OSError: damaged, or an unknown compression.
UNPACK_ERRORS: Final = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError)
SQLITE_SIGNATURE: Final = b"SQLite format 3\0"
TEXT_SUFFIXES: Final = frozenset({".md", ".markdown", ".txt"})
MAX_TEXT_BYTES: Final = 16 * 1024 * 1024  # bytes of a memory file or a page


class ExportPart(NamedTuple):
    """One file of an export."""

    name: str
    open: Callable[[], IO[bytes]]


def read_signature(path: Path) -> bytes:
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}", field="path", hint="Name a file that can be read here.")
    with path.open("rb") as file:
        return file.read(SIGNATURE_BYTES)


def is_export(path: Path, signature: bytes) -> bool:
    """Return whether a file is JSON or a zip, as exports of conversations are. All else is read as text."""
    if path.suffix.lower() in TEXT_SUFFIXES:  # its first character may be that of a link
        return False
    return signature.removeprefix(BOM_UTF8).lstrip()[:1] in {b"[", b"{"} or signature.startswith(b"PK")


def read_text_file(path: Path) -> bytes:
    """Return the bytes of a text file. Raises InvalidInput if it is too large, StorageError."""
    with translate_os_errors(path):
        if (size := path.stat().st_size) > MAX_TEXT_BYTES:
            raise InvalidInput(f"it has {size} bytes, at most {MAX_TEXT_BYTES} are read", field="path")
        return path.read_bytes()


def list_files(folder: Path, skipped: SkippedCounts) -> list[Path]:
    """Return the files below a folder in order; hidden files and folders, and links, are left out."""
    found = []
    with translate_os_errors(folder):
        for place, folders, names in os.walk(folder):
            visible = [name for name in names if not name.startswith(".")]
            hidden = len(names) - len(visible) + sum(name.startswith(".") for name in folders)
            skipped[Skipped.HIDDEN_FILES] += hidden
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            files = [
                path for name in sorted(visible) if (path := Path(place, name)).is_file() and not path.is_symlink()
            ]
            skipped[Skipped.OTHER_FILES] += len(visible) - len(files)
            found += files
    return found


def list_export_parts(folder: Path, files: Sequence[Path], skipped: SkippedCounts) -> list[ExportPart]:
    """Return the parts of an unpacked export; none if it is another folder."""
    parts = [file for file in files if EXPORT_PART.search(file.relative_to(folder).as_posix())]
    skipped[Skipped.OTHER_FILES] += len(files) - len(parts) if parts else 0
    return [ExportPart(file.relative_to(folder).as_posix(), partial(_open_file, file)) for file in parts]


@contextmanager
def open_export(path: Path, skipped: SkippedCounts) -> Iterator[list[ExportPart]]:
    """Yield the parts of a zip, or the file as the only part. Raises InvalidInput, StorageError."""
    with translate_os_errors(path):
        if not zipfile.is_zipfile(path):
            yield [ExportPart(path.name, partial(_open_file, path))]
            return
        try:
            with zipfile.ZipFile(path) as packed:
                yield _zipped_parts(path, packed, skipped)
        except UNPACK_ERRORS as error:
            raise InvalidInput(f"{path.name} is no export that is known here", field="path") from error


def read_values(
    parts: Sequence[ExportPart], check_cancelled: Callable[[], None], refuse: Callable[[str, str], None]
) -> Iterator[object]:
    """Yield the values of an export in bounded memory; a part whose rest cannot be read is refused alone.

    `check_cancelled` is called for each piece; it raises to stop.
    """
    for part in parts:
        try:
            with part.open() as file:
                yield from map(_decode_value, scan_objects(_read_pieces(file, check_cancelled)))
        except UNPACK_ERRORS:
            refuse(part.name, "it is no export that is known here")
        except InvalidInput as error:
            refuse(part.name, error.message)


def _decode_value(data: bytes) -> object:
    """Return a value, with damaged characters replaced; None if it is no JSON."""
    try:
        return msgspec.json.decode(data)
    except DECODE_ERRORS:
        pass
    try:  # lone surrogates, NaN and bytes that are not UTF-8
        text = json.dumps(json.loads(data.decode(errors="replace")), ensure_ascii=False)
        return json.loads(text.encode(errors="replace"))
    except (ValueError, RecursionError):
        return None


def _read_pieces(file: IO[bytes], check_cancelled: Callable[[], None]) -> Iterator[bytes]:
    read = 0
    while piece := file.read(READ_SIZE):
        check_cancelled()
        read += len(piece)
        _check_size(read)
        yield piece


def _zipped_parts(path: Path, packed: zipfile.ZipFile, skipped: SkippedCounts) -> list[ExportPart]:
    members = [info for info in packed.infolist() if not info.is_dir()]
    parts = sorted((one for one in members if EXPORT_PART.search(one.filename)), key=lambda one: one.filename)
    if not parts:
        raise InvalidInput(
            f"there is no {CONVERSATIONS_FILE} in {path.name}", field="path", hint=SUPPORTED_SOURCES_HINT
        )
    if any(one.flag_bits & ZIP_ENCRYPTED_FLAG for one in parts):
        raise InvalidInput(
            f"{path.name} is locked with a password",
            field="path",
            hint=f"Unpack it, and import the {CONVERSATIONS_FILE} that is in it.",
        )
    skipped[Skipped.OTHER_FILES] += len(members) - len(parts)
    return [ExportPart(one.filename, partial(packed.open, one)) for one in parts]


def _open_file(path: Path) -> IO[bytes]:
    _check_size(path.stat().st_size)
    return path.open("rb")


def _check_size(size: int) -> None:
    if size > MAX_JSON_BYTES:
        raise InvalidInput(f"it has {size} bytes, at most {MAX_JSON_BYTES} are read", field="path")
