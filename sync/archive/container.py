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

from sync.archive.sealed import MAGIC as SEALED
from sync.archive.sealed import Sealing, Unsealing
from sync.errors import InvalidInput
from sync.files import told
from sync.log.envelope import UNDECODABLE
from sync.log.model import Event

S = TypeVar("S", bound=msgspec.Struct)

FORMAT: Final = "xiaobai-memory archive"
VERSION: Final = 1
ABOUT: Final = "about.json"
MANIFEST: Final = "manifest.json"
LARGEST_PART: Final = 128 * 1024 * 1024  # bytes; a thousand events of 60 KiB fit, a bomb does not
LARGEST_END: Final = 1024 * 1024  # bytes behind the last member, which fill the last record
LONGEST_NAME: Final = 64 * 1024  # bytes of a header with the next member's name
LONGEST_LINE: Final = 512 * 1024  # bytes; an event has 64 KiB at most
MOST_LINES: Final = 100_000  # of a part; an export writes a thousand
TIGHTEST: Final = 256  # times a file's size; text repeats itself less
PASSPHRASE: Final = 8  # characters at least: a shorter one is found by trying


_SMALL: Final = {ABOUT: 1024 * 1024, MANIFEST: 16 * 1024 * 1024}  # decoded as a whole


class Part(msgspec.Struct, frozen=True):
    name: str
    bytes: int
    sha256: str


class About(msgspec.Struct, frozen=True):
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

    def is_own(self, event: Event) -> bool:
        """Whether the exporter said it itself; in an older archive also what no server has, as where there is none."""
        if event.device_id == self.device_id:
            return True
        return event.device_id in self.device_ids if self.device_ids else event.server_seq is None


class Manifest(msgspec.Struct, frozen=True):
    parts: tuple[Part, ...]
    sha256: str


def whole(parts: tuple[Part, ...]) -> str:
    """The hash of the whole: over the names and hashes of all parts, in order."""
    return hashlib.sha256("".join(f"{part.name} {part.sha256}\n" for part in parts).encode()).hexdigest()


