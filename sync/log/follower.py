"""Views that follow the log: each takes events in the order of their positions, with a watermark of its own.

Decisions
    What a view stores and how far it has come are one transaction: a process that is killed loses neither, and takes no
    event twice. Any view can be cleared and built anew from the log to the same answers; one whose rules have changed
    (`View.rules`) is.
    A batch is small, because the writer serves `update` too: nobody waits longer than for one batch.
    Only the sidecar, or a command that holds its role, moves a view. Others read what is there.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from sqlalchemy import Connection

from sync.clock import Clock
from sync.log import store
from sync.log.log import Log
from sync.log.model import Event, Query

BATCH: Final = 100  # events in one transaction


class View(Protocol):
    """Something that is derived from the log and can be thrown away."""

    @property
    def name(self) -> str:
        """One of `log.OUR_FOLLOWERS`, or such a name with a part: `recall.vectors`."""

    @property
    def rules(self) -> int:
        """Raised whenever the same events would be stored in another way: the view is then built anew."""

    def clear(self, connection: Connection) -> None:
        """Forget everything."""

    def take(self, connection: Connection, events: Sequence[Event]) -> None:
        """Take the next events; a `payload_forgotten` among them asks to forget what came from those it names."""


class Follower:
    """Keeps one view level with the log."""

    def __init__(self, log: Log, view: View, clock: Clock) -> None:
        self.view = view
        self._log = log
        self._clock = clock

    async def keep_up(self) -> None:
        """Take what comes, until cancelled."""
        while True:
            seen = self._log.changed.count
            await self.catch_up()
            await self._log.changed.wait(seen)

    async def catch_up(self, told: Callable[[int, int], None] | None = None) -> int:
        """Take all there is; how many events that was. `told` hears position and head after each batch."""
        taken = 0
        while True:
            count, position = await self._log.database.write(self._step)
            taken += count
            if count < BATCH:
                return taken
            if told is not None:
                told(position, await self._log.newest_position())
            await asyncio.sleep(0)  # whoever waits for the loop comes first

    async def rebuild(self, told: Callable[[int, int], None] | None = None) -> int:
        """Throw the view away and build it from the first event on; how many events that took."""
        await self._log.database.write(self.begin)
        return await self.catch_up(told)

    def backlog(self, connection: Connection) -> int:
        """How many positions of the log the view has still to take; all, and at least one, if its rules changed."""
        newest = store.newest_position(connection)
        if store.watermark(connection, self._rules) != self.view.rules:
            return max(1, newest)
        return max(0, newest - store.watermark(connection, self.view.name))

    async def step(self) -> None:
        """Take the next batch; a view whose rules changed is emptied first."""
        await self._log.database.write(self._step)

    def _step(self, connection: Connection) -> tuple[int, int]:
        if store.watermark(connection, self._rules) != self.view.rules:
            self.begin(connection)
        mark = store.watermark(connection, self.view.name)
        page = store.read(connection, Query(after=mark, limit=BATCH))
        if page.events:
            self.view.take(connection, page.events)
            store.set_watermark(connection, self.view.name, page.next_offset, self._clock)
        return len(page.events), page.next_offset

    def begin(self, connection: Connection) -> None:
        """Throw the view away, in the caller's transaction; the next step builds it from the first event on."""
        self.view.clear(connection)
        store.set_watermark(connection, self.view.name, 0, self._clock)
        store.set_watermark(connection, self._rules, self.view.rules, self._clock)

    @property
    def _rules(self) -> str:
        return f"{self.view.name}{store.RULES}"
