"""The archives of retention, as far as a wish to forget reaches them: what they hold of it is taken out.

Decisions
    An archive that holds a forgotten event is written anew without it, read back, and only then put in the place of the
    old one; every other stays, byte for byte. Killed in between, the old one stands and the next look does it again.
    What cannot be read (damaged, sealed by hand, of a newer version) is left as it is and told. Exports, and copies
    that lie elsewhere, are the user's: nothing here looks for them.
"""

import asyncio
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from sync.archive.container import Reading, Writing
from sync.archive.filing import write
from sync.errors import InvalidInput
from sync.log.envelope import from_wire
from sync.log.model import Event

SUFFIX: Final = ".xbm"
EVENTS: Final = "events/"  # the beginning of the names of parts that hold events

log = logging.getLogger(__name__)


def archives(folder: Path) -> list[Path]:
    """The oldest first, as their names have it."""
    return sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []


def events_of(path: Path) -> Iterator[Event]:
    """Every event in an archive; none of one that cannot be read."""
    try:
        for name, data in Reading.checked(path, None).parts():
            yield from (event for _, event in _lines(name, data))
    except InvalidInput as error:
        log.warning("the archive %s is left as it is: %s", path.name, error.message)


async def take_out(path: Path, event_ids: frozenset[str]) -> int:
    """Write an archive anew without these events; how many that were. Raises StorageError, and then it is untouched."""
    going = await asyncio.to_thread(lambda: sum(event.event_id in event_ids for event in events_of(path)))
    if going:
        reading = await asyncio.to_thread(Reading.checked, path, None)
        await write(path, None, partial(_fill, reading=reading, event_ids=event_ids), anew=True)
    return going


async def _fill(writing: Writing, *, reading: Reading, event_ids: frozenset[str]) -> None:
    parts = reading.parts()
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        name, data = part
        if name.startswith(EVENTS):
            data = b"".join(line + b"\n" for line, event in _lines(name, data) if event.event_id not in event_ids)
        await asyncio.to_thread(writing.add, name, data)


def _lines(name: str, data: bytes) -> Iterator[tuple[bytes, Event]]:
    for line in data.splitlines() if name.startswith(EVENTS) else ():
        yield line, from_wire(msgspec.json.decode(line))
