"""Follow the log with a projection that is stored outside the database, such as files.

The data comes first and the offset after it: a process that is killed between the two applies the same events again,
which the projection must recognise. Only the sidecar, or a command that holds its lock, writes.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.log import store
from sync.log.local_state import rules_name
from sync.log.log import EventLog
from sync.log.model import EventPage, Query
from sync.log.projections.registry import ProjectionEntry

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

OnProgress = Callable[[int, int], None]

BATCH_EVENTS: Final = 500  # events between two offsets
STARTUP_DELAY: Final = 0.5  # seconds; the first answer does not wait for files
LOCK_WAIT: Final = 1.0  # seconds that a process that exits waits, so that its last events are in the files
BATCH_DELAY: Final = 0.05  # seconds; a burst of single events becomes a few batches


class ExternalProjection(Protocol[R_co]):
    """Derived data outside the database. `R_co` is the result of a rebuild."""

    @property
    def entry(self) -> ProjectionEntry:
        """Its entry of the registry."""

    @property
    def rules_version(self) -> int:
        """Raised whenever the same events would be stored in another way; the projection is then rebuilt."""

    async def is_missing(self) -> bool:
        """Return whether the data that the offset promises is gone."""

    async def repair(self, offset: int) -> int:
        """Compare the data up to the offset with the log; return how many parts were rebuilt."""

    async def rebuild(self, head: int, on_progress: OnProgress | None) -> R_co:
        """Make the data what the log says up to `head`."""

    async def apply(self, page: EventPage) -> None:
        """Add the next events. Some of them may be there already."""


class ExternalProjectionRunner(Generic[R]):
    """Keeps one external projection caught up with the log. Its methods raise StorageError."""

    def __init__(
        self, log: EventLog, projection: ExternalProjection[R], clock: Clock, *, batch_delay: float = BATCH_DELAY
    ) -> None:
        """`batch_delay`: seconds between two batches of `run`."""
        self._projection = projection
        self._batch_delay = batch_delay
        self._log = log
        self._clock = clock
        self._lock = asyncio.Lock()

    async def run(self) -> None:
        """Repair the data, then follow the log until cancelled."""
        await asyncio.sleep(STARTUP_DELAY)
        await self.repair()
        while True:
            seen = self._log.changed.count
            await self.catch_up()
            await asyncio.sleep(self._batch_delay)
            await self._log.changed.wait_for_change(seen)

    async def catch_up(self, *, batches: int | None = None) -> int:
        """Apply all new events, or at most `batches` batches; return how many events that was.

        With `batches` it waits `LOCK_WAIT` for a run in progress at most, and does not rebuild a long log.
        """
        if batches is not None:
            try:
                await asyncio.wait_for(self._lock.acquire(), LOCK_WAIT)
            except TimeoutError:
                return 0
            self._lock.release()
        async with self._lock:
            if await self._needs_rebuild():
                head = await self._log.newest_position()
                if batches is not None and head > batches * BATCH_EVENTS:
                    return 0
                await self._rebuild(head, None)
                return head
            applied = 0
            while batches is None or batches > 0:
                count = await self._apply_batch()
                applied += count
                if count < BATCH_EVENTS:
                    break
                batches = None if batches is None else batches - 1
            return applied

    async def rebuild(self, on_progress: OnProgress | None = None) -> R:
        """Make the data what the whole log says."""
        async with self._lock:
            return await self._rebuild(await self._log.newest_position(), on_progress)

    async def repair(self) -> int:
        """Rebuild the parts that differ from the log; return how many."""
        async with self._lock:
            return await self._projection.repair(await self._offset())

    async def _needs_rebuild(self) -> bool:
        rules = await self._log.watermark(rules_name(self._projection.entry.name))
        return rules != self._projection.rules_version or await self._projection.is_missing()

    async def _apply_batch(self) -> int:
        types = self._projection.entry.event_types
        page = await self._log.read(Query(types=types, after=await self._offset(), limit=BATCH_EVENTS))
        if page.events:
            await self._projection.apply(page)
            await self._log.database.write(self._set_offset, page.next_offset)
        return len(page.events)

    async def _rebuild(self, head: int, on_progress: OnProgress | None) -> R:
        if await self._projection.is_missing():  # the offset promises nothing while the data is built
            await self._log.database.write(self._set_offset, 0)
        result = await self._projection.rebuild(head, on_progress)

        def store_offset(connection: Transaction) -> None:
            self._set_offset(connection, head)
            rules = rules_name(self._projection.entry.name)
            store.set_watermark(connection, rules, self._projection.rules_version, self._clock)

        await self._log.database.write(store_offset)
        return result

    async def _offset(self) -> int:
        return await self._log.watermark(self._projection.entry.name)

    def _set_offset(self, connection: Transaction, offset: int) -> None:
        store.set_watermark(connection, self._projection.entry.name, offset, self._clock)
