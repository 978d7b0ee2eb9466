"""What an exchange with the memory file took out and did not put back: it is parked where it cannot be lost.

`sync.files` leaves such a file beside the memory file where a disk failed, or a kill came, between an exchange and its
undoing. What it holds may be a version of ours, or what was read before: both are known, and the file goes. Anything
else was saved by a hand and stands nowhere besides.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from sync.document.model import Document
from sync.document.neighbours import Neighbour, park
from sync.document.parse import parse
from sync.errors import DocumentUntouchable, StorageError
from sync.files import left_aside, probe, remove_private

T = TypeVar("T")

log = logging.getLogger(__name__)


class Aside:
    """The place beside one memory file. `home`: the profile's own folder for such; None: it stays where it is.

    `is_known` answers for a SHA-256, `owner_of` with the other account that a document belongs to.
    """

    def __init__(
        self,
        path: Path,
        home: Path | None,
        *,
        is_known: Callable[[str], Awaitable[bool]],
        owner_of: Callable[[Document], Awaitable[Neighbour | None]],
    ) -> None:
        self._path = path
        self._home = home
        self._is_known = is_known
        self._owner_of = owner_of

    async def after(self, write: Awaitable[T]) -> T:
        """What a write of the file answers; what it left aside, where it failed, is parked."""
        try:
            return await write
        except StorageError:
            await self.park()
            raise

    async def park(self) -> None:
        """Park what stands aside. Raises StorageError; what was not parked stays where it is."""
        if self._home is None:
            return
        for aside in await asyncio.to_thread(left_aside, self._path):
            found = await asyncio.to_thread(probe, aside)
            if found is not None and not await self._is_known(found.sha256):
                await self._park(found.data, self._home)
            await asyncio.to_thread(remove_private, aside)

    async def _park(self, data: bytes, home: Path) -> None:
        try:
            document = parse(data)
        except DocumentUntouchable:
            owner = None
        else:
            if document.is_blank:
                return
            owner = await self._owner_of(document)
        kept = await asyncio.to_thread(park, home if owner is None else owner.parked, data)
        log.warning("what was saved at the moment of a write was parked: %s", kept.name)
