"""Ingest what an exchange with the memory file displaced and did not put back.

`sync.system.files` leaves such a file beside the memory file if the disk failed, or the process was killed, between an
exchange and its undoing. If its content is a known version, the file is deleted. Otherwise a user saved it: it becomes
a manual edit, or is parked if it cannot be ingested or belongs to another account.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from sync.document.markdown.model import MemoryDocument
from sync.document.markdown.parse import parse
from sync.document.ownership.other_profiles import park_copy
from sync.document.versions.file_history import FileHistory
from sync.errors import DocumentUntouchable, StorageError
from sync.system.atomic_swap import displaced_files
from sync.system.files import FileProbe, read_once, remove_private

T = TypeVar("T")

log = logging.getLogger(__name__)


class SwapRecovery:
    """The displaced files of one memory file."""

    def __init__(
        self,
        path: Path,
        parked_folder: Path | None,
        versions: FileHistory,
        other_parked_folder: Callable[[MemoryDocument], Awaitable[Path | None]],
    ) -> None:
        """`parked_folder`: the profile's own; None: displaced files are left alone.

        `other_parked_folder` returns the folder for a document of another account.
        """
        self._path = path
        self._parked_folder = parked_folder
        self._versions = versions
        self._other_parked_folder = other_parked_folder

    async def recover_on_error(self, write: Awaitable[T]) -> T:
        """Await a write of the file. If it fails, recover what it displaced."""
        try:
            return await write
        except StorageError:
            await self.recover()
            raise

    async def recover(self, *, leaving_folder: Path | None = None) -> None:
        """Ingest or park every displaced file. Raises StorageError; the file stays then.

        `leaving_folder`: the folder of the profile that the file still belongs to, during a handover.
        """
        if self._parked_folder is None:
            return
        for displaced in await asyncio.to_thread(displaced_files, self._path):
            content = await asyncio.to_thread(read_once, displaced)
            if content is not None and not await self._versions.has_version(content.sha256):
                await self._ingest_or_park(content, self._parked_folder, leaving_folder)
            await asyncio.to_thread(remove_private, displaced)

    async def _ingest_or_park(self, content: FileProbe, parked_folder: Path, leaving_folder: Path | None) -> None:
        try:
            document = parse(content.data)
        except DocumentUntouchable:
            folder = leaving_folder or parked_folder
        else:
            if document.is_blank:
                return
            theirs = await self._other_parked_folder(document) or leaving_folder
            if theirs is None and await self._versions.ingest_file(content.sha256, document) is not None:
                log.info("what was saved at the moment of a write was taken in")
                return
            folder = theirs or parked_folder
        parked = await asyncio.to_thread(park_copy, folder, content.data)
        log.warning("what was saved at the moment of a write was parked: %s", parked.name)
