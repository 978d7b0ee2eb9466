"""What an exchange with the memory file took out and did not put back: it becomes the hand edit that it was.

`sync.files` leaves such a file beside the memory file where a disk failed, or a kill came, between an exchange and its
undoing. What it holds may be a version of ours, or what was read before: both are known, and the file goes. Anything
else was saved by a hand and stands nowhere besides. What cannot be taken in, or is another account's, is parked.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from sync.document.model import Document
from sync.document.neighbours import Neighbour, park
from sync.document.parse import parse
from sync.document.versions import Versions
from sync.errors import DocumentUntouchable, StorageError
from sync.files import Probe, left_aside, probe, remove_private

T = TypeVar("T")

log = logging.getLogger(__name__)


class Aside:
    """The place beside one memory file. `home`: the profile's own folder for such; None: it stays where it is."""

    def __init__(
        self,
        path: Path,
        home: Path | None,
        versions: Versions,
        owner_of: Callable[[Document], Awaitable[Neighbour | None]],
    ) -> None:
        """`owner_of` answers with the other account that a document belongs to."""
        self._path = path
        self._home = home
        self._versions = versions
        self._owner_of = owner_of

    async def after(self, write: Awaitable[T]) -> T:
        """What a write of the file answers; what it left aside, where it failed, is taken in."""
        try:
            return await write
        except StorageError:
            await self.take_in()
            raise

    async def take_in(self, *, former: Path | None = None) -> None:
        """Take in what stands aside. Raises StorageError; it stays where it is then.

        `former`: the folder of the profile whose the file still is, where it is about to be handed over.
        """
        if self._home is None:
            return
        for aside in await asyncio.to_thread(left_aside, self._path):
            found = await asyncio.to_thread(probe, aside)
            if found is not None and not await self._versions.has_written(found.sha256):
                await self._keep(found, self._home, former)
            await asyncio.to_thread(remove_private, aside)

    async def _keep(self, found: Probe, home: Path, former: Path | None) -> None:
        try:
            document = parse(found.data)
        except DocumentUntouchable:
            folder = former or home
        else:
            if document.is_blank:
                return
            owner = await self._owner_of(document)
            theirs = former if owner is None else owner.parked
            if theirs is None and await self._versions.take_in(found.sha256, document) is not None:
                log.info("what was saved at the moment of a write was taken in")
                return
            folder = theirs or home
        kept = await asyncio.to_thread(park, folder, found.data)
        log.warning("what was saved at the moment of a write was parked: %s", kept.name)
