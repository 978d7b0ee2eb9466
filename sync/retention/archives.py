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
import filecmp
import logging
import secrets
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from sync.archive.archive_file import write_archive
from sync.archive.container import ArchiveReader, ArchiveWriter
from sync.errors import InvalidInput, StorageError
from sync.log.envelope import DECODE_ERRORS, from_wire
from sync.log.model import Event
from sync.system.atomic_swap import rename_no_replace
from sync.system.files import make_private_folder, sync_folder, translate_os_errors

SUFFIX: Final = ".xbm"
EVENT_PARTS: Final = "events/"  # the beginning of the names of parts that hold events

EffectiveEvent = Callable[
    [Event], Event
]  # the event as it is from now on; it goes where nothing is left of its payload
UnreadableArchives = dict[str, InvalidInput | StorageError]  # the names of archives that cannot be read, and why

log = logging.getLogger(__name__)


def list_archives(folder: Path) -> list[Path]:
    """The oldest first, as their names have it."""
    return sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []


def make_folders(folder: Path) -> None:
    """The folders of the archives, there also after a power loss: the log is about to forget what lies in them."""
    with translate_os_errors(folder):
        for path in (folder.parent, folder):
            make_private_folder(path)
            sync_folder(path.parent)


def move_archives(source: Path, target: Path) -> None:
    """Move all archives of a folder into another. Killed, it may be repeated. Raises StorageError."""
    make_folders(target)
    with translate_os_errors(source):
        for path in list_archives(source):
            _move_archive(path, target / path.name)
        sync_folder(target)
        sync_folder(source)


def _move_archive(path: Path, to: Path) -> None:
    """In nobody's place; one that is there already, since the power went before it was gone here, is not doubled."""
    try:
        rename_no_replace(path, to)
    except FileExistsError:
        if filecmp.cmp(path, to, shallow=False):
            path.unlink()
        else:
            rename_no_replace(path, to.with_name(f"{path.stem}-{secrets.token_hex(4)}{SUFFIX}"))


def read_archived_events(path: Path, unreadable: UnreadableArchives) -> Iterator[Event]:
    """Every event in an archive; one that cannot be read, or not to its end, is put into `unread`."""
    try:
        for name, data in ArchiveReader.open_verified(path, None).read_parts():
            yield from (event for _, event in _event_lines(name, data))
    except (InvalidInput, StorageError) as error:
        log.warning("the archive %s is left as it is: %s", path.name, error.message)
        unreadable[path.name] = error


async def rewrite(path: Path, effective_event: EffectiveEvent, unreadable: UnreadableArchives) -> int:
    """Write an archive anew with what is left of each event; how many go or change. Raises StorageError.

    Where nothing does, where it cannot be read, and after an error, the file is untouched.
    """
    changing = await asyncio.to_thread(
        lambda: sum(effective_event(event) != event for event in read_archived_events(path, unreadable))
    )
    if not changing or path.name in unreadable:
        return 0
    try:
        reading = await asyncio.to_thread(ArchiveReader.open_verified, path, None)
        await write_archive(
            path, None, partial(_fill, reading=reading, effective_event=effective_event), replace_existing=True
        )
    except InvalidInput as error:  # it could be read a moment ago
        raise StorageError(f"{path} has changed while it was written anew") from error
    return changing


async def _fill(writing: ArchiveWriter, *, reading: ArchiveReader, effective_event: EffectiveEvent) -> None:
    parts = reading.read_parts()
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        name, data = part
        if name.startswith(EVENT_PARTS):
            data = b"".join(
                _effective_line(line, event, effective_event(event)) for line, event in _event_lines(name, data)
            )
        await asyncio.to_thread(writing.add, name, data)


def _effective_line(line: bytes, event: Event, left: Event) -> bytes:
    if left == event:
        return line + b"\n"
    if not left.payload:
        return b""
    return msgspec.json.encode({**msgspec.json.decode(line), "payload": left.payload}) + b"\n"


def _event_lines(name: str, data: bytes) -> Iterator[tuple[bytes, Event]]:
    for line in data.splitlines() if name.startswith(EVENT_PARTS) else ():
        try:
            value = msgspec.json.decode(line)
        except DECODE_ERRORS as error:
            raise InvalidInput("one of its lines is no JSON") from error
        yield line, from_wire(value)
