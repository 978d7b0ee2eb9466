"""Daily records as one thing: the book, what changes it, the pages, and the commands a person gives."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sync.clock import Clock
from sync.errors import InvalidInput
from sync.log.log import Log
from sync.memory.daily import store
from sync.memory.daily.book import Book
from sync.memory.daily.deed import folding, putting_away
from sync.memory.daily.deeds import Deeds, Outcome
from sync.memory.daily.keeper import Keeper
from sync.memory.daily.model import Record
from sync.memory.daily.numbering import numbers, page_of
from sync.memory.daily.page import render
from sync.memory.daily.places import Options, Places
from sync.memory.daily.shelf import Shelf
from sync.memory.daily.talk import TALK
from sync.memory.daily.tidying import Fold, Question, due, folds, questions, review_is_due


@dataclass(frozen=True, slots=True)
class Review:
    """What to ask a person about; `due`: whether it is time to."""

    questions: tuple[Question, ...]
    due: bool


@dataclass(frozen=True, slots=True)
class Daily:
    """One profile's. `moves`: whether this process may read and write the pages."""

    shelf: Shelf
    deeds: Deeds
    places: Places
    keeper: Keeper
    events: Log
    clock: Clock
    moves: bool

    async def settle(self) -> None:
        """Pages and book brought together, where this process may; else the running sidecar does it."""
        if self.moves:
            await self.keeper.settle()

    async def book(self) -> Book:
        """All records under the numbers that their pages show, with what a hand has just saved."""
        await self.settle()
        return await asyncio.to_thread(self._as_shown, await self.shelf.book())

    def _as_shown(self, book: Book) -> Book:
        number_of = numbers(book.every(), self.places.of)
        shown = {name: replace(record, number=number_of[name]) for name, record in book.records.items()}
        gone = {name: replace(record, number=number_of[name]) for name, record in book.gone.items()}
        return replace(book, records=shown, gone=gone)

    async def levelled(self, deed: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """A deed that goes on from what a hand has just saved, and that the pages show when it returns."""
        await self.settle()
        done = await deed()
        if done.record is None:
            return done
        book, name = await self.book(), done.record.record_id
        return replace(done, record=book.records.get(name) or book.gone.get(name, done.record))

    @property
    def today(self) -> str:
        return self.clock.now().date().isoformat()

    async def options(self, project_path: str | None) -> Options:
        return await asyncio.to_thread(self.places.options, project_path)

    async def page(self, day: str, project_id: str | None) -> tuple[str, list[Record]]:
        """A day as its page shows it, of one project or of all, and its records; an empty text where it has none.

        Each has the number that it has on its own page: of all, two may have the same.
        """
        book = await self.book()
        shown = [record for record in book.shown() if record.date == day and project_id in {None, record.project_id}]
        shown.sort(key=lambda record: (record.number, record.moment))
        noted = ((record.number, record) for record in shown)
        text = render(page_of(day, noted, with_origin=project_id is None)) if shown else ""
        return text, shown

    async def listed(
        self, project_id: str | None, *, since: str | None, until: str | None, mark: str | None, limit: int
    ) -> list[Record]:
        """Records of these days, newest first; without a `mark` all but those that were put away."""
        found = [
            record
            for record in (await self.book()).records.values()
            if project_id in {None, record.project_id}
            and (since or "") <= record.date <= (until or "9999")
            and (mark in record.marks if mark else "expired" not in record.marks)
        ]
        return found[::-1][:limit]

    async def review(self) -> Review:
        shown = (await self.book()).shown()
        return Review(tuple(questions(shown, self.today)), review_is_due(shown, self.today))

    async def merge(self, day: str, *, dry_run: bool) -> list[Fold]:
        """Fold a day's repeats, each by deeds that can be undone."""
        found = folds([record for record in (await self.book()).shown() if record.date == day])
        if not dry_run:
            await self.deeds.carry_out([partial(folding, fold) for fold in found])
        return found

    async def clean(self, *, dry_run: bool) -> list[Record]:
        """Put away what is older than `retention_days`; it stays in the log, and `undo` brings it back."""
        every = (await self.book()).shown()
        found: list[Record] = []
        for project_path in dict.fromkeys(record.project_path for record in every):
            of_it = [record for record in every if record.project_path == project_path]
            days = (await self.options(project_path)).value.storage.retention_days
            found += due(of_it, self.today, days)
        if not dry_run:
            await self.deeds.carry_out([partial(putting_away, record.record_id) for record in found])
        return found

    async def newest_session(self) -> str:
        """The session that is meant where none is named. InvalidInput where nothing was said yet."""
        device_id = self.events.device_id
        found = await self.events.database.read(lambda connection: store.newest_session(connection, device_id, TALK))
        if found is None:
            raise InvalidInput("nothing was said yet", field="sessionId", hint="Give the session, or its turns.")
        return found

    async def set_option(self, project_path: str | None, option: str, value: Any, *, for_project: bool) -> Options:
        return await asyncio.to_thread(
            lambda: self.places.set_option(project_path, option, value, for_project=for_project)
        )
