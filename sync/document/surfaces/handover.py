"""Hand the memory file over from the leaving profile to the arriving one, when the user switches accounts.

Nothing is lost: what the leaving profile has not recorded becomes its events or is parked, and only then are the bytes
replaced, by compare-and-swap. The steps and what happens if the process is killed: docs/decisions/008-handover.md.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

from sync.document.markdown.model import BlockKind, MemoryDocument, Section
from sync.document.markdown.parse import parse
from sync.document.markdown.template import empty_document
from sync.document.ownership.other_profiles import OtherProfiles, ProfilePaths, park_copy
from sync.document.surfaces.memory_file import MemoryFile
from sync.document.surfaces.notices import Notice
from sync.document.surfaces.stable_read import Sleep, stable_read
from sync.errors import DocumentChanged, DocumentUntouchable, StorageBusy, StorageError
from sync.system.atomic_swap import compare_and_swap, remove_unchanged
from sync.system.files import FileProbe, read_once
from sync.texts.language import Language

READ_PAUSE: Final = 0.25  # seconds between two reads of a file that is being written
MAX_READS: Final = 32  # of such a file: 10 seconds
MAX_ATTEMPTS: Final = 5  # rounds against an editor that saves at the same moment

log = logging.getLogger(__name__)


async def hand_over(
    leaving: MemoryFile | None,
    leaving_paths: ProfilePaths,
    arriving: MemoryFile,
    other_profiles: OtherProfiles,
    *,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Replace the leaving profile's document by the arriving profile's.

    `leaving`: None if that memory cannot be read. `other_profiles` knows only the arriving profile. Raises
    StorageError; then the file still belongs to the leaving profile.
    """
    for _ in range(MAX_ATTEMPTS):
        judged = await _read_complete(leaving, arriving.path, sleep)
        try:
            if judged is not None and not await arriving.versions.has_version(judged.sha256):
                if await asyncio.to_thread(_has_owner, other_profiles, judged):
                    await _try_reconcile(arriving)  # an earlier attempt came this far, and the file was edited since
                    return
                if leaving is not None:
                    await _try_reconcile(leaving, expected_sha256=judged.sha256)
            keep = partial(_park_if_unknown, judged, leaving, leaving_paths, arriving)
            await _replace(await stable_read(arriving.path, sleep), arriving, keep)
        except DocumentChanged:
            continue
        else:
            return
    raise StorageBusy(f"{arriving.path.name} is being saved again and again by another program")


async def _read_complete(leaving: MemoryFile | None, path: Path, sleep: Sleep) -> FileProbe | None:
    """The file once no program is writing it; after `MAX_READS`, as it is.

    A program that goes on writing after the replacement writes into a file that is no longer there.
    """
    disk = await stable_read(path, sleep)
    newest = None if leaving is None else await leaving.versions.newest()
    if leaving is None or newest is None:
        return disk
    for _ in range(MAX_READS):
        if disk is None or not await leaving.write_in_progress.is_running(disk, newest):
            break
        await sleep(READ_PAUSE)
        disk = await stable_read(path, sleep)
    return disk


async def _park_if_unknown(
    checked: FileProbe | None,
    leaving: MemoryFile | None,
    leaving_paths: ProfilePaths,
    arriving: MemoryFile,
    disk: FileProbe,
) -> None:
    """Park what is about to be replaced, unless a profile has it. Raises DocumentChanged if it is not `checked`."""
    if await arriving.versions.has_version(disk.sha256) or await _is_known(leaving, disk):
        return
    if checked is None or checked.sha256 != disk.sha256:
        raise DocumentChanged(f"{arriving.path.name} was saved again")
    log.info("a document was parked: %s", park_copy(leaving_paths.parked_folder, disk.data).name)


