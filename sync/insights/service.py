"""The insights use cases: a state that is brought up to date when it is used, and cached in a file.

The cache, `insights.json` in the profile's folder, has the position and id of its last event. If the log has another
event there, or one of its events was retracted since, the whole log is read again. Only the holder of the sidecar role
writes the file. Nothing is written to the log.
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
from sync.log.event_types import HIDING_TYPES
from sync.log.log import EventLog
from sync.log.model import Event, Query
from sync.log.retractions import Retractions
from sync.system.files import read_once, write_private

PAGE_SIZE: Final = 500  # events after which other tasks run
DEFAULT_LIMIT: Final = 10

log = logging.getLogger(__name__)


class InsightsService:
    """One profile's insights."""

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
        """The usual next steps of a session."""
        state = await self.current_state()
        return queries.next_steps(state, project_id=project_id, session_id=session_id, stage=stage, limit=limit)

    async def profile(self, *, project_id: str | None, limit: int = DEFAULT_LIMIT) -> ActivityProfile:
        return queries.activity_profile(await self.current_state(), project_id=project_id, limit=limit)

    async def instincts(self, *, project_id: str | None, status: str | None = None, limit: int) -> list[ScoredInstinct]:
        """The instincts with a status, or all, the most confident first."""
        now = to_unix_ms(self._clock.now())
        scored = queries.scored_instincts(await self.current_state(), now, project_id=project_id)
        return [item for item in scored if status in {None, item.status}][:limit]

    async def report(self, *, days: int) -> Report:
        """The report of the last `days` days."""
        return report.build_report(await self.current_state(), self._clock.now(), days=days)

    @property
    def source_watermark(self) -> int:
        """The position up to which the last answer is based on the log."""
        return 0 if self._state is None else self._state.source_watermark

    async def current_state(self) -> InsightsState:
        """The state as of the end of the log. Raises StorageError."""
        async with self._lock:
            current = self._state or await asyncio.to_thread(self._read_cache)
            if current is None or not await self._matches_log(current):
                current = InsightsState()
            before = current.source_watermark
            current = await self._catch_up(current)
            if self._may_write_cache and (current.source_watermark != before or not self.cache_path.exists()):
                await asyncio.to_thread(self._write_cache, current)
            self._state = current
            return current

    async def rebuild(self) -> InsightsState:
        """Delete the cache and read the whole log."""
        async with self._lock:
            self._state = InsightsState()
            await asyncio.to_thread(self.cache_path.unlink, missing_ok=True)
        return await self.current_state()

    async def _catch_up(self, current: InsightsState) -> InsightsState:
        """Apply all new events; from the beginning if an applied one was retracted since."""
        retractions, last_retraction = Retractions(), 0
        async for event in self._retraction_events():
            retractions.apply((event,))
            last_retraction = event.position
        if last_retraction > current.source_watermark:
            current = InsightsState()
        while page := (await self._log.read(Query(after=current.source_watermark, limit=PAGE_SIZE))).events:
            if any(event.position > last_retraction and event.type in HIDING_TYPES for event in page):
                return await self._catch_up(InsightsState())  # a retraction arrived meanwhile
            for event in page:
                current.apply(retractions.effective_event(event))
            await asyncio.sleep(0)  # let other tasks run
        return current

    async def _retraction_events(self) -> AsyncIterator[Event]:
        after = 0
        while page := (await self._log.read(Query(types=HIDING_TYPES, after=after))).events:
            for event in page:
                yield event
            after = page[-1].position

    async def _matches_log(self, current: InsightsState) -> bool:
        """Whether the log still has the state's last event; a restored log may not."""
        if current.source_watermark == 0:
            return True
        page = await self._log.read(Query(after=current.source_watermark - 1, limit=1))
        return bool(page.events) and page.events[0].event_id == current.source_event_id

    def _read_cache(self) -> InsightsState | None:
        try:
            cached = read_once(self.cache_path)
        except StorageError:
            return None
        return state.decode(cached.data) if cached else None

    def _write_cache(self, current: InsightsState) -> None:
        try:
            write_private(self.cache_path, state.encode(current))
        except StorageError as error:  # the answer does not depend on it
            log.warning("the cache of the insights could not be written: %s", error.kind)
