"""Delete the insights cache if it is older than an erasure or a correction.

Kept apart so that callers need not import the rest of `insights`. The cache is rebuilt when insights are next used.
"""

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from sync.log.event_types import HIDING_TYPES
from sync.log.log import EventLog
from sync.system.files import FileStamp, read_once, remove_private, stat_stamp

CACHE_FILE: Final = "insights.json"  # in the profile's folder
_BEFORE_ANY_EVENT: Final = -1


class _CacheHeader(msgspec.Struct):
    """The only field that is read here."""

    source_watermark: int = 0


class InsightsCache:
    """One profile's cache file. Only the holder of the sidecar role may delete it."""

    def __init__(self, events: EventLog, path: Path) -> None:
        self.path = path
        self._log = events
        self._last_check: tuple[FileStamp | None, int] = (None, _BEFORE_ANY_EVENT)

    async def remove_if_stale(self) -> None:
        """Delete the file if it may contain data that was retracted since. Raises StorageError."""
        stamp = stat_stamp(self.path)
        if stamp is None:
            return
        seen = stamp, await self._log.newest_position(HIDING_TYPES)
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
        return _BEFORE_ANY_EVENT  # a damaged file may contain anything
