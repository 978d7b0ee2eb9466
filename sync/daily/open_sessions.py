"""Which of this device's sessions have ended. Every command asks, so this imports nothing else of the daily records.

A session has ended if an event says so, or after `sessions.idle_minutes` of silence. Imported sessions do not count.
The offset `daily` precedes the oldest open session, so that a killed sidecar misses none.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.clock import Clock, to_unix_ms
from sync.daily.conversation import store
from sync.log import store as log_store
from sync.log.envelope import event_ms
from sync.log.event_types import SESSION_END_TYPES
from sync.log.log import EventLog
from sync.log.model import Event, Query, is_imported
from sync.log.projections.registry import DAILY

PAGE_SIZE: Final = 500


class OpenSession(msgspec.Struct):
    """A session with events since it was last recorded. Times are Unix milliseconds."""

    first_position: int
    last_ms: int
    has_ended: bool = False


class OpenSessions(msgspec.Struct):
    """The open sessions as of a position in the log. Pure."""

    position: int = 0
    by_id: dict[str, OpenSession] = msgspec.field(default_factory=dict)

    def observe(self, events: Sequence[Event], device_id: str) -> None:
        for event in events:
            self.position = event.position
            if not event.session_id or event.device_id != device_id or is_imported(event):
                continue
            if event.type in SESSION_END_TYPES:
                if event.session_id in self.by_id:
                    self.by_id[event.session_id].has_ended = True
                continue
            session = self.by_id.setdefault(event.session_id, OpenSession(event.position, event_ms(event)))
            session.last_ms, session.has_ended = max(session.last_ms, event_ms(event)), False

    def ended(self, now_ms: int, idle_ms: int) -> list[str]:
        return [name for name, one in self.by_id.items() if one.has_ended or now_ms - one.last_ms >= idle_ms]

    @property
    def checkpoint(self) -> int:
        """The position before the first event of an open session."""
        return min((one.first_position - 1 for one in self.by_id.values()), default=self.position)


class OpenSessionTracker:
    """The open sessions of this device, kept up to date with the log."""

    def __init__(self, events: EventLog, clock: Clock, idle_minutes: float) -> None:
        self.idle_ms = int(idle_minutes * 60_000)
        self._log = events
        self._clock = clock
        self._sessions: OpenSessions | None = None
        self._stored_offset = 0

    @property
    def has_none(self) -> bool:
        """Whether the log was read and no session is open."""
        return self._sessions is not None and not self._sessions.by_id

    async def ended_sessions(self) -> list[str]:
        """The ids of the sessions that have ended, in the order in which they began."""
        sessions = self._sessions or OpenSessions(await self._start_position())
        query = Query(types=DAILY.event_types, limit=PAGE_SIZE)
        while page := (await self._log.read(replace(query, after=sessions.position))).events:
            sessions.observe(page, self._log.device_id)
            await asyncio.sleep(0)  # let other tasks run
        self._sessions = sessions
        return sessions.ended(to_unix_ms(self._clock.now()), self.idle_ms)

    def mark_recorded(self, session_id: str) -> None:
        """A session is recorded; later events open it again."""
        if self._sessions is not None:
            del self._sessions.by_id[session_id]

    async def store_offset(self) -> None:
        """Store how far the sessions are recorded, if that has changed."""
        if self._sessions is None or (offset := self._sessions.checkpoint) == self._stored_offset:
            return
        await self._log.database.write(log_store.set_watermark, DAILY.name, offset, self._clock)
        self._stored_offset = offset

    async def _start_position(self) -> int:
        """The position up to which sessions are recorded already."""
        device_id, since_ms = self._log.device_id, to_unix_ms(self._clock.now()) - self.idle_ms
        self._stored_offset = await self._log.database.write(store.start_offset, device_id, since_ms, self._clock)
        return self._stored_offset
