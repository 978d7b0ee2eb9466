"""The file of the insights, looked after by who does not load their room: it goes where it is older than a wish.

What was forgotten or corrected would stay in it until somebody asks for insights again. Thrown away, it is made anew
when that happens.
"""

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from sync.files import Stamp, probe, remove_private, stamp
from sync.log.log import Log
from sync.log.withdrawn import TAKING_BACK

INSIGHTS: Final = "insights.json"  # in the profile's folder
_NEVER: Final = -1  # a position before every wish


class _Head(msgspec.Struct):
    """All that is read of the file."""

    source_watermark: int = 0


class Cache:
    """One profile's. Only the holder of the sidecar role calls `let_go`."""

    def __init__(self, events: Log, path: Path) -> None:
        self.path = path
        self._log = events
        self._seen: tuple[Stamp | None, int] = (None, _NEVER)

    async def let_go(self) -> None:
        """Take the file away where something that may be in it was taken back since. Raises StorageError."""
        found = stamp(self.path)
        if found is None:
            return
        seen = found, await self._log.newest_position(TAKING_BACK)
        if seen != self._seen:
            await asyncio.to_thread(self._remove_older, seen[1])
            self._seen = seen

    def _remove_older(self, newest: int) -> None:
        found = probe(self.path)
        if found is not None and _watermark(found.data) < newest:
            remove_private(self.path)


def _watermark(data: bytes) -> int:
    try:
        return msgspec.json.decode(data, type=_Head).source_watermark
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _NEVER  # it may hold anything
