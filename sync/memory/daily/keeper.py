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

from sync.clock import Clock, milliseconds, new_event_id
from sync.errors import InvalidInput, StorageError, XiaobaiError, place_of
from sync.log import store as log_store
from sync.log.envelope import event_ms
from sync.log.log import Log
from sync.log.model import Event, Query
from sync.log.payloads import ENDED
from sync.memory.daily import store
from sync.memory.daily.book import Book
from sync.memory.daily.deeds import Conversation, Deeds
from sync.memory.daily.files import Edit, Pages
from sync.memory.daily.hand import Change
from sync.memory.daily.shelf import Shelf
from sync.memory.daily.talk import TALK, is_imported
from sync.memory.daily.vectors import Export, Vectors
from sync.signals import Signal, wait_for_any
from sync.troubles import Troubles

PAGE: Final = 500
CALM: Final = 0.5  # seconds that a burst of words has before it is looked at
LOOK_EVERY: Final = 5.0  # seconds between looks at pages
ENDS_EVERY: Final = 60.0  # seconds between looks for sessions that fell silent
SIGNS: Final = (*TALK, *ENDED)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Open:
    """A session in which something was said since it was last kept. Times are Unix milliseconds."""

    first: int
    last_ms: int
    ended: bool = False


@dataclass(slots=True)
class Watch:
    """Which sessions are open, as far as the log was read. Pure."""

    position: int = 0
    open: dict[str, Open] = field(default_factory=dict)

    def take(self, events: Sequence[Event], device_id: str) -> None:
        for event in events:
            self.position = event.position
            if not event.session_id or event.device_id != device_id or is_imported(event):
                continue
            if event.type in ENDED:
                if event.session_id in self.open:
                    self.open[event.session_id].ended = True
                continue
            known = self.open.setdefault(event.session_id, Open(event.position, event_ms(event)))
            known.last_ms, known.ended = max(known.last_ms, event_ms(event)), False

    def over(self, now_ms: int, idle_ms: int) -> list[str]:
        return [name for name, one in self.open.items() if one.ended or now_ms - one.last_ms >= idle_ms]

    @property
    def mark(self) -> int:
        """Up to where nothing is open."""
        return min((one.first - 1 for one in self.open.values()), default=self.position)


