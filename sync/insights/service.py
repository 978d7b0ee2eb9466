"""The views kept level with the log: read when asked, remembered in a file of their own, thrown away at will.

Decisions
    Nothing is followed in the background: whoever asks first after a while waits for the events in between. Only what
    was taken back is not waited for: a cache that may hold it goes at once (`cache.py`).
    The cache is `insights.json` in the profile's folder, with the position and the id of the last event in it. Where
    the log has another event there, or something in it was forgotten since, everything is read again.
    Nothing is ever written to the log from here (seed 002 §2.3). Only the sidecar, or a command that holds its role,
    writes the file; others read it and keep what they add to themselves.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from sync.clock import Clock, to_unix_ms
from sync.errors import StorageError
from sync.insights import queries, report, state
from sync.insights.queries import ActivityProfile, NextSteps, ScoredInstinct
from sync.insights.report import Report
from sync.insights.state import InsightsState
from sync.log.event_types import RETRACTING_TYPES
from sync.log.log import EventLog
from sync.log.model import Event, Query
from sync.log.retractions import Retractions
from sync.system.files import read_once, write_private

PAGE_SIZE: Final = 500  # events between two breaths
DEFAULT_LIMIT: Final = 10

log = logging.getLogger(__name__)


class InsightsService:
    """One profile's. `writes`: whether this process may keep the cache file."""

    def __init__(self, events: EventLog, cache_path: Path, *, clock: Clock, may_write_cache: bool) -> None:
        self.cache_path = cache_path
        self._log = events
        self._clock = clock
        self._may_write_cache = may_write_cache
        self._state: InsightsState | None = None
        self._lock = asyncio.Lock()

    async def next_steps(
        self, *, project_id: str | None, session_id: str | None, stage: str | None, limit: int = DEFAULT_LIMIT
    ) -> NextSteps:
        """What usually comes after where the session stands."""
        found = await self.current_state()
        return queries.next_steps(found, project_id=project_id, session_id=session_id, stage=stage, limit=limit)

    async def profile(self, *, project_id: str | None, limit: int = DEFAULT_LIMIT) -> ActivityProfile:
        return queries.activity_profile(await self.current_state(), project_id=project_id, limit=limit)

    async def instincts(self, *, project_id: str | None, status: str | None = None, limit: int) -> list[ScoredInstinct]:
        """The surest first, as they stand now; of one status where it is given."""
        now = to_unix_ms(self._clock.now())
        found = queries.scored_instincts(await self.current_state(), now, project_id=project_id)
        return [item for item in found if status in {None, item.status}][:limit]

    async def report(self, *, days: int) -> Report:
        """What the last so many days were about."""
        return report.build_report(await self.current_state(), self._clock.now(), days=days)

    @property
    def source_watermark(self) -> int:
        """The position up to which the last answer has read the log."""
        return 0 if self._state is None else self._state.source_watermark

    async def current_state(self) -> InsightsState:
        """The state of the whole log. Raises StorageError where the log cannot be read."""
        async with self._lock:
            found = self._state or await asyncio.to_thread(self._read_cache)
            if found is None or not await self._matches_log(found):
                found = InsightsState()
            before = found.source_watermark
            found = await self._catch_up(found)
            if self._may_write_cache and (found.source_watermark != before or not self.cache_path.exists()):
                await asyncio.to_thread(self._write_cache, found)
            self._state = found
            return found

    async def rebuild(self) -> InsightsState:
        """Throw the cache away and read the log from its first event."""
        async with self._lock:
            self._state = InsightsState()
            await asyncio.to_thread(self.cache_path.unlink, missing_ok=True)
        return await self.current_state()

    async def _catch_up(self, current: InsightsState) -> InsightsState:
        """The state with everything that came since; read anew where something that is in it was forgotten."""
        withdrawn, heard = Retractions(), 0
        async for event in self._retraction_events():
            withdrawn.apply((event,))
            heard = event.position
        if heard > current.source_watermark:
            current = InsightsState()
        while page := (await self._log.read(Query(after=current.source_watermark, limit=PAGE_SIZE))).events:
            if any(event.position > heard and event.type in RETRACTING_TYPES for event in page):
                return await self._catch_up(InsightsState())  # somebody forgot something since
            for event in page:
                current.apply(withdrawn.effective_event(event))
            await asyncio.sleep(0)  # whoever waits for the loop comes first
        return current

    async def _retraction_events(self) -> AsyncIterator[Event]:
        after = 0
        while page := (await self._log.read(Query(types=RETRACTING_TYPES, after=after))).events:
            for event in page:
                yield event
            after = page[-1].position

    async def _matches_log(self, current: InsightsState) -> bool:
        """Whether the log has the event with which the state ends; a restored one may have another there."""
        if current.source_watermark == 0:
            return True
        page = await self._log.read(Query(after=current.source_watermark - 1, limit=1))
        return bool(page.events) and page.events[0].event_id == current.source_event_id

    def _read_cache(self) -> InsightsState | None:
        try:
            kept = read_once(self.cache_path)
        except StorageError:
            return None
        return state.decode(kept.data) if kept else None

    def _write_cache(self, current: InsightsState) -> None:
        try:
            write_private(self.cache_path, state.encode(current))
        except StorageError as error:  # the answer does not depend on it
            log.warning("the cache of the insights could not be written: %s", error.kind)
