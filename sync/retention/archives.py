"""Apply erasures and corrections to the archives of retention.

An archive with an erased event is rewritten, verified and then replaced; the others stay byte for byte. One that cannot
be read (damaged, encrypted, newer version) is left alone and reported. One that cannot be opened is tried again.
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

from sync.archive.archive_file import is_signed_by_account, write_archive
from sync.archive.container import ArchiveReader, ArchiveWriter
from sync.cloud.auth.event_signer import EventSigner
from sync.errors import InvalidInput, StorageError
from sync.log.envelope import DECODE_ERRORS, from_wire
from sync.log.model import Event
from sync.system.atomic_swap import rename_no_replace
from sync.system.files import make_private_folder, sync_folder, translate_os_errors

SUFFIX: Final = ".xbm"
EVENT_PARTS: Final = "events/"  # prefix of parts that hold events

EffectiveEvent = Callable[[Event], Event]  # the event after retractions; without a payload it is removed
UnreadableArchives = dict[str, InvalidInput | StorageError]  # archive name → reason

log = logging.getLogger(__name__)


def list_archives(folder: Path) -> list[Path]:
    """Return the archives, oldest first by name."""
    return sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []


def make_folders(folder: Path) -> None:
    """Create the folders of the archives and flush them: the log is about to lose what the archives hold."""
    with translate_os_errors(folder):
        for path in (folder.parent, folder):
            make_private_folder(path)
            sync_folder(path.parent)


def move_archives(source: Path, target: Path) -> None:
    """Move all archives of a folder into another. It may be repeated after a kill. Raises StorageError."""
    make_folders(target)
    with translate_os_errors(source):
        for path in list_archives(source):
            _move_archive(path, target / path.name)
        sync_folder(target)
        sync_folder(source)


def _move_archive(path: Path, to: Path) -> None:
    """Move an archive without replacing another; a copy left by an interrupted move is not duplicated."""
    try:
        rename_no_replace(path, to)
    except FileExistsError:
        if filecmp.cmp(path, to, shallow=False):
            path.unlink()
        else:
            rename_no_replace(path, to.with_name(f"{path.stem}-{secrets.token_hex(4)}{SUFFIX}"))


def read_archived_events(path: Path, unreadable: UnreadableArchives) -> Iterator[Event]:
    """Yield every event of an archive. An archive that cannot be read completely is added to `unreadable`."""
    try:
        for name, data in ArchiveReader.open_verified(path, None).read_parts():
            yield from (event for _, event in _event_lines(name, data))
    except (InvalidInput, StorageError) as error:
        log.warning("the archive %s is left as it is: %s", path.name, error.message)
        unreadable[path.name] = error


async def rewrite(
    path: Path, effective_event: EffectiveEvent, unreadable: UnreadableArchives, signer: EventSigner
) -> int:
    """Rewrite an archive with the effective events; return how many were removed or changed. Raises StorageError.

    If none changes, if the archive cannot be read, and after an error, the file is untouched. It is signed if it was.
    """
    changed = await asyncio.to_thread(
        lambda: sum(effective_event(event) != event for event in read_archived_events(path, unreadable))
    )
    if not changed or path.name in unreadable:
        return 0
    try:
        reader = await asyncio.to_thread(ArchiveReader.open_verified, path, None)
        fill = partial(_fill, reader=reader, effective_event=effective_event)
        signing = signer if await is_signed_by_account(reader.manifest, signer) else None
        await write_archive(path, None, fill, signer=signing, replace_existing=True)
    except InvalidInput as error:  # it was readable before
        raise StorageError(f"{path} changed while it was being rewritten") from error
    return changed


async def _fill(writer: ArchiveWriter, *, reader: ArchiveReader, effective_event: EffectiveEvent) -> None:
    parts = reader.read_parts()
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        name, data = part
        if name.startswith(EVENT_PARTS):
            data = b"".join(
                _effective_line(line, event, effective_event(event)) for line, event in _event_lines(name, data)
            )
        await asyncio.to_thread(writer.add, name, data)


def _effective_line(line: bytes, event: Event, effective: Event) -> bytes:
    if effective == event:
        return line + b"\n"
    if not effective.payload:
        return b""
    return msgspec.json.encode({**msgspec.json.decode(line), "payload": effective.payload}) + b"\n"


def _event_lines(name: str, data: bytes) -> Iterator[tuple[bytes, Event]]:
    for line in data.splitlines() if name.startswith(EVENT_PARTS) else ():
        try:
            value = msgspec.json.decode(line)
        except DECODE_ERRORS as error:
            raise InvalidInput("one of its lines is no JSON") from error
        yield line, from_wire(value)