async def park_unrecorded(
    leaving: MemoryFile, leaving_paths: ProfilePaths, arriving: MemoryFile, arriving_paths: ProfilePaths
) -> None:
    """Park for the arriving profile what the leaving one has in no event, and its parked documents.

    Only if the leaving profile is removed, after its events were copied into the arriving log. Raises StorageError.
    """
    last, current = await leaving.versions.newest(), await arriving.versions.catch_up()
    if last is not None:
        templates = frozenset().union(*(_text_of(parse(empty_document("", one))) for one in Language))
        recorded_text = templates | (_text_of(current.snapshot.document) if current else frozenset())
        if not _text_of(last.snapshot.document) <= recorded_text:
            parked = await asyncio.to_thread(park_copy, arriving_paths.parked_folder, last.snapshot.document.data)
            log.info("a document was parked, since its events do not say all of it: %s", parked.name)
    for path in sorted(leaving_paths.parked_folder.glob("*.md")):
        if (content := await asyncio.to_thread(read_once, path)) is not None:
            await asyncio.to_thread(park_copy, arriving_paths.parked_folder, content.data)


def _text_of(document: MemoryDocument) -> frozenset[tuple[Section, str]]:
    """The content of a document: its lines without their place, and its headings with theirs."""
    return frozenset(
        (block.section, block.title) if block.kind is BlockKind.HEADING else ((), block.text)
        for block in document.blocks
        if block.kind in {BlockKind.FRONT_MATTER, BlockKind.HEADING, BlockKind.ENTRY}
    )


async def unrecorded_content(memory: MemoryFile, paths: ProfilePaths, *, sleep: Sleep = asyncio.sleep) -> str | None:
    """What a profile's documents have that is in no event, as a message to the user; None if there is nothing.

    Redacted text does not count. Changes nothing. Raises StorageError.
    """
    disk = await stable_read(memory.path, sleep)
    document = None if disk is None else _parsed(disk)
    is_blank = disk is None or (document is not None and document.is_blank)
    if not is_blank and disk is not None and not await memory.versions.has_version(disk.sha256):
        return "the memory file holds what was not taken in"
    if Notice.LARGE_ENTRY in await memory.warnings():
        return "the memory file holds an entry that is too large for the cloud"
    if parked := sum(1 for _ in paths.parked_folder.glob("*.md")):
        return f"{parked} documents are parked on this device only"
    return None


async def replace_document(arriving: MemoryFile, *, sleep: Sleep = asyncio.sleep) -> None:
    """Replace the content of the file without keeping it: its owner wanted no copy to remain."""

    async def drop(disk: FileProbe) -> None:
        del disk

    await _replace(await stable_read(arriving.path, sleep), arriving, drop)


async def _replace(disk: FileProbe | None, arriving: MemoryFile, keep: Callable[[FileProbe], Awaitable[None]]) -> None:
    """Replace the file with the newest version, in one attempt. Raises DocumentChanged, StorageError."""
    current = await arriving.versions.catch_up()
    if disk is not None:
        if current is not None and disk.sha256 == current.sha256:
            return  # an earlier attempt came this far
        await keep(disk)
    if current is not None:
        expected = None if disk is None else disk.sha256
        await asyncio.to_thread(compare_and_swap, arriving.path, expected, current.snapshot.document.data)
        await arriving.versions.mark_on_disk(current)
    elif disk is not None:
        await asyncio.to_thread(remove_unchanged, arriving.path, disk.sha256)


async def _is_known(leaving: MemoryFile | None, disk: FileProbe) -> bool:
    newest = None if leaving is None else await leaving.versions.newest()
    return newest is not None and newest.sha256 == disk.sha256


def _parsed(disk: FileProbe) -> MemoryDocument | None:
    try:
        return parse(disk.data)
    except DocumentUntouchable:
        return None


def _has_owner(other_profiles: OtherProfiles, disk: FileProbe) -> bool:
    document = _parsed(disk)
    return document is not None and other_profiles.parked_folder_of(document) is not None


async def _try_reconcile(profile: MemoryFile, *, expected_sha256: str | None = None) -> None:
    try:
        await profile.reconcile(expected_sha256=expected_sha256)
    except StorageError as error:
        log.warning("the file could not be settled for its profile: %s", error.kind)
