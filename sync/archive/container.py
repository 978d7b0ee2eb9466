"""The container of an archive: a gzip'd tar, written and read as a stream in the memory of one part.

Members: about.json, events/000001.jsonl …, documents/…, settings.json, manifest.json. The manifest comes last, with
the hash of every part and of all together; an import verifies it before it reads. Any tar program reads an archive
that is not encrypted.
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
from sync.system.files import translate_os_errors

S = TypeVar("S", bound=msgspec.Struct)

FORMAT: Final = "xiaobai-memory archive"
VERSION: Final = 1
INFO_PART: Final = "about.json"
MANIFEST_PART: Final = "manifest.json"
MAX_PART_BYTES: Final = 128 * 1024 * 1024  # a thousand events of 60 KiB fit; a decompression bomb does not
MAX_TRAILING_BYTES: Final = 1024 * 1024  # padding after the last member
MAX_NAME_BYTES: Final = 64 * 1024  # a header that holds the next member's name
MAX_LINE_BYTES: Final = 512 * 1024  # an event has at most 64 KiB
MAX_PART_LINES: Final = 100_000  # an export writes a thousand
MAX_COMPRESSION_RATIO: Final = 256  # unpacked to packed size; text compresses less
MIN_PASSPHRASE_LENGTH: Final = 8  # a shorter one can be found by trying


_MAX_BYTES_OF: Final = {INFO_PART: 1024 * 1024, MANIFEST_PART: 16 * 1024 * 1024}  # decoded in one piece


class ArchivePart(msgspec.Struct, frozen=True):
    name: str
    bytes: int
    sha256: str


class ArchiveInfo(msgspec.Struct, frozen=True):
    """The description of an archive: the exporter's `device_id` and the newest position, `head`."""

    format: str
    version: int
    created_at: str
    program: str
    device_id: str
    head: int


class ArchiveManifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """`public_key`, `signature`: of the device that wrote the archive; missing in older ones."""

    parts: tuple[ArchivePart, ...]
    sha256: str
    public_key: str | None = None
    signature: str | None = None

    @property
    def signed_bytes(self) -> bytes:
        """Return what the device signs."""
        return f"xiaobai-memory archive 1\n{self.sha256}\n".encode()


def hash_parts(parts: tuple[ArchivePart, ...]) -> str:
    """Return the hash over the names and hashes of all parts, in order."""
    return hashlib.sha256("".join(f"{part.name} {part.sha256}\n" for part in parts).encode()).hexdigest()


class ArchiveWriter:
    """Writes an archive to an open file."""

    def __init__(self, file: BinaryIO, passphrase: str | None, random_bytes: Callable[[int], bytes]) -> None:
        self._sealing = (
            None if passphrase is None else EncryptingWriter(file, check_passphrase(passphrase), random_bytes)
        )
        beneath: Any = self._sealing or file
        self._gzip = gzip.GzipFile(fileobj=beneath, mode="wb", compresslevel=6, filename="", mtime=0)
        self._tar = tarfile.open(fileobj=self._gzip, mode="w|", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - see finish
        self._parts: list[ArchivePart] = []

    def add(self, name: str, data: bytes) -> None:
        self._write_member(name, data)
        self._parts.append(ArchivePart(name, len(data), hashlib.sha256(data).hexdigest()))

    def manifest(self) -> ArchiveManifest:
        """Return the manifest of the parts so far, without a signature."""
        return ArchiveManifest(tuple(self._parts), hash_parts(tuple(self._parts)))

    def finish(self, manifest: ArchiveManifest | None = None) -> ArchiveManifest:
        """Write the manifest and flush; the file stays open."""
        manifest = manifest or self.manifest()
        self._write_member(MANIFEST_PART, msgspec.json.encode(manifest))
        self._tar.close()
        self._gzip.close()
        if self._sealing is not None:
            self._sealing.close()
        return manifest

    def _write_member(self, name: str, data: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(data), 0o600
        self._tar.addfile(info, io.BytesIO(data))


class ArchiveReader:
    """A verified archive on disk."""

    def __init__(self, path: Path, passphrase: str | None, info: ArchiveInfo, manifest: ArchiveManifest) -> None:
        self.info, self.manifest = info, manifest
        self._path, self._passphrase = path, passphrase

    @classmethod
    def open_verified(cls, path: Path, passphrase: str | None, on_progress: Callable[[], None] | None = None) -> Self:
        """Read all parts and verify them; `on_progress` is called for each. Raises InvalidInput."""
        parts: list[ArchivePart] = []
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
            parts.append(ArchivePart(name, len(data), hashlib.sha256(data).hexdigest()))
        if about is None or manifest is None:
            raise _damaged_error("its manifest is missing, it was cut off")
        if manifest.parts != tuple(parts) or manifest.sha256 != hash_parts(manifest.parts):
            raise _damaged_error("a part of it is not what the manifest says")
        return cls(path, passphrase, about, manifest)

    def read_parts(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and bytes of each part, verified again: the file may have changed."""
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
    """Return how many bytes a file of this size may unpack to; text does not compress further."""
    return max(MAX_PART_BYTES * 4, path.stat().st_size * MAX_COMPRESSION_RATIO)


def _tar_members(unpacked: gzip.GzipFile, limit: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of each member in bounded memory; `tarfile` would read names of any size."""
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
    if len(unpacked.read(MAX_TRAILING_BYTES)) == MAX_TRAILING_BYTES:  # gzip verifies its checksum at the end
        raise _damaged_error("something stands behind its end")


def _member_content(unpacked: gzip.GzipFile, size: int, limit: int) -> bytes:
    """Return the bytes of a member, without the padding of its last block."""
    if not 0 <= size <= limit:
        raise _damaged_error("it holds what no export writes")
    data = unpacked.read(size)
    unpacked.read(-size % tarfile.BLOCKSIZE)
    if len(data) != size:
        raise EOFError
    return data


def _long_name(kind: bytes, data: bytes) -> str | None:
    """Return the next member's name from a header of PAX or GNU tar."""
    if kind == tarfile.XHDTYPE:
        found = re.search(rb"(?:^|\n)\d+ path=([^\n]*)\n", data)
        return found[1].decode("utf-8", "surrogateescape") if found else None
    return data.rstrip(b"\0").decode("utf-8", "surrogateescape")


def _check_event_lines(name: str, data: bytes) -> bytes:
    """Refuse a part with too many or too long lines, which would take minutes to decode."""
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