class Writing:
    """An archive being written to an open file."""

    def __init__(self, file: BinaryIO, passphrase: str | None, random_bytes: Callable[[int], bytes]) -> None:
        self._sealing = None if passphrase is None else Sealing(file, long_enough(passphrase), random_bytes)
        beneath: Any = self._sealing or file
        self._gzip = gzip.GzipFile(fileobj=beneath, mode="wb", compresslevel=6, filename="", mtime=0)
        self._tar = tarfile.open(fileobj=self._gzip, mode="w|", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - see finish
        self._parts: list[Part] = []

    def add(self, name: str, data: bytes) -> None:
        self._put(name, data)
        self._parts.append(Part(name, len(data), hashlib.sha256(data).hexdigest()))

    def finish(self) -> Manifest:
        """Write the manifest and all that waits; the file stays open."""
        manifest = Manifest(tuple(self._parts), whole(tuple(self._parts)))
        self._put(MANIFEST, msgspec.json.encode(manifest))
        self._tar.close()
        self._gzip.close()
        if self._sealing is not None:
            self._sealing.close()
        return manifest

    def _put(self, name: str, data: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(data), 0o600
        self._tar.addfile(info, io.BytesIO(data))


class Reading:
    """An archive on disk, read through and found whole."""

    def __init__(self, path: Path, passphrase: str | None, about: About, manifest: Manifest) -> None:
        self.about, self.manifest = about, manifest
        self._path, self._passphrase = path, passphrase

    @classmethod
    def read_through(cls, path: Path, passphrase: str | None, heard: Callable[[], None] | None = None) -> Self:
        """Read all of it and compare; InvalidInput says what is wrong. `heard` is called for each part."""
        found: list[Part] = []
        about: About | None = None
        manifest: Manifest | None = None
        for name, data in _members(path, passphrase, heard):
            if manifest is not None:
                raise _damaged("something stands behind its manifest")
            if name == MANIFEST:
                manifest = _decoded(data, Manifest)
                continue
            if name == ABOUT:
                about = _understood(data)
            found.append(Part(name, len(data), hashlib.sha256(data).hexdigest()))
        if about is None or manifest is None:
            raise _damaged("its manifest is missing, it was cut off")
        if manifest.parts != tuple(found) or manifest.sha256 != whole(manifest.parts):
            raise _damaged("a part of it is not what the manifest says")
        return cls(path, passphrase, about, manifest)

    def parts(self) -> Iterator[tuple[str, bytes]]:
        """Name and bytes of each part, compared once more: the file may have changed since it was checked."""
        hashes: Mapping[str, str] = {part.name: part.sha256 for part in self.manifest.parts}
        for name, data in _members(self._path, self._passphrase, None):
            if name == MANIFEST:
                return
            if hashes.get(name) != hashlib.sha256(data).hexdigest():
                raise _damaged("it has changed while it was read")
            yield name, data


def is_archive(beginning: bytes) -> bool:
    return beginning.startswith((SEALED, b"\x1f\x8b"))


def long_enough(passphrase: str) -> str:
    if len(passphrase) < PASSPHRASE:
        raise InvalidInput(f"a passphrase has at least {PASSPHRASE} characters", field="passphrase")
    return passphrase


def _members(path: Path, passphrase: str | None, heard: Callable[[], None] | None) -> Iterator[tuple[str, bytes]]:
    with told(path), path.open("rb") as file, _telling():
        beginning = file.read(len(SEALED))
        file.seek(0)
        beneath: Any = file
        if beginning == SEALED:
            if passphrase is None:
                raise InvalidInput("this archive is sealed: it takes its passphrase", field="passphrase")
            beneath = io.BufferedReader(Unsealing(file, passphrase), 1 << 16)
        with closing(gzip.GzipFile(fileobj=beneath, mode="rb")) as unpacked:
            for name, data in _parts(unpacked, _most_unpacked(path)):
                if heard is not None:
                    heard()
                yield name, data


def _most_unpacked(path: Path) -> int:
    """Bytes that a file of this size may unpack to; what is packed more tightly is no text."""
    return max(LARGEST_PART * 4, path.stat().st_size * TIGHTEST)


def _parts(unpacked: gzip.GzipFile, most: int) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each member of a tar, in bounded memory: `tarfile` reads names of any size."""
    name: str | None = None
    while (header := unpacked.read(tarfile.BLOCKSIZE)) and header != bytes(tarfile.BLOCKSIZE):
        info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        if (most := most - tarfile.BLOCKSIZE - info.size) < 0:
            raise _damaged("it unpacks to more than text does")
        if info.type in {tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME}:
            name = _long_name(info.type, _content(unpacked, info.size, LONGEST_NAME))
        elif info.type in {tarfile.REGTYPE, tarfile.AREGTYPE}:
            part = name or info.name
            yield part, _checked(part, _content(unpacked, info.size, _SMALL.get(part, LARGEST_PART)))
            name = None
        else:
            raise _damaged("it holds what no export writes")
    if len(unpacked.read(LARGEST_END)) == LARGEST_END:  # to the very end: only there the last bytes are checked
        raise _damaged("something stands behind its end")


def _content(unpacked: gzip.GzipFile, size: int, most: int) -> bytes:
    """The bytes of a member, without those that fill its last block."""
    if not 0 <= size <= most:
        raise _damaged("it holds what no export writes")
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


def _checked(name: str, data: bytes) -> bytes:
    """A part of events has lines as events have them: what is longer, or more, would be decoded for minutes."""
    if not name.startswith("events/"):
        return data
    if data.count(b"\n") > MOST_LINES:
        raise _damaged("it holds lines that are no events")
    at = 0
    while len(data) - at > LONGEST_LINE:
        if (at := data.find(b"\n", at, at + LONGEST_LINE) + 1) == 0:
            raise _damaged("it holds lines that are no events")
    return data


@contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _damaged("it is no whole archive") from error


def _understood(data: bytes) -> About:
    about = _decoded(data, About)
    if about.format != FORMAT or about.version > VERSION:
        raise InvalidInput(
            f"this archive has version {about.version}, this program reads up to {VERSION}",
            field="path",
            hint="Update xiaobai-memory and import it again; nothing was taken in.",
        )
    return about


def _decoded(data: bytes, shape: type[S]) -> S:
    try:
        return msgspec.json.decode(data, type=shape)
    except UNDECODABLE as error:
        raise _damaged("what it says of itself cannot be read") from error


def _damaged(why: str) -> InvalidInput:
    return InvalidInput(f"the archive is damaged: {why}", field="path", hint="Take another copy; nothing was taken in.")
