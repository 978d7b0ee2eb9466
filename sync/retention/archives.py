"""The archives of retention, as far as a wish to forget reaches them: what they hold of it goes, or is corrected.

Decisions
    An archive that holds a forgotten event is written anew without it, read back, and only then put in the place of the
    old one; every other stays, byte for byte. Killed in between, the old one stands and the next look does it again.
    A corrected event stays in it, in its place, with the payload that it has from now on.
    What cannot be read (damaged, sealed by hand, of a newer version) is left as it is and told, and stops no other;
    what cannot be opened (no permission, a broken disk or link) is tried again besides. Exports, and copies that lie
    elsewhere, are the user's: nothing here looks for them.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from sync.archive.container import Reading, Writing
from sync.archive.filing import write
from sync.errors import InvalidInput, StorageError
from sync.log.envelope import UNDECODABLE, from_wire
from sync.log.model import Event

SUFFIX: Final = ".xbm"
EVENTS: Final = "events/"  # the beginning of the names of parts that hold events

LeftOf = Callable[[Event], Event]  # the event as it is from now on; it goes where nothing is left of its payload
Unread = dict[str, InvalidInput | StorageError]  # the names of archives that cannot be read, and why

log = logging.getLogger(__name__)


def archives(folder: Path) -> list[Path]:
    """The oldest first, as their names have it."""
    return sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []


def events_of(path: Path, unread: Unread) -> Iterator[Event]:
    """Every event in an archive; one that cannot be read, or not to its end, is put into `unread`."""
    try:
        for name, data in Reading.read_through(path, None).parts():
            yield from (event for _, event in _lines(name, data))
    except (InvalidInput, StorageError) as error:
        log.warning("the archive %s is left as it is: %s", path.name, error.message)
        unread[path.name] = error


async def rewrite(path: Path, left_of: LeftOf, unread: Unread) -> int:
    """Write an archive anew with what is left of each event; how many go or change. Raises StorageError.

    Where nothing does, where it cannot be read, and after an error, the file is untouched.
    """
    changing = await asyncio.to_thread(lambda: sum(left_of(event) != event for event in events_of(path, unread)))
    if not changing or path.name in unread:
        return 0
    try:
        reading = await asyncio.to_thread(Reading.read_through, path, None)
        await write(path, None, partial(_fill, reading=reading, left_of=left_of), anew=True)
    except InvalidInput as error:  # it could be read a moment ago
        raise StorageError(f"{path} has changed while it was written anew") from error
    return changing


async def _fill(writing: Writing, *, reading: Reading, left_of: LeftOf) -> None:
    parts = reading.parts()
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        name, data = part
        if name.startswith(EVENTS):
            data = b"".join(_left(line, event, left_of(event)) for line, event in _lines(name, data))
        await asyncio.to_thread(writing.add, name, data)


def _left(line: bytes, event: Event, left: Event) -> bytes:
    if left == event:
        return line + b"\n"
    if not left.payload:
        return b""
    return msgspec.json.encode({**msgspec.json.decode(line), "payload": left.payload}) + b"\n"


def _lines(name: str, data: bytes) -> Iterator[tuple[bytes, Event]]:
    for line in data.splitlines() if name.startswith(EVENTS) else ():
        try:
            value = msgspec.json.decode(line)
        except UNDECODABLE as error:
            raise InvalidInput("one of its lines is no JSON") from error
        yield line, from_wire(value)
