"""The sidecar's background work: record sessions when they end, and reconcile pages and records.

A session has ended if an event says so, or after `sessions.idle_minutes` of silence. Each device records its own
sessions; imported ones, and those that were silent at the first start, are recorded only on request.
The offset `daily` precedes the oldest open session, so that a killed sidecar misses none.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sync.clock import Clock, new_event_id, to_unix_ms
from sync.daily.conversation import store
from sync.daily.conversation.transcript import is_imported
from sync.daily.pages.embeddings_export import EmbeddingsExport, VectorSource
from sync.daily.pages.page_diff import PageChange
from sync.daily.pages.page_files import PageEdit, PageFiles
from sync.daily.record_service import RecordRequest, RecordService
from sync.daily.records.records_cache import RecordsCache
from sync.daily.records.reducer import DailyRecords
from sync.errors import InvalidInput, StorageError, XiaobaiError, location_of
from sync.log import store as log_store
from sync.log.envelope import event_ms
from sync.log.event_types import SESSION_END_TYPES
from sync.log.log import EventLog
from sync.log.model import Event, Query
from sync.log.projections.registry import DAILY
from sync.runtime.change_counter import ChangeCounter, wait_for_any_change
from sync.runtime.log_once import LogOnce

PAGE_SIZE: Final = 500
DEBOUNCE_SECONDS: Final = 0.5  # lets a burst of events pass
PAGE_CHECK_SECONDS: Final = 5.0  # between two checks for manual edits
IDLE_CHECK_SECONDS: Final = 60.0  # between two checks for silent sessions

log = logging.getLogger(__name__)


@dataclass(slots=True)
class OpenSession:
    """A session with events since it was last recorded. Times are Unix milliseconds."""

    first_position: int
    last_ms: int
    has_ended: bool = False


@dataclass(slots=True)
class OpenSessions:
    """The open sessions as of a position in the log. Pure."""

    position: int = 0
    by_id: dict[str, OpenSession] = field(default_factory=dict)

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

    def finished(self, now_ms: int, idle_ms: int) -> list[str]:
        return [name for name, one in self.by_id.items() if one.has_ended or now_ms - one.last_ms >= idle_ms]

    @property
    def checkpoint(self) -> int:
        """The position before the first event of an open session."""
        return min((one.first_position - 1 for one in self.by_id.values()), default=self.position)


class DailyWorker:
    """The background work of one profile's daily records."""

    def __init__(
        self,
        events: EventLog,
        records_cache: RecordsCache,
        record_service: RecordService,
        page_files: PageFiles,
        *,
        clock: Clock,
        idle_minutes: float,
        vector_source: VectorSource | None = None,
    ) -> None:
        self.page_files = page_files
        self._vector_source = vector_source
        self._export = EmbeddingsExport(page_files)
        self._log = events
        self._records_cache = records_cache
        self._record_service = record_service
        self._clock = clock
        self.idle_ms = int(idle_minutes * 60_000)
        self._open_sessions: OpenSessions | None = None
        self._last_page_state: tuple[object, DailyRecords] | None = None
        self._last_export: tuple[DailyRecords, int, tuple[str, dict[str, int]]] | None = None
        self._lock = asyncio.Lock()
        self._troubles = LogOnce(log)

    async def reconcile(self) -> None:
        """Import manual edits and write the pages. A folder that fails is retried in the next round."""
        try:
            async with self._lock:
                await self._reconcile()
        except StorageError as error:
            self._troubles.report("pages", f"the daily pages could not be settled: {error.kind}")
        else:
            self._troubles.clear("pages")

    async def record_ended_sessions(self, *, limit: int | None = None) -> list[str]:
        """Record the sessions that have ended, at most `limit`; their ids."""
        sessions = self._open_sessions or OpenSessions(await self._start_position())
        start = sessions.position
        query = Query(types=DAILY.event_types, limit=PAGE_SIZE)
        while page := (await self._log.read(replace(query, after=sessions.position))).events:
            sessions.observe(page, self._log.device_id)
            await asyncio.sleep(0)  # let other tasks run
        self._open_sessions = sessions
        ended = sessions.finished(to_unix_ms(self._clock.now()), self.idle_ms)[:limit]
        for session_id in ended:
            await self._record_session(session_id)
            del sessions.by_id[session_id]
        if sessions.position != start or ended:
            offset = sessions.checkpoint
            await self._log.database.write(log_store.set_watermark, DAILY.name, offset, self._clock)
        return ended

    async def _record_session(self, session_id: str) -> None:
        """Record one session. Raises StorageError; an unexpected error costs only this session's record."""
        try:
            outcome = await self._record_service.record_conversation(RecordRequest(session_id=session_id))
        except StorageError:
            raise  # to be retried
        except Exception as error:  # noqa: BLE001
            log.error("a session could not be kept: %s", location_of(error))  # noqa: TRY400 - its text may be private
        else:
            log.info("a session ended: %s", outcome.reason or "kept")

    async def _start_position(self) -> int:
        """The position up to which sessions are recorded already."""
        device_id, since_ms = self._log.device_id, to_unix_ms(self._clock.now()) - self.idle_ms
        return await self._log.database.write(store.start_offset, device_id, since_ms, self._clock)

    async def run_session_recorder(self) -> None:
        """Record sessions as they end, until cancelled."""
        while True:
            seen = self._log.changed.count
            if await self.record_ended_sessions():
                await self.reconcile()
            if self._open_sessions is not None and not self._open_sessions.by_id:
                await self._log.changed.wait_for_change(seen)
                await asyncio.sleep(DEBOUNCE_SECONDS)
            else:
                await asyncio.sleep(DEBOUNCE_SECONDS if self._log.changed.count != seen else IDLE_CHECK_SECONDS)

    async def run_page_sync(self) -> None:
        """Keep pages and records reconciled, until cancelled."""
        changed = ChangeCounter() if self._vector_source is None else self._vector_source.changed
        while True:
            seen = changed.count
            await self.reconcile()
            await wait_for_any_change(PAGE_CHECK_SECONDS, (changed, seen))

    async def _reconcile(self) -> None:
        records = await self._records_cache.current_records()
        stamps = await asyncio.to_thread(self.page_files.stamps, records)
        if (
            self.page_files.failing_folders
            or self._last_page_state is None
            or self._last_page_state[0] != stamps
            or self._last_page_state[1] is not records
        ):
            records = await self._reconcile_pages(records, stamps)
        await self._reconcile_export(records)

    async def _reconcile_pages(self, records: DailyRecords, stamps: object) -> DailyRecords:
        for edit in await asyncio.to_thread(self.page_files.read_edits, records):
            await self._import_edit(edit)
        records = await self._records_cache.current_records()
        await asyncio.to_thread(self.page_files.write_pages, records)
        self._last_page_state = (stamps, records)  # of before the writes: an edit may have come since
        self._last_export = None
        return records

    async def _reconcile_export(self, records: DailyRecords) -> None:
        """Export the vectors of the visible records if they differ from those in the file."""
        seen = 0 if self._vector_source is None else self._vector_source.changed.count
        last = self._last_export if self._last_export is not None and self._last_export[0] is records else None
        if last is not None and last[1] == seen:
            return
        vectors = (
            ("", dict[str, int]())
            if self._vector_source is None
            else await self._vector_source.vector_numbers(records.content_positions)
        )
        if (last is None or last[2] != vectors) and not await self._write_export(records, *vectors):
            self._last_export = None  # to be retried
            return
        self._last_export = (records, seen, vectors)

    async def _write_export(self, records: DailyRecords, model: str, vector_numbers: dict[str, int]) -> bool:
        is_complete = True
        for due in await asyncio.to_thread(self._export.pending, records, model, vector_numbers):
            numbers = [entry.vector_number for entry in due.entries]
            source = self._vector_source if numbers else None
            vectors = await source.read_vectors(numbers) if source is not None else {}
            written = False
            with self.page_files.isolate_errors(due.folder):
                written = await asyncio.to_thread(self._export.write, due, vectors)
            is_complete = is_complete and written
        return is_complete

    async def _import_edit(self, edit: PageEdit) -> None:
        """Import the edits of one page. A page with an invalid edit stays as it is, with a notice. StorageError."""
        sessions = {change.session.number: change for change in edit.diff.changes if change.session}
        added = {at: self._record_service.new_id() for at, change in sessions.items() if change.record_id is None}
        change_ids = {at: new_event_id(self._clock) for at, change in sessions.items() if change.has_content}
        if change_ids:
            await asyncio.to_thread(self.page_files.begin_import, edit, added, change_ids)
        try:
            applied = [await self._apply_page_change(edit, change, added, change_ids) for change in edit.diff.changes]
        except StorageError:
            raise  # to be retried
        except XiaobaiError as error:
            self.page_files.notices[str(edit.folder.root / "daily" / edit.name)] = error.message
            return
        if all(applied):
            await asyncio.to_thread(self.page_files.finish_import, edit, added)

    async def _apply_page_change(
        self, edit: PageEdit, change: PageChange, new_record_ids: Mapping[int, str], change_ids: Mapping[int, str]
    ) -> bool:
        """Apply one edit; False if it changes a session whose record no longer exists."""
        records = (await self._records_cache.current_records()).by_id
        session = change.session
        if session is None:
            if change.record_id in records:
                await self._record_service.remove(str(change.record_id), reason="hand")
            return True
        if change.record_id is None:
            path = session.origin or edit.project_path
            ids = {"record_id": new_record_ids[session.number], "event_id": change_ids[session.number]}
            result = await self._record_service.add(edit.day, session.time, session.content, path, session.marks, **ids)
            if result.event_id is None:
                raise InvalidInput(f"session {session.number} is not kept: {result.reason}", field="page")
            return True
        if change.record_id not in records:
            return False
        if change.parts:
            event_id = change_ids[session.number]
            await self._record_service.edit(change.record_id, session.content, change.parts, event_id=event_id)
        for mark, on in change.marks:
            await self._record_service.mark(change.record_id, mark, on=on)
        return True
