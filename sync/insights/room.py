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

from sync.clock import Clock, milliseconds
from sync.errors import StorageError
from sync.files import probe, write_private
from sync.insights import report, state, views
from sync.insights.report import Report
from sync.insights.state import State
from sync.insights.views import Judged, Next, Profile
from sync.log.log import Log
from sync.log.model import Event, Query
from sync.log.withdrawn import TAKING_BACK, Withdrawn

PAGE: Final = 500  # events between two breaths
SHOWN: Final = 10

log = logging.getLogger(__name__)


class Insights:
    """One profile's. `writes`: whether this process may keep the cache file."""

    def __init__(self, events: Log, cache: Path, *, clock: Clock, writes: bool) -> None:
        self.cache = cache
        self._log = events
        self._clock = clock
        self._writes = writes
        self._state: State | None = None
        self._alone = asyncio.Lock()

    async def following(
        self, *, project_id: str | None, session_id: str | None, stage: str | None, limit: int = SHOWN
    ) -> Next:
        """What usually comes after where the session stands."""
        found = await self.level()
        return views.following(found, project_id=project_id, session_id=session_id, stage=stage, limit=limit)

    async def profile(self, *, project_id: str | None, limit: int = SHOWN) -> Profile:
        return views.profile(await self.level(), project_id=project_id, limit=limit)

    async def instincts(self, *, project_id: str | None, status: str | None = None, limit: int) -> list[Judged]:
        """The surest first, as they stand now; of one status where it is given."""
        now = milliseconds(self._clock.now())
        found = views.instincts(await self.level(), now, project_id=project_id)
        return [item for item in found if status in {None, item.status}][:limit]

    async def report(self, *, days: int) -> Report:
        """What the last so many days were about."""
        return report.report_of(await self.level(), self._clock.now(), days=days)

    @property
    def source_watermark(self) -> int:
        """The position up to which the last answer has read the log."""
        return 0 if self._state is None else self._state.source_watermark

    async def level(self) -> State:
        """The state of the whole log. Raises StorageError where the log cannot be read."""
        async with self._alone:
            found = self._state or await asyncio.to_thread(self._read)
            if found is None or not await self._is_of_log(found):
                found = State()
            before = found.source_watermark
            found = await self._caught_up(found)
            if self._writes and (found.source_watermark != before or not self.cache.exists()):
                await asyncio.to_thread(self._write, found)
            self._state = found
            return found

    async def rebuild(self) -> State:
        """Throw the cache away and read the log from its first event."""
        async with self._alone:
            self._state = State()
            await asyncio.to_thread(self.cache.unlink, missing_ok=True)
        return await self.level()

    async def _caught_up(self, found: State) -> State:
        """The state with everything that came since; read anew where something that is in it was forgotten."""
        withdrawn, heard = Withdrawn(), 0
        async for event in self._taking_back():
            withdrawn.hear((event,))
            heard = event.position
        if heard > found.source_watermark:
            found = State()
        while page := (await self._log.read(Query(after=found.source_watermark, limit=PAGE))).events:
            if any(event.position > heard and event.type in TAKING_BACK for event in page):
                return await self._caught_up(State())  # somebody forgot something since
            for event in page:
                found.take(withdrawn.left_of(event))
            await asyncio.sleep(0)  # whoever waits for the loop comes first
        return found

    async def _taking_back(self) -> AsyncIterator[Event]:
        after = 0
        while page := (await self._log.read(Query(types=TAKING_BACK, after=after))).events:
            for event in page:
                yield event
            after = page[-1].position

    async def _is_of_log(self, found: State) -> bool:
        """Whether the log has the event with which the state ends; a restored one may have another there."""
        if found.source_watermark == 0:
            return True
        page = await self._log.read(Query(after=found.source_watermark - 1, limit=1))
        return bool(page.events) and page.events[0].event_id == found.source_event_id

    def _read(self) -> State | None:
        try:
            kept = probe(self.cache)
        except StorageError:
            return None
        return state.decode(kept.data) if kept else None

    def _write(self, found: State) -> None:
        try:
            write_private(self.cache, state.encode(found))
        except StorageError as error:  # the answer does not depend on it
            log.warning("the cache of the insights could not be written: %s", error.kind)
