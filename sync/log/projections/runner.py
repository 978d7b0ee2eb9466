"""Views that follow the log: each takes events in the order of their positions, with a watermark of its own.

Decisions
    What a view stores and how far it has come are one transaction: a process that is killed loses neither, and takes no
    event twice. Any view can be cleared and built anew from the log to the same answers; one whose rules have changed
    (`View.rules_version`) is.
    A batch is small, because the writer serves `update` too: nobody waits longer than for one batch.
    Only the sidecar, or a command that holds its role, moves a view. Others read what is there.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.log import store
from sync.log.local_state import rules_name
from sync.log.log import EventLog
from sync.log.model import Event, Query
from sync.log.projections.registry import ProjectionEntry

BATCH_EVENTS: Final = 100  # events in one transaction


class Projection(Protocol):
    """Something that is derived from the log and can be thrown away."""

    @property
    def entry(self) -> ProjectionEntry:
        """Its entry of the registry."""

    @property
    def rules_version(self) -> int:
        """Raised whenever the same events would be stored in another way: the view is then built anew."""

    def clear(self, connection: Transaction) -> None:
        """Forget everything."""

    def apply(self, connection: Transaction, events: Sequence[Event]) -> None:
        """Take the next events; a `payload_forgotten` among them asks to forget what came from those it names."""


class ProjectionRunner:
    """Keeps one view level with the log."""

    def __init__(self, log: EventLog, projection: Projection, clock: Clock) -> None:
        self.projection = projection
        self._log = log
        self._clock = clock

    async def run(self) -> None:
        """Take what comes, until cancelled."""
        while True:
            seen = self._log.changed.count
            await self.catch_up()
            await self._log.changed.wait_for_change(seen)

    async def catch_up(self, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Take all there is; how many events that was. `told` hears position and head after each batch."""
        taken = 0
        while True:
            count, position = await self._log.database.write(self._apply_batch)
            taken += count
            if count < BATCH_EVENTS:
                return taken
            if on_progress is not None:
                on_progress(position, await self._log.newest_position())
            await asyncio.sleep(0)  # whoever waits for the loop comes first

    async def rebuild(self, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Throw the view away and build it from the first event on; how many events that took."""
        await self._log.database.write(self.reset)
        return await self.catch_up(on_progress)

    def backlog(self, connection: Transaction) -> int:
        """How many positions of the log the view has still to take; all, and at least one, if its rules changed."""
        newest = store.newest_position(connection)
        if store.watermark(connection, self._rules_watermark) != self.projection.rules_version:
            return max(1, newest)
        return max(0, newest - store.watermark(connection, self.projection.entry.name))

    async def apply_batch(self) -> None:
        """Take the next batch; a view whose rules changed is emptied first."""
        await self._log.database.write(self._apply_batch)

    def _apply_batch(self, connection: Transaction) -> tuple[int, int]:
        if store.watermark(connection, self._rules_watermark) != self.projection.rules_version:
            self.reset(connection)
        mark = store.watermark(connection, self.projection.entry.name)
        page = store.read_page(connection, Query(after=mark, limit=BATCH_EVENTS))
        if page.events:
            self.projection.apply(connection, page.events)
            store.set_watermark(connection, self.projection.entry.name, page.next_offset, self._clock)
        return len(page.events), page.next_offset

    def reset(self, connection: Transaction) -> None:
        """Throw the view away, in the caller's transaction; the next step builds it from the first event on."""
        self.projection.clear(connection)
        store.set_watermark(connection, self.projection.entry.name, 0, self._clock)
        store.set_watermark(connection, self._rules_watermark, self.projection.rules_version, self._clock)

    @property
    def _rules_watermark(self) -> str:
        return rules_name(self.projection.entry.name)
