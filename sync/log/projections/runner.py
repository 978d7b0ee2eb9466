"""Follow the log with a projection that is stored in the database.

A projection's data and its offset move in one transaction, so a killed process loses neither and applies no event
twice. Batches are small, because the writer thread also serves `update`. Only the sidecar, or a command that holds its
lock, runs a projection; other processes read what is there.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Final, Protocol, TypeVar

from sync.clock import Clock
from sync.db.engine import Database, Transaction
from sync.db.sqlite_errors import may_be_bad_row
from sync.log import store
from sync.log.local_state import rules_name
from sync.log.log import EventLog
from sync.log.model import Event, Query
from sync.log.projections.registry import ProjectionEntry

T = TypeVar("T")

BATCH_EVENTS: Final = 100  # events in one transaction

log = logging.getLogger(__name__)


class Projection(Protocol):
    """Data that is derived from the log and can be rebuilt."""

    @property
    def entry(self) -> ProjectionEntry:
        """Its entry of the registry."""

    @property
    def rules_version(self) -> int:
        """Raised whenever the same events would be stored in another way; the projection is then rebuilt."""

    def is_consistent(self, connection: Transaction) -> bool:
        """Return whether all data can be understood."""

    def clear(self, connection: Transaction) -> None:
        """Remove all data."""

    def must_restart(self, connection: Transaction, events: Sequence[Event]) -> bool:
        """Return whether these next events change how earlier ones are to be applied."""

    def apply(self, connection: Transaction, events: Sequence[Event]) -> None:
        """Add the next events. A `payload_forgotten` removes the data of the events that it names."""


async def rebuild_and_retry(
    database: Database, use: Callable[[], Coroutine[None, None, T]], rebuild: Callable[[Transaction], bool]
) -> T:
    """Use a projection; if that fails and `rebuild` found it inconsistent and cleared it, use it once more."""
    try:
        return await use()
    except Exception as error:
        if database.read_only or not may_be_bad_row(error) or not await database.write(rebuild):
            raise
    log.error("a projection could not be understood and is built again")
    return await use()


class ProjectionRunner:
    """Keeps one projection caught up with the log."""

    def __init__(self, log: EventLog, projection: Projection, clock: Clock) -> None:
        self.projection = projection
        self._log = log
        self._clock = clock

    async def run(self) -> None:
        """Follow the log until cancelled."""
        while True:
            seen = self._log.changed.count
            await self.catch_up()
            await self._log.changed.wait_for_change(seen)

    async def catch_up(self, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Apply all new events; return how many. `on_progress` gets position and head after each batch."""
        applied = 0
        while True:
            count, position = await self._log.database.write(self._apply_batch)
            applied += count
            if count < BATCH_EVENTS:
                return applied
            if on_progress is not None:
                on_progress(position, await self._log.newest_position())
            await asyncio.sleep(0)  # let other tasks run

    async def rebuild(self, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Clear the projection and apply all events; return how many."""
        await self._log.database.write(self.reset)
        return await self.catch_up(on_progress)

    async def retrying(self, use: Callable[[], Coroutine[None, None, T]]) -> T:
        """Use the projection; if that fails because it is inconsistent, clear it and use it once more."""

        def clear_inconsistent(connection: Transaction) -> bool:
            if self.projection.is_consistent(connection):
                return False
            self.reset(connection)
            return True

        return await rebuild_and_retry(self._log.database, use, clear_inconsistent)

    def backlog(self, connection: Transaction) -> int:
        """Return how many positions are still to apply; all, and at least one, if the rules changed."""
        newest = store.newest_position(connection)
        if store.watermark(connection, self._rules_watermark) != self.projection.rules_version:
            return max(1, newest)
        return max(0, newest - store.watermark(connection, self.projection.entry.name))

    async def apply_batch(self) -> None:
        """Apply the next batch; a projection whose rules changed is cleared first."""
        await self._log.database.write(self._apply_batch)

    def _apply_batch(self, connection: Transaction) -> tuple[int, int]:
        if store.watermark(connection, self._rules_watermark) != self.projection.rules_version:
            self.reset(connection)
        offset = store.watermark(connection, self.projection.entry.name)
        page = store.read_page(connection, Query(after=offset, limit=BATCH_EVENTS))
        if page.events and self.projection.must_restart(connection, page.events):
            self.reset(connection)
            return BATCH_EVENTS, 0
        if page.events:
            self.projection.apply(connection, page.events)
            store.set_watermark(connection, self.projection.entry.name, page.next_offset, self._clock)
        return len(page.events), page.next_offset

    def reset(self, connection: Transaction) -> None:
        """Clear the projection in the caller's transaction; the next batch starts at the first event."""
        self.projection.clear(connection)
        store.set_watermark(connection, self.projection.entry.name, 0, self._clock)
        store.set_watermark(connection, self._rules_watermark, self.projection.rules_version, self._clock)

    @property
    def _rules_watermark(self) -> str:
        return rules_name(self.projection.entry.name)
