"""An archive as a new file: whole, read back and then there, or not there at all."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from sync import __version__
from sync.archive.container import FORMAT, VERSION, About, Reading, Writing
from sync.archive.unfinished import remove_unfinished, unfinished
from sync.clock import Clock, timestamp
from sync.errors import InvalidInput
from sync.files import put_new, sync_folder, told
from sync.log import outbox_store
from sync.log.envelope import to_json
from sync.log.log import Log
from sync.log.model import Event

IN_A_PART: Final = 1_000  # events


@dataclass(frozen=True, slots=True)
class Filed:
    """`sha256`: of all parts, as the manifest has it."""

    bytes: int
    sha256: str


async def write(
    path: Path, passphrase: str | None, fill: Callable[[Writing], Awaitable[None]], *, anew: bool = False
) -> Filed:
    """Write what `fill` adds into a new file. Raises InvalidInput where there is one already, StorageError.

    `anew`: in the place of the one that is there. What killed writers of the same file left goes.
    """
    if not anew and await asyncio.to_thread(path.exists):
        raise _there(path)
    await asyncio.to_thread(remove_unfinished, path.parent, name=path.name)
    with unfinished(path) as (temporary, file):
        with told(path), file:
            writing = await asyncio.to_thread(Writing, file, passphrase, os.urandom)
            await fill(writing)
            manifest = await asyncio.to_thread(writing.finish)
            file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())
            size = file.tell()
        await asyncio.to_thread(Reading.read_through, temporary, passphrase)  # a backup that nobody can read is none
        with told(path):
            await asyncio.to_thread(_put, temporary, path, anew=anew)
    return Filed(size, manifest.sha256)


async def about(events: Log, head: int, clock: Clock) -> bytes:
    """The part that says what the archive is."""
    now, said_as = timestamp(clock.now()), await events.database.read(outbox_store.said_as)
    device_ids = tuple(sorted({events.device_id, *said_as}))
    return msgspec.json.encode(About(FORMAT, VERSION, now, __version__, events.device_id, head, device_ids))


def events_part(number: int, found: Sequence[Event]) -> tuple[str, bytes]:
    """Name and bytes of a part of events, a line each."""
    lines = b"".join(msgspec.json.encode(to_json(event)) + b"\n" for event in found)
    return f"events/{number:06}.jsonl", lines


def _put(temporary: Path, path: Path, *, anew: bool) -> None:
    try:
        (os.replace if anew else put_new)(temporary, path)
    except FileExistsError:  # by now
        raise _there(path) from None
    sync_folder(path.parent)


def _there(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} exists already", field="path", hint="Name a file that is not there yet.")
