"""Keeps what was said when a session ends, and pages level with the book: the work of a sidecar in this room.

Decisions
    A session is over when an event ends it, or when nothing was said in it for `sessions.idle_minutes`; only this
    device's sessions are kept here, another device keeps its own. Of what was said before the first look, sessions that
    were silent for so long by then are not kept unasked, nor is what was imported: years of another program would
    become thousands of pages.
    The watermark `daily` stands before the oldest session that is still open, so a killed sidecar misses none.
    Pages are looked at every few seconds, which is soon enough for a hand that has just saved; the export of the
    vectors whenever there may be others. They are at rest when they look as they did before they were read: after a
    round that wrote something comes one that reads again, because a hand may have saved over what was written.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
DEBOUNCE_SECONDS: Final = 0.5  # seconds that a burst of words has before it is looked at
PAGE_CHECK_SECONDS: Final = 5.0  # seconds between looks at pages
IDLE_CHECK_SECONDS: Final = 60.0  # seconds between looks for sessions that fell silent

log = logging.getLogger(__name__)


@dataclass(slots=True)
class OpenSession:
    """A session in which something was said since it was last kept. Times are Unix milliseconds."""

    first_position: int
    last_ms: int
    has_ended: bool = False


@dataclass(slots=True)
class OpenSessions:
    """Which sessions are open, as far as the log was read. Pure."""

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
            known = self.by_id.setdefault(event.session_id, OpenSession(event.position, event_ms(event)))
            known.last_ms, known.has_ended = max(known.last_ms, event_ms(event)), False

    def finished(self, now_ms: int, idle_ms: int) -> list[str]:
        return [name for name, one in self.by_id.items() if one.has_ended or now_ms - one.last_ms >= idle_ms]

    @property
    def checkpoint(self) -> int:
        """Up to where nothing is open."""
        return min((one.first_position - 1 for one in self.by_id.values()), default=self.position)


class DailyWorker:
    """The jobs of one profile's daily records."""

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
        """`vectors`: of the records; None where none are made."""
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
        """Take in what a hand wrote and write what is new; a place that cannot be written now is tried again."""
        try:
            async with self._lock:
                await self._reconcile()
        except StorageError as error:
            self._troubles.report("pages", f"the daily pages could not be settled: {error.kind}")
        else:
            self._troubles.clear("pages")

    async def record_ended_sessions(self, *, limit: int | None = None) -> list[str]:
        """Keep the sessions that are over, or the first so many of them; their ids."""
        watch = self._open_sessions if self._open_sessions is not None else OpenSessions(await self._start_position())
        began = watch.position
        while page := (
            await self._log.read(Query(types=DAILY.event_types, after=watch.position, limit=PAGE_SIZE))
        ).events:
            watch.observe(page, self._log.device_id)
            await asyncio.sleep(0)  # whoever waits for the loop comes first
        self._open_sessions = watch
        over = watch.finished(to_unix_ms(self._clock.now()), self.idle_ms)[:limit]
        for session_id in over:
            await self._record_session(session_id)
            del watch.by_id[session_id]
        if watch.position != began or over:
            mark = watch.checkpoint
            await self._log.database.write(
                lambda connection: log_store.set_watermark(connection, DAILY.name, mark, self._clock)
            )
        return over

    async def _record_session(self, session_id: str) -> None:
        """Keep one session. Raises StorageError; what nobody expected costs this session its record and no other."""
        try:
            outcome = await self._record_service.record_conversation(RecordRequest(session_id=session_id))
        except StorageError:
            raise  # to be tried again
        except Exception as error:  # noqa: BLE001 - told where it happened, without its text
            log.error("a session could not be kept: %s", location_of(error))  # noqa: TRY400 - no text of it
        else:
            log.info("a session ended: %s", outcome.reason or "kept")

    async def _start_position(self) -> int:
        """Up to where sessions were kept before this process."""
        device_id, since_ms = self._log.device_id, to_unix_ms(self._clock.now()) - self.idle_ms
        return await self._log.database.write(
            lambda connection: store.start_offset(connection, device_id, since_ms, self._clock)
        )

    async def run_session_recorder(self) -> None:
        """Keep sessions as they end, until cancelled."""
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
        """Keep pages and book level, until cancelled."""
        changed = ChangeCounter() if self._vector_source is None else self._vector_source.changed
        while True:
            seen = changed.count
            await self.reconcile()
            await wait_for_any_change(PAGE_CHECK_SECONDS, (changed, seen))

    async def _reconcile(self) -> None:
        book = await self._records_cache.current_records()
        stamps = await asyncio.to_thread(self.page_files.stamps, book)
        if (
            self.page_files.failing_folders
            or self._last_page_state is None
            or self._last_page_state[0] != stamps
            or self._last_page_state[1] is not book
        ):
            book = await self._reconcile_pages(book, stamps)
        await self._reconcile_export(book)

    async def _reconcile_pages(self, records: DailyRecords, stamps: object) -> DailyRecords:
        for edit in await asyncio.to_thread(self.page_files.read_edits, records):
            await self._import_edit(edit)
        records = await self._records_cache.current_records()
        await asyncio.to_thread(self.page_files.write_pages, records)
        self._last_page_state = (stamps, records)
        self._last_export = None
        return records

    async def _reconcile_export(self, records: DailyRecords) -> None:
        """Write the vectors of what the pages show, where they are others than those that were written."""
        seen = 0 if self._vector_source is None else self._vector_source.changed.count
        last = self._last_export if self._last_export is not None and self._last_export[0] is records else None
        if last is not None and last[1] == seen:
            return
        known = (
            ("", dict[str, int]())
            if self._vector_source is None
            else await self._vector_source.vector_numbers(records.content_positions)
        )
        if (last is None or last[2] != known) and not await self._write_export(records, *known):
            self._last_export = None  # to be tried again
            return
        self._last_export = (records, seen, known)

    async def _write_export(self, records: DailyRecords, model: str, vector_numbers: dict[str, int]) -> bool:
        stands = True
        for due in await asyncio.to_thread(self._export.pending, records, model, vector_numbers):
            wanted = [entry.vector_number for entry in due.entries]
            vectors = (
                await self._vector_source.read_vectors(wanted) if self._vector_source is not None and wanted else {}
            )
            written = False
            with self.page_files.isolate_errors(due.folder):
                written = await asyncio.to_thread(self._export.write, due, vectors)
            stands = stands and written
        return stands

    async def _import_edit(self, edit: PageEdit) -> None:
        """A hand's changes as deeds. What cannot be one leaves the page as it is, and is told. Raises StorageError."""
        written = {change.session.number: change for change in edit.diff.changes if change.session}
        added = {
            number: self._record_service.new_id() for number, change in written.items() if change.record_id is None
        }
        deeds = {number: new_event_id(self._clock) for number, change in written.items() if change.has_content}
        if deeds:
            await asyncio.to_thread(self.page_files.begin_import, edit, added, deeds)
        try:
            said = [await self._apply_page_change(edit, change, added, deeds) for change in edit.diff.changes]
        except StorageError:
            raise  # to be tried again
        except XiaobaiError as error:
            self.page_files.notices[str(edit.folder.root / "daily" / edit.name)] = error.message
            return
        if all(said):
            await asyncio.to_thread(self.page_files.finish_import, edit, added)

    async def _apply_page_change(
        self, edit: PageEdit, change: PageChange, new_record_ids: Mapping[int, str], change_ids: Mapping[int, str]
    ) -> bool:
        """A change as deeds; False where a hand wrote into a session whose record went meanwhile: none can say that."""
        known = (await self._records_cache.current_records()).by_id
        note = change.session
        if note is None:
            if change.record_id in known:
                await self._record_service.remove(str(change.record_id), reason="hand")
            return True
        if change.record_id is None:
            path, record_id = note.origin or edit.project_path, new_record_ids[note.number]
            new = {"record_id": record_id, "event_id": change_ids[note.number]}
            done = await self._record_service.add(edit.day, note.time, note.content, path, note.marks, **new)
            if done.event_id is None:
                raise InvalidInput(f"session {note.number} is not kept: {done.reason}", field="page")
            return True
        if change.record_id not in known:
            return False
        if change.parts:
            await self._record_service.edit(
                change.record_id, note.content, change.parts, event_id=change_ids[note.number]
            )
        for mark, on in change.marks:
            await self._record_service.mark(change.record_id, mark, on=on)
        return True
