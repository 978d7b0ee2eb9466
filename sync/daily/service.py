"""The daily records' use cases: list, show, review, merge and expire records, and their options."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from sync.clock import Clock
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
from sync.log.log import EventLog


class Review(msgspec.Struct, frozen=True):
    """What to ask the user, and whether it is time to."""

    questions: tuple[ReviewQuestion, ...]
    is_due: bool


class DailyStatusJson(msgspec.Struct, frozen=True, rename="camel"):
    """`notices`: pages that were left as they are, and why. `takeable`: pages and records of repositories."""

    records: int
    days: int
    today: int
    due: int
    review_due: bool
    home: str
    notices: dict[str, str]
    takeable: int = 0


class DailyService(msgspec.Struct, frozen=True):
    """One profile's daily records. One process at a time may write the pages."""

    records_cache: RecordsCache
    record_service: RecordService
    page_folders: PageFolders
    worker: DailyWorker
    events: EventLog
    clock: Clock
    may_write_pages: bool

    async def reconcile(self) -> None:
        """Reconcile pages and records. If this process may not, the running sidecar does it."""
        if self.may_write_pages:
            await self.events.database.upkeep.run(self.worker.reconcile)

    async def current_records(self) -> DailyRecords:
        """All records, the latest manual edits included, with the numbers that their pages show."""
        await self.reconcile()
        return await asyncio.to_thread(self._with_page_numbers, await self.records_cache.current_records())

    def _with_page_numbers(self, records: DailyRecords) -> DailyRecords:
        number_of = page_numbers(records.all_records(), self.page_folders.folder_of)
        shown = {name: replace(record, number=number_of[name]) for name, record in records.by_id.items()}
        gone = {name: replace(record, number=number_of[name]) for name, record in records.removed.items()}
        return replace(records, by_id=shown, removed=gone)

    async def apply_and_reconcile(self, change: Callable[[], Awaitable[ChangeResult]]) -> ChangeResult:
        """Import manual edits, apply a change, and write it to the pages."""
        await self.reconcile()
        result = await change()
        if result.record is None:
            return result
        records, record_id = await self.current_records(), result.record.record_id
        return replace(result, record=records.by_id.get(record_id) or records.removed.get(record_id, result.record))

    @property
    def today(self) -> str:
        return self.clock.now().date().isoformat()

    async def status(self) -> DailyStatusJson:
        """How many records there are, and what waits."""
        shown = (await self.current_records()).visible()
        return DailyStatusJson(
            records=len(shown),
            days=len({record.date for record in shown}),
            today=sum(record.date == self.today for record in shown),
            due=len(await self.expire_old_records(dry_run=True)),
            review_due=review_is_due(shown, self.today),
            home=str(self.page_folders.home),
            notices=dict(self.worker.page_files.notices),
            takeable=len(self.worker.page_files.waiting) + sum(record.is_project_file for record in shown),
        )

    async def options(self, project_path: str | None) -> EffectiveOptions:
        return await asyncio.to_thread(self.page_folders.options, project_path)

    async def day_page(self, day: str, project_id: str | None) -> tuple[str, list[Record]]:
        """A day's page, of one project or of all, and its records; an empty text if there are none.

        Each record has the number of its own page, so two projects' records may have the same number.
        """
        visible = (await self.current_records()).visible()
        shown = [record for record in visible if record.date == day and project_id in {None, record.project_id}]
        shown.sort(key=lambda record: (record.number, record.moment))
        numbered = ((record.number, record) for record in shown)
        page = page_of(day, numbered, with_origin=project_id is None)
        text = render(replace(page, language=self.page_folders.language.current)) if shown else ""
        return text, shown

    async def list_records(
        self, project_id: str | None, *, since: str | None, until: str | None, mark: str | None, limit: int
    ) -> list[Record]:
        """Records of these days, newest first; those with a mark, or else all but the expired ones."""
        records = [
            record
            for record in (await self.current_records()).by_id.values()
            if project_id in {None, record.project_id}
            and (since or "") <= record.date <= (until or "9999")
            and (mark in record.marks if mark else "expired" not in record.marks)
        ]
        return records[::-1][:limit]

    async def review_questions(self) -> Review:
        shown = (await self.current_records()).visible()
        return Review(tuple(review_questions(shown, self.today)), review_is_due(shown, self.today))

    async def merge_repeats(self, day: str, *, dry_run: bool) -> list[RecordMerge]:
        """Merge a day's repeats, by changes that can be undone."""
        visible = (await self.current_records()).visible()
        merges = find_repeats([one for one in visible if one.date == day and not one.is_project_file])
        if not dry_run:
            await self.record_service.apply_all([partial(merge_records, merge) for merge in merges])
        return merges

    async def expire_old_records(self, *, dry_run: bool) -> list[Record]:
        """Mark records older than `retention_days` as expired. They stay in the log, and `undo` restores them."""
        visible = (await self.current_records()).visible()
        expired: list[Record] = []
        for project_path in dict.fromkeys(record.project_path for record in visible):
            of_project = [record for record in visible if record.project_path == project_path]
            days = (await self.options(project_path)).value.storage.retention_days
            expired += expired_records(of_project, self.today, days)
        if not dry_run:
            await self.record_service.apply_all([partial(expire_record, record.record_id) for record in expired])
        return expired

    async def set_option(
        self, project_path: str | None, option: str, value: Any, *, for_project: bool
    ) -> EffectiveOptions:
        return await asyncio.to_thread(
            lambda: self.page_folders.set_option(project_path, option, value, for_project=for_project)
        )