class Keeper:
    """The jobs of one profile's daily records."""

    def __init__(
        self,
        events: Log,
        shelf: Shelf,
        deeds: Deeds,
        pages: Pages,
        *,
        clock: Clock,
        idle_minutes: float,
        vectors: Vectors | None = None,
    ) -> None:
        """`vectors`: of the records; None where none are made."""
        self.pages = pages
        self._vectors = vectors
        self._export = Export(pages)
        self._log = events
        self._shelf = shelf
        self._deeds = deeds
        self._clock = clock
        self.idle_ms = int(idle_minutes * 60_000)
        self._watch: Watch | None = None
        self._seen: tuple[object, Book] | None = None
        self._exported: tuple[Book, int, tuple[str, dict[str, int]]] | None = None
        self._alone = asyncio.Lock()
        self._troubles = Troubles(log)

    async def settle(self) -> None:
        """Take in what a hand wrote and write what is new; a place that cannot be written now is tried again."""
        try:
            async with self._alone:
                await self._settle()
        except StorageError as error:
            self._troubles.met("pages", f"the daily pages could not be settled: {error.kind}")
        else:
            self._troubles.over("pages")

    async def keep_ended(self, *, most: int | None = None) -> list[str]:
        """Keep the sessions that are over, or the first so many of them; their ids."""
        watch = self._watch if self._watch is not None else Watch(await self._begin())
        began = watch.position
        while page := (await self._log.read(Query(types=SIGNS, after=watch.position, limit=PAGE))).events:
            watch.take(page, self._log.device_id)
            await asyncio.sleep(0)  # whoever waits for the loop comes first
        self._watch = watch
        over = watch.over(milliseconds(self._clock.now()), self.idle_ms)[:most]
        for session_id in over:
            await self._keep(session_id)
            del watch.open[session_id]
        if watch.position != began or over:
            mark = watch.mark
            await self._log.database.write(
                lambda connection: log_store.set_watermark(connection, store.FOLLOWER, mark, self._clock)
            )
        return over

    async def _keep(self, session_id: str) -> None:
        """Keep one session. Raises StorageError; what nobody expected costs this session its record and no other."""
        try:
            outcome = await self._deeds.keep(Conversation(session_id=session_id))
        except StorageError:
            raise  # to be tried again
        except Exception as error:  # noqa: BLE001 - told where it happened, without its text
            log.error("a session could not be kept: %s", place_of(error))  # noqa: TRY400 - no text of it
        else:
            log.info("a session ended: %s", outcome.reason or "kept")

    async def _begin(self) -> int:
        """Up to where sessions were kept before this process."""
        device_id, since_ms = self._log.device_id, milliseconds(self._clock.now()) - self.idle_ms
        return await self._log.database.write(
            lambda connection: store.begin(connection, device_id, since_ms, self._clock)
        )

    async def keep_sessions(self) -> None:
        """Keep sessions as they end, until cancelled."""
        while True:
            seen = self._log.changed.count
            if await self.keep_ended():
                await self.settle()
            if self._watch is not None and not self._watch.open:
                await self._log.changed.wait(seen)
                await asyncio.sleep(CALM)
            else:
                await asyncio.sleep(CALM if self._log.changed.count != seen else ENDS_EVERY)

    async def keep_pages(self) -> None:
        """Keep pages and book level, until cancelled."""
        changed = Signal() if self._vectors is None else self._vectors.changed
        while True:
            seen = changed.count
            await self.settle()
            await wait_for_any(LOOK_EVERY, (changed, seen))

    async def _settle(self) -> None:
        book = await self._shelf.book()
        stamps = await asyncio.to_thread(self.pages.stamps, book)
        if self.pages.failing or self._seen is None or self._seen[0] != stamps or self._seen[1] is not book:
            book = await self._settle_pages(book, stamps)
        await self._settle_export(book)

    async def _settle_pages(self, book: Book, stamps: object) -> Book:
        for edit in await asyncio.to_thread(self.pages.edits, book):
            await self._take_in(edit)
        book = await self._shelf.book()
        await asyncio.to_thread(self.pages.write, book)
        self._seen = (stamps, book)
        self._exported = None
        return book

    async def _settle_export(self, book: Book) -> None:
        """Write the vectors of what the pages show, where they are others than those that were written."""
        seen = 0 if self._vectors is None else self._vectors.changed.count
        last = self._exported if self._exported is not None and self._exported[0] is book else None
        if last is not None and last[1] == seen:
            return
        known = ("", dict[str, int]()) if self._vectors is None else await self._vectors.known(book.said_at)
        if (last is None or last[2] != known) and not await self._write_export(book, *known):
            self._exported = None  # to be tried again
            return
        self._exported = (book, seen, known)

    async def _write_export(self, book: Book, model: str, numbers: dict[str, int]) -> bool:
        stands = True
        for due in await asyncio.to_thread(self._export.due, book, model, numbers):
            wanted = [entry.number for entry in due.entries]
            vectors = await self._vectors.read(wanted) if self._vectors is not None and wanted else {}
            written = False
            with self.pages.by_itself(due.place):
                written = await asyncio.to_thread(self._export.write, due, vectors)
            stands = stands and written
        return stands

    async def _take_in(self, edit: Edit) -> None:
        """A hand's changes as deeds. What cannot be one leaves the page as it is, and is told. Raises StorageError."""
        written = {change.note.number: change for change in edit.told.changes if change.note}
        added = {number: self._deeds.new_id() for number, change in written.items() if change.record_id is None}
        deeds = {number: new_event_id(self._clock) for number, change in written.items() if change.says}
        if deeds:
            await asyncio.to_thread(self.pages.begin, edit, added, deeds)
        try:
            said = [await self._apply(edit, change, added, deeds) for change in edit.told.changes]
        except StorageError:
            raise  # to be tried again
        except XiaobaiError as error:
            self.pages.notices[str(edit.place.root / "daily" / edit.name)] = error.message
            return
        if all(said):
            await asyncio.to_thread(self.pages.took, edit, added)

    async def _apply(self, edit: Edit, change: Change, added: Mapping[int, str], deeds: Mapping[int, str]) -> bool:
        """A change as deeds; False where a hand wrote into a session whose record went meanwhile: none can say that."""
        known = (await self._shelf.book()).records
        note = change.note
        if note is None:
            if change.record_id in known:
                await self._deeds.remove(str(change.record_id), reason="hand")
            return True
        if change.record_id is None:
            path, record_id = note.origin or edit.project_path, added[note.number]
            new = {"record_id": record_id, "event_id": deeds[note.number]}
            done = await self._deeds.add(edit.day, note.time, note.content, path, note.marks, **new)
            if done.event_id is None:
                raise InvalidInput(f"session {note.number} is not kept: {done.reason}", field="page")
            return True
        if change.record_id not in known:
            return False
        if change.parts:
            await self._deeds.edit(change.record_id, note.content, change.parts, event_id=deeds[note.number])
        for mark, on in change.marks:
            await self._deeds.mark(change.record_id, mark, on=on)
        return True
