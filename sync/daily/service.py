"""Daily records as one thing: the book, what changes it, the pages, and the commands a person gives."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sync.clock import Clock
from sync.daily.conversation import store
from sync.daily.model import Record
from sync.daily.pages.numbering import page_numbers, page_of
from sync.daily.pages.page_folders import EffectiveOptions, PageFolders
from sync.daily.pages.page_format import render
from sync.daily.record_service import ChangeResult, RecordService
from sync.daily.records.changes import expire_record, merge_records
from sync.daily.records.maintenance import (
    RecordMerge,
    ReviewQuestion,
    expired_records,
    find_repeats,
    review_is_due,
    review_questions,
)
from sync.daily.records.records_cache import RecordsCache
from sync.daily.records.reducer import DailyRecords
from sync.daily.worker import DailyWorker
from sync.errors import InvalidInput
from sync.log.event_types import CONVERSATION_TYPES
from sync.log.log import EventLog


@dataclass(frozen=True, slots=True)
class Review:
    """What to ask a person about; `due`: whether it is time to."""

    questions: tuple[ReviewQuestion, ...]
    is_due: bool


@dataclass(frozen=True, slots=True)
class DailyService:
    """One profile's. `moves`: whether this process may read and write the pages."""

    records_cache: RecordsCache
    record_service: RecordService
    page_folders: PageFolders
    worker: DailyWorker
    events: EventLog
    clock: Clock
    may_write_pages: bool

    async def reconcile(self) -> None:
        """Pages and book brought together, where this process may; else the running sidecar does it."""
        if self.may_write_pages:
            await self.worker.reconcile()

    async def current_records(self) -> DailyRecords:
        """All records under the numbers that their pages show, with what a hand has just saved."""
        await self.reconcile()
        return await asyncio.to_thread(self._with_page_numbers, await self.records_cache.current_records())

    def _with_page_numbers(self, records: DailyRecords) -> DailyRecords:
        number_of = page_numbers(records.all_records(), self.page_folders.folder_of)
        shown = {name: replace(record, number=number_of[name]) for name, record in records.by_id.items()}
        gone = {name: replace(record, number=number_of[name]) for name, record in records.removed.items()}
        return replace(records, by_id=shown, removed=gone)

    async def apply_and_reconcile(self, change: Callable[[], Awaitable[ChangeResult]]) -> ChangeResult:
        """A deed that goes on from what a hand has just saved, and that the pages show when it returns."""
        await self.reconcile()
        done = await change()
        if done.record is None:
            return done
        book, name = await self.current_records(), done.record.record_id
        return replace(done, record=book.by_id.get(name) or book.removed.get(name, done.record))

    @property
    def today(self) -> str:
        return self.clock.now().date().isoformat()

    async def options(self, project_path: str | None) -> EffectiveOptions:
        return await asyncio.to_thread(self.page_folders.options, project_path)

    async def day_page(self, day: str, project_id: str | None) -> tuple[str, list[Record]]:
        """A day as its page shows it, of one project or of all, and its records; an empty text where it has none.

        Each has the number that it has on its own page: of all, two may have the same.
        """
        book = await self.current_records()
        shown = [record for record in book.visible() if record.date == day and project_id in {None, record.project_id}]
        shown.sort(key=lambda record: (record.number, record.moment))
        noted = ((record.number, record) for record in shown)
        text = render(page_of(day, noted, with_origin=project_id is None)) if shown else ""
        return text, shown

    async def list_records(
        self, project_id: str | None, *, since: str | None, until: str | None, mark: str | None, limit: int
    ) -> list[Record]:
        """Records of these days, newest first; without a `mark` all but those that were put away."""
        found = [
            record
            for record in (await self.current_records()).by_id.values()
            if project_id in {None, record.project_id}
            and (since or "") <= record.date <= (until or "9999")
            and (mark in record.marks if mark else "expired" not in record.marks)
        ]
        return found[::-1][:limit]

    async def review_questions(self) -> Review:
        shown = (await self.current_records()).visible()
        return Review(tuple(review_questions(shown, self.today)), review_is_due(shown, self.today))

    async def merge_repeats(self, day: str, *, dry_run: bool) -> list[RecordMerge]:
        """Fold a day's repeats, each by deeds that can be undone."""
        found = find_repeats([record for record in (await self.current_records()).visible() if record.date == day])
        if not dry_run:
            await self.record_service.apply_all([partial(merge_records, fold) for fold in found])
        return found

    async def expire_old_records(self, *, dry_run: bool) -> list[Record]:
        """Put away what is older than `retention_days`; it stays in the log, and `undo` brings it back."""
        every = (await self.current_records()).visible()
        found: list[Record] = []
        for project_path in dict.fromkeys(record.project_path for record in every):
            of_it = [record for record in every if record.project_path == project_path]
            days = (await self.options(project_path)).value.storage.retention_days
            found += expired_records(of_it, self.today, days)
        if not dry_run:
            await self.record_service.apply_all([partial(expire_record, record.record_id) for record in found])
        return found

    async def latest_session(self) -> str:
        """The session that is meant where none is named. InvalidInput where nothing was said yet."""
        device_id = self.events.device_id
        found = await self.events.database.read(
            lambda connection: store.latest_session(connection, device_id, CONVERSATION_TYPES)
        )
        if found is None:
            raise InvalidInput("nothing was said yet", field="sessionId", hint="Give the session, or its turns.")
        return found

    async def set_option(
        self, project_path: str | None, option: str, value: Any, *, for_project: bool
    ) -> EffectiveOptions:
        return await asyncio.to_thread(
            lambda: self.page_folders.set_option(project_path, option, value, for_project=for_project)
        )
