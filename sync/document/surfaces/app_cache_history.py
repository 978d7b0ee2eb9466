"""What the app's cache held: the bases of the app's edits, beside the versions of the file."""

from pathlib import Path

from sync.clock import Clock
from sync.document import store
from sync.document.markdown.model import Version
from sync.document.surfaces.app_cache import swap_content
from sync.log.log import EventLog
from sync.system.digests import sha256


class AppCacheHistory:
    """The versions that were seen in, or written into, the app's cache."""

    def __init__(self, events: EventLog, *, clock: Clock, keep: int) -> None:
        self._database = events.database
        self._clock = clock
        self._keep = keep

    async def write_version(self, path: Path, cached: bytes, version: Version) -> None:
        """Write a version over what the cache held, if all of that is taken in; the app's own write wins.

        What the app makes of it is an edit of this version. Raises StorageError.
        """
        text = version.snapshot.document.text
        if cached == text.encode():
            return
        if cached.strip() and not await self._is_newest(sha256(cached)):
            return  # it looks lost, or waits for the file: nobody has said what it means
        if await swap_content(path, cached, text):
            await self._record_written(version)

    async def _is_newest(self, digest: str) -> bool:
        """Whether this is what the cache was last seen, or left, with."""
        newest = await self._database.read(lambda connection: store.newest(connection, store.APP_CACHE))
        return newest is not None and newest.sha256 == digest

    async def _record_written(self, version: Version) -> None:
        await self._database.write(
            lambda connection: store.append(
                connection, store.APP_CACHE, version.snapshot, "log", self._clock, self._keep
            )
        )
