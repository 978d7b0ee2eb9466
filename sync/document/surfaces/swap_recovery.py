"""What an exchange with the memory file took out and did not put back: it becomes the manual edit that it was.

`sync.system.atomic_swap` leaves such a file beside the memory file if a disk failed, or the process was killed, between
an exchange and its undoing. If it holds a version of ours, or what was read before, it is removed. Anything else was
saved by the user and exists nowhere else. What cannot be ingested, or is another account's, is parked.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from sync.document.markdown.model import MemoryDocument
from sync.document.markdown.parse import parse
from sync.document.ownership.other_profiles import ProfilePaths, park_copy
from sync.document.versions.file_history import FileHistory
from sync.errors import DocumentUntouchable, StorageError
from sync.system.atomic_swap import displaced_files
from sync.system.files import FileProbe, read_once, remove_private

T = TypeVar("T")

log = logging.getLogger(__name__)


class SwapRecovery:
    """The place beside one memory file. `home`: the profile's own folder for such; None: it stays where it is."""

    def __init__(
        self,
        path: Path,
        parked_folder: Path | None,
        versions: FileHistory,
        owner_of: Callable[[MemoryDocument], Awaitable[ProfilePaths | None]],
    ) -> None:
        """`owner_of` answers with the other account that a document belongs to."""
        self._path = path
        self._parked_folder = parked_folder
        self._versions = versions
        self._owner_of = owner_of

    async def recover_on_error(self, write: Awaitable[T]) -> T:
        """What a write of the file answers; what it left aside, where it failed, is taken in."""
        try:
            return await write
        except StorageError:
            await self.recover()
            raise

    async def recover(self, *, leaving_folder: Path | None = None) -> None:
        """Take in what stands aside. Raises StorageError; it stays where it is then.

        `former`: the folder of the profile whose the file still is, where it is about to be handed over.
        """
        if self._parked_folder is None:
            return
        for aside in await asyncio.to_thread(displaced_files, self._path):
            found = await asyncio.to_thread(read_once, aside)
            if found is not None and not await self._versions.has_version(found.sha256):
                await self._ingest_or_park(found, self._parked_folder, leaving_folder)
            await asyncio.to_thread(remove_private, aside)

    async def _ingest_or_park(self, content: FileProbe, parked_folder: Path, leaving_folder: Path | None) -> None:
        try:
            document = parse(content.data)
        except DocumentUntouchable:
            folder = leaving_folder or parked_folder
        else:
            if document.is_blank:
                return
            owner = await self._owner_of(document)
            theirs = leaving_folder if owner is None else owner.parked_folder
            if theirs is None and await self._versions.ingest_file(content.sha256, document) is not None:
                log.info("what was saved at the moment of a write was taken in")
                return
            folder = theirs or parked_folder
        kept = await asyncio.to_thread(park_copy, folder, content.data)
        log.warning("what was saved at the moment of a write was parked: %s", kept.name)
