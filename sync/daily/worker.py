"""The sidecar's background work: record sessions when they end, and reconcile pages and records.

Each device records its own sessions; imported ones, and those that were silent at the first start, are recorded only
on request.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from sync.clock import Clock, new_event_id
from sync.daily.open_sessions import OpenSessionTracker
from sync.daily.pages.embeddings_export import EmbeddingsExport, VectorSource
from sync.daily.pages.page_diff import PageChange
from sync.daily.pages.page_files import WAITS, PageEdit, PageFiles
from sync.daily.record_service import RecordRequest, RecordService
from sync.daily.records.changes import take_records
from sync.daily.records.records_cache import RecordsCache
from sync.daily.records.reducer import DailyRecords
from sync.errors import InvalidInput, StorageError, XiaobaiError, location_of
from sync.log.log import EventLog
from sync.log.model import Door
from sync.runtime.change_counter import ChangeCounter, wait_for_any_change
from sync.runtime.log_once import LogOnce

DEBOUNCE_SECONDS: Final = 0.5  # lets a burst of events pass
PAGE_CHECK_SECONDS: Final = 5.0  # between two checks for manual edits
IDLE_CHECK_SECONDS: Final = 60.0  # between two checks for silent sessions

log = logging.getLogger(__name__)


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
        open_sessions: OpenSessionTracker,
        vector_source: VectorSource | None = None,
    ) -> None:
        self.page_files = page_files
        self._vector_source = vector_source
        self._export = EmbeddingsExport(page_files)
        self._log = events
        self._records_cache = records_cache
        self._record_service = record_service
        self._clock = clock
        self.open_sessions = open_sessions
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

    async def take(self) -> int:
        """Make the pages that wait, and the records of project files, the person's own; how many.

        What a pull changes in the person's own records waits for this.
        """
        async with self._lock:
            waiting = list(self.page_files.waiting.values())
            for edit in waiting:
                self.page_files.notices.pop(edit.path, None)
                await self._import_edit(replace(edit, is_project_file=False))
            self._last_page_state = None
            records = (await self._records_cache.current_records()).by_id.values()
            await self._record_service.apply_all([take_records])
            return len(waiting) + sum(record.is_project_file for record in records)

    async def record_ended_sessions(self, *, limit: int | None = None) -> list[str]:
        """Record the sessions that have ended, at most `limit`; their ids."""
        ended = (await self.open_sessions.ended_sessions())[:limit]
        for session_id in ended:
            await self._record_session(session_id)
            self.open_sessions.mark_recorded(session_id)
        await self.open_sessions.store_offset()
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

    async def run_session_recorder(self) -> None:
        """Record sessions as they end, until cancelled."""
        while True:
            seen = self._log.changed.count
            if await self.record_ended_sessions():
                await self.reconcile()
            if self.open_sessions.has_none:
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
        self._last_page_state = (stamps, records)  # from before the writes: a file may have been edited since
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
        if edit.is_project_file:
            records = (await self._records_cache.current_records()).by_id
            known = (records[one.record_id] for one in edit.diff.changes if one.record_id in records)
            if not all(record.is_project_file for record in known):
                self.page_files.waiting[edit.path], self.page_files.notices[edit.path] = edit, WAITS
                return
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
            self.page_files.notices[edit.path] = error.message
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
            names_project = edit.folder.is_shared and not edit.is_project_file
            path = session.origin if names_project else edit.project_path
            result = await self._record_service.add(
                edit.day,
                session.time,
                session.content,
                path,
                session.marks,
                record_id=new_record_ids[session.number],
                event_id=change_ids[session.number],
                door=Door.PROJECT if edit.is_project_file else Door.HAND,
            )
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
