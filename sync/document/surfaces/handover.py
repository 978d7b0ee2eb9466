"""The one memory file passes from one profile's document to another's.

It belongs to the leaving profile until its bytes are replaced: what a hand typed into it meanwhile is that person's
and becomes his events first. What his versions do not hold then (a file that is not understood, that looks lost, that
was saved a moment ago) is parked in his profile. Only then are the bytes replaced, by compare-and-swap, with the
arriving profile's newest version; where it has none the file goes. Killed anywhere, the whole of it is done again: a
file that bears a version of the arriving profile by then is his, and so is what a hand has made of it since; nothing in
it is taken for the leaving one's. An editor may save his document in any moment of this: whatever is taken in or parked
is the bytes whose owner was asked for, and bytes that came since are asked about anew.

A guest's profile goes once its events are in another's log. They are redacted, and some lines are none: one too large
for an event, a heading without lines. Where the arriving document lacks anything of the guest's, his is parked whole.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
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
    """Replace the leaving profile's document by the arriving one's. `leaving` is None where his memory cannot be read.

    `home` is where what is not in his versions is parked. `between` knows, of the leaving profile's neighbours, the
    arriving one alone. Raises StorageError, and then the file is still his.
    """
    for _ in range(MAX_ATTEMPTS):
        judged = await stable_read(arriving.path, sleep)
        try:
            if judged is not None and not await arriving.versions.has_version(judged.sha256):
                if await asyncio.to_thread(_has_owner, other_profiles, judged):
                    await _try_reconcile(arriving)  # a former attempt came this far, and somebody has typed since
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


async def _park_if_unknown(
    checked: FileProbe | None,
    leaving: MemoryFile | None,
    leaving_paths: ProfilePaths,
    arriving: MemoryFile,
    disk: FileProbe,
) -> None:
    """Park what is about to be replaced, unless somebody has it. Raises DocumentChanged where it was not `judged`."""
    if await arriving.versions.has_version(disk.sha256) or await _is_known(leaving, disk):
        return
    if checked is None or checked.sha256 != disk.sha256:
        raise DocumentChanged(f"{arriving.path.name} was saved again")
    log.info("a document was parked: %s", park_copy(leaving_paths.parked_folder, disk.data).name)


async def park_unrecorded(
    leaving: MemoryFile, leaving_paths: ProfilePaths, arriving: MemoryFile, arriving_paths: ProfilePaths
) -> None:
    """Park for the arriving profile what the leaving one's events did not bring along; what was parked there too.

    Only for one that goes, and once its events are in the arriving one's log. Raises StorageError.
    """
    last, current = await leaving.versions.newest(), await arriving.versions.catch_up()
    if last is not None:
        there = _text_of(parse(empty_document(""))) | (_text_of(current.snapshot.document) if current else frozenset())
        if not _text_of(last.snapshot.document) <= there:
            kept = await asyncio.to_thread(park_copy, arriving_paths.parked_folder, last.snapshot.document.data)
            log.info("a document was parked, since its events do not say all of it: %s", kept.name)
    for path in sorted(leaving_paths.parked_folder.glob("*.md")):
        if (found := await asyncio.to_thread(read_once, path)) is not None:
            await asyncio.to_thread(park_copy, arriving_paths.parked_folder, found.data)


def _text_of(document: MemoryDocument) -> frozenset[tuple[Section, str]]:
    """What of a document is somebody's words: its lines, wherever they stand, and its headings, where they do."""
    return frozenset(
        (block.section, block.title) if block.kind is BlockKind.HEADING else ((), block.text)
        for block in document.blocks
        if block.kind in {BlockKind.FRONT_MATTER, BlockKind.HEADING, BlockKind.ENTRY}
    )


async def unrecorded_content(memory: MemoryFile, paths: ProfilePaths, *, sleep: Sleep = asyncio.sleep) -> str | None:
    """What of a profile's documents is in no event, for a person who wants the profile gone; None where nothing is.

    What was redacted is not meant. Looks at the bytes of the file and changes nothing. Raises StorageError.
    """
    disk = await stable_read(memory.path, sleep)
    if disk is not None and not _is_blank(disk) and not await memory.versions.has_version(disk.sha256):
        return "the memory file holds what was not taken in"
    if Notice.LARGE_ENTRY in await memory.warnings():
        return "the memory file holds an entry that is too large for the cloud"
    if parked := sum(1 for _ in paths.parked_folder.glob("*.md")):
        return f"{parked} documents are parked on this device only"
    return None


async def replace_document(arriving: MemoryFile, *, sleep: Sleep = asyncio.sleep) -> None:
    """Replace what stands in the file, whoever's it is, without keeping it: its owner wanted no copy to stay."""

    async def drop(disk: FileProbe) -> None:
        del disk

    await _replace(await stable_read(arriving.path, sleep), arriving, drop)


async def _replace(disk: FileProbe | None, arriving: MemoryFile, keep: Callable[[FileProbe], Awaitable[None]]) -> None:
    """Put the newest version in the place of what is on disk, once. Raises DocumentChanged, StorageError."""
    current = await arriving.versions.catch_up()
    if disk is not None:
        if current is not None and disk.sha256 == current.sha256:
            return  # a former attempt came this far
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


def _is_blank(disk: FileProbe) -> bool:
    try:
        return parse(disk.data).is_blank
    except DocumentUntouchable:
        return False


def _has_owner(other_profiles: OtherProfiles, disk: FileProbe) -> bool:
    try:
        return other_profiles.owner_of(parse(disk.data)) is not None
    except DocumentUntouchable:
        return False


async def _try_reconcile(profile: MemoryFile, *, expected_sha256: str | None = None) -> None:
    try:
        await profile.reconcile(expected_sha256=expected_sha256)
    except StorageError as error:
        log.warning("the file could not be settled for its profile: %s", error.kind)
