"""One file of parts: a tar in gzip, written and read as a stream, so that a million events need the memory of one part.

    about.json, events/000001.jsonl …, documents/…, settings.json, manifest.json

Decisions
    The manifest comes last, because only then the hashes are known: SHA-256 and size of every part, and one hash over
    all of them, the hash of the whole. An archive is read through and compared with it before anything is taken in.
    A version that a newer program wrote is refused by its number rather than half understood.
    Any tar reads an archive that is not sealed; a person needs nothing of ours to get at his memory.
"""

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, TypeVar

import msgspec

from sync.archive.encryption import MAGIC as SEALED
from sync.archive.encryption import DecryptingReader, EncryptingWriter
from sync.errors import InvalidInput
from sync.log.envelope import DECODE_ERRORS
from sync.log.model import Event
from sync.system.files import translate_os_errors

S = TypeVar("S", bound=msgspec.Struct)

FORMAT: Final = "xiaobai-memory archive"
VERSION: Final = 1
INFO_PART: Final = "about.json"
MANIFEST_PART: Final = "manifest.json"
MAX_PART_BYTES: Final = 128 * 1024 * 1024  # bytes; a thousand events of 60 KiB fit, a bomb does not
MAX_TRAILING_BYTES: Final = 1024 * 1024  # bytes behind the last member, which fill the last record
MAX_NAME_BYTES: Final = 64 * 1024  # bytes of a header with the next member's name
MAX_LINE_BYTES: Final = 512 * 1024  # bytes; an event has 64 KiB at most
MAX_PART_LINES: Final = 100_000  # of a part; an export writes a thousand
MAX_COMPRESSION_RATIO: Final = 256  # times a file's size; text repeats itself less
MIN_PASSPHRASE_LENGTH: Final = 8  # characters at least: a shorter one is found by trying


_MAX_BYTES_OF: Final = {INFO_PART: 1024 * 1024, MANIFEST_PART: 16 * 1024 * 1024}  # decoded as a whole


class ArchivePart(msgspec.Struct, frozen=True):
    name: str
    bytes: int
    sha256: str


class ArchiveInfo(msgspec.Struct, frozen=True):
    """What an archive says of itself. `device_id`: who wrote it; `head`: the newest position in it.

    `device_ids`: all under which the exporter itself spoke, since the app may have named it later; not in older ones.
    """

    format: str
    version: int
    created_at: str
    program: str
    device_id: str
    head: int
    device_ids: tuple[str, ...] = ()

    def is_from_exporter(self, event: Event) -> bool:
        """Whether the exporter said it itself; in an older archive also what no server has, as where there is none."""
        if event.device_id == self.device_id:
            return True
        return event.device_id in self.device_ids if self.device_ids else event.server_seq is None


class ArchiveManifest(msgspec.Struct, frozen=True):
    parts: tuple[ArchivePart, ...]
    sha256: str


def hash_parts(parts: tuple[ArchivePart, ...]) -> str:
    """The hash of the whole: over the names and hashes of all parts, in order."""
    return hashlib.sha256("".join(f"{part.name} {part.sha256}\n" for part in parts).encode()).hexdigest()


