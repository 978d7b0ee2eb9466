"""What the app's cache held: the bases of the app's edits, beside the versions of the file."""

from sync.clock import Clock
from sync.document import store
from sync.document.model import Version
from sync.log.log import Log


class CacheRing:
    """The versions that were seen in, or written into, the app's cache."""

    def __init__(self, events: Log, *, clock: Clock, keep: int) -> None:
        self._database = events.database
        self._clock = clock
        self._keep = keep

    async def knows(self, digest: str) -> bool:
        """Whether this is what the cache was last seen, or left, with."""
        newest = await self._database.read(lambda connection: store.newest(connection, store.APP_CACHE))
        return newest is not None and newest.sha256 == digest

    async def left_with(self, version: Version) -> None:
        """This version was written into the cache: what the app makes of it is an edit of this."""
        await self._database.write(
            lambda connection: store.append(
                connection, store.APP_CACHE, version.snapshot, "log", self._clock, self._keep
            )
        )
