"""The file of the insights, looked after by who does not load their room: it goes where it is older than a wish.

What was forgotten or corrected would stay in it until somebody asks for insights again. Thrown away, it is made anew
when that happens.
"""

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from sync.log.event_types import RETRACTING_TYPES
from sync.log.log import EventLog
from sync.system.files import FileStamp, read_once, remove_private, stat_stamp

CACHE_FILE: Final = "insights.json"  # in the profile's folder
_BEFORE_ANY_EVENT: Final = -1  # a position before every wish


class _CacheHeader(msgspec.Struct):
    """All that is read of the file."""

    source_watermark: int = 0


class InsightsCache:
    """One profile's. Only the holder of the sidecar role calls `mark_unmerged`."""

    def __init__(self, events: EventLog, path: Path) -> None:
        self.path = path
        self._log = events
        self._last_check: tuple[FileStamp | None, int] = (None, _BEFORE_ANY_EVENT)

    async def remove_if_stale(self) -> None:
        """Take the file away where something that may be in it was taken back since. Raises StorageError."""
        found = stat_stamp(self.path)
        if found is None:
            return
        seen = found, await self._log.newest_position(RETRACTING_TYPES)
        if seen != self._last_check:
            await asyncio.to_thread(self._remove_if_older, seen[1])
            self._last_check = seen

    def _remove_if_older(self, newest_retraction: int) -> None:
        found = read_once(self.path)
        if found is not None and _cached_position(found.data) < newest_retraction:
            remove_private(self.path)


def _cached_position(data: bytes) -> int:
    try:
        return msgspec.json.decode(data, type=_CacheHeader).source_watermark
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _BEFORE_ANY_EVENT  # it may hold anything