class ArchiveWriter:
    """An archive being written to an open file."""

    def __init__(self, file: BinaryIO, passphrase: str | None, random_bytes: Callable[[int], bytes]) -> None:
        self._sealing = (
            None if passphrase is None else EncryptingWriter(file, check_passphrase(passphrase), random_bytes)
        )
        beneath: Any = self._sealing or file
        self._gzip = gzip.GzipFile(fileobj=beneath, mode="wb", compresslevel=6, filename="", mtime=0)
        self._tar = tarfile.open(fileobj=self._gzip, mode="w|", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - see finish
        self._parts: list[ArchivePart] = []

    def add(self, name: str, data: bytes) -> None:
        self._put(name, data)
        self._parts.append(ArchivePart(name, len(data), hashlib.sha256(data).hexdigest()))

    def finish(self) -> ArchiveManifest:
        """Write the manifest and all that waits; the file stays open."""
        manifest = ArchiveManifest(tuple(self._parts), hash_parts(tuple(self._parts)))
        self._put(MANIFEST_PART, msgspec.json.encode(manifest))
        self._tar.close()
        self._gzip.close()
        if self._sealing is not None:
            self._sealing.close()
        return manifest

    def _put(self, name: str, data: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(data), 0o600
        self._tar.addfile(info, io.BytesIO(data))


class ArchiveReader:
    """An archive on disk, read through and found whole."""

    def __init__(self, path: Path, passphrase: str | None, info: ArchiveInfo, manifest: ArchiveManifest) -> None:
        self.info, self.manifest = info, manifest
        self._path, self._passphrase = path, passphrase

    @classmethod
    def open_verified(cls, path: Path, passphrase: str | None, on_progress: Callable[[], None] | None = None) -> Self:
        """Read all of it and compare; InvalidInput says what is wrong. `heard` is called for each part."""
        found: list[ArchivePart] = []
        about: ArchiveInfo | None = None
        manifest: ArchiveManifest | None = None
        for name, data in _read_members(path, passphrase, on_progress):
            if manifest is not None:
                raise _damaged_error("something stands behind its manifest")
            if name == MANIFEST_PART:
                manifest = _decode(data, ArchiveManifest)
                continue
            if name == INFO_PART:
                about = _decode_info(data)
            found.append(ArchivePart(name, len(data), hashlib.sha256(data).hexdigest()))
        if about is None or manifest is None:
            raise _damaged_error("its manifest is missing, it was cut off")
        if manifest.parts != tuple(found) or manifest.sha256 != hash_parts(manifest.parts):
            raise _damaged_error("a part of it is not what the manifest says")
        return cls(path, passphrase, about, manifest)

    def read_parts(self) -> Iterator[tuple[str, bytes]]:
        """Name and bytes of each part, compared once more: the file may have changed since it was checked."""
        hashes: Mapping[str, str] = {part.name: part.sha256 for part in self.manifest.parts}
        for name, data in _read_members(self._path, self._passphrase, None):
            if name == MANIFEST_PART:
                return
            if hashes.get(name) != hashlib.sha256(data).hexdigest():
                raise _damaged_error("it has changed while it was read")
            yield name, data


def is_archive(beginning: bytes) -> bool:
    return beginning.startswith((SEALED, b"\x1f\x8b"))


def check_passphrase(passphrase: str) -> str:
    if len(passphrase) < MIN_PASSPHRASE_LENGTH:
        raise InvalidInput(f"a passphrase has at least {MIN_PASSPHRASE_LENGTH} characters", field="passphrase")
    return passphrase


def _read_members(
    path: Path, passphrase: str | None, on_progress: Callable[[], None] | None
) -> Iterator[tuple[str, bytes]]:
    with translate_os_errors(path), path.open("rb") as file, _translate_unpack_errors():
        beginning = file.read(len(SEALED))
        file.seek(0)
        beneath: Any = file
        if beginning == SEALED:
            if passphrase is None:
                raise InvalidInput("this archive is sealed: it takes its passphrase", field="passphrase")
            beneath = io.BufferedReader(DecryptingReader(file, passphrase), 1 << 16)
        with closing(gzip.GzipFile(fileobj=beneath, mode="rb")) as unpacked:
            for name, data in _tar_members(unpacked, _max_unpacked_bytes(path)):
                if on_progress is not None:
                    on_progress()
                yield name, data


def _max_unpacked_bytes(path: Path) -> int:
    """Bytes that a file of this size may unpack to; what is packed more tightly is no text."""
    return max(MAX_PART_BYTES * 4, path.stat().st_size * MAX_COMPRESSION_RATIO)


def _tar_members(unpacked: gzip.GzipFile, limit: int) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each member of a tar, in bounded memory: `tarfile` reads names of any size."""
    name: str | None = None
    while (header := unpacked.read(tarfile.BLOCKSIZE)) and header != bytes(tarfile.BLOCKSIZE):
        info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        if (limit := limit - tarfile.BLOCKSIZE - info.size) < 0:
            raise _damaged_error("it unpacks to more than text does")
        if info.type in {tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME}:
            name = _long_name(info.type, _member_content(unpacked, info.size, MAX_NAME_BYTES))
        elif info.type in {tarfile.REGTYPE, tarfile.AREGTYPE}:
            part = name or info.name
            yield (
                part,
                _check_event_lines(part, _member_content(unpacked, info.size, _MAX_BYTES_OF.get(part, MAX_PART_BYTES))),
            )
            name = None
        else:
            raise _damaged_error("it holds what no export writes")
    if (
        len(unpacked.read(MAX_TRAILING_BYTES)) == MAX_TRAILING_BYTES
    ):  # to the very end: only there the last bytes are checked
        raise _damaged_error("something stands behind its end")


def _member_content(unpacked: gzip.GzipFile, size: int, limit: int) -> bytes:
    """The bytes of a member, without those that fill its last block."""
    if not 0 <= size <= limit:
        raise _damaged_error("it holds what no export writes")
    data = unpacked.read(size)
    unpacked.read(-size % tarfile.BLOCKSIZE)
    if len(data) != size:
        raise EOFError
    return data


def _long_name(kind: bytes, data: bytes) -> str | None:
    """The name that a member of its own holds for the next one: a path of PAX or of GNU's tar."""
    if kind == tarfile.XHDTYPE:
        found = re.search(rb"(?:^|\n)\d+ path=([^\n]*)\n", data)
        return found[1].decode("utf-8", "surrogateescape") if found else None
    return data.rstrip(b"\0").decode("utf-8", "surrogateescape")


def _check_event_lines(name: str, data: bytes) -> bytes:
    """A part of events has lines as events have them: what is longer, or more, would be decoded for minutes."""
    if not name.startswith("events/"):
        return data
    if data.count(b"\n") > MAX_PART_LINES:
        raise _damaged_error("it holds lines that are no events")
    at = 0
    while len(data) - at > MAX_LINE_BYTES:
        if (at := data.find(b"\n", at, at + MAX_LINE_BYTES) + 1) == 0:
            raise _damaged_error("it holds lines that are no events")
    return data


@contextmanager
def _translate_unpack_errors() -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _damaged_error("it is no whole archive") from error


def _decode_info(data: bytes) -> ArchiveInfo:
    about = _decode(data, ArchiveInfo)
    if about.format != FORMAT or about.version > VERSION:
        raise InvalidInput(
            f"this archive has version {about.version}, this program reads up to {VERSION}",
            field="path",
            hint="Update xiaobai-memory and import it again; nothing was taken in.",
        )
    return about


def _decode(data: bytes, shape: type[S]) -> S:
    try:
        return msgspec.json.decode(data, type=shape)
    except DECODE_ERRORS as error:
        raise _damaged_error("what it says of itself cannot be read") from error


def _damaged_error(why: str) -> InvalidInput:
    return InvalidInput(f"the archive is damaged: {why}", field="path", hint="Take another copy; nothing was taken in.")
