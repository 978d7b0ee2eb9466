"""What changes records: each change is an event with what the record says afterwards, and can be undone by another.

Decisions
    Every text is redacted as what leaves this device is, whatever `sanitize_sensitive` says. Where that option is
    false, the words as they were said are kept in an event of their own that never leaves (`session_original`).
    What has the session's own id is not written by us: a record about a session is not a part of it, and must not open
    it again. The payload says which session it was.
    A conversation marked as sensitive is forgotten, with all that was said in it, done or noted of it, however long it
    is; that cannot be undone.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from sync.clock import Clock, milliseconds, new_event_id, uuid7
from sync.errors import InvalidInput
from sync.log.intake import Intake
from sync.log.log import Log
from sync.log.model import Draft, Event, Origin, project_id_for
from sync.log.pauses import pause
from sync.log.payloads import SKIPPED
from sync.memory.daily import current, store
from sync.memory.daily.book import Book
from sync.memory.daily.command import Kind, asked_for, should_save
from sync.memory.daily.current import Talk
from sync.memory.daily.deed import Deed, Wish, after, editing, marking, recording, removing
from sync.memory.daily.model import (
    EDITED,
    ORIGINAL,
    RECORDED,
    UNDONE,
    Author,
    Content,
    Mark,
    Record,
    content_of,
    content_payload,
    marks_of,
)
from sync.memory.daily.numbering import next_number
from sync.memory.daily.places import Places
from sync.memory.daily.shelf import Shelf
from sync.memory.daily.summarise import Turn, quality, summarise
from sync.memory.daily.talk import TALK, turns_of
from sync.redaction import Redactor

FORGOTTEN_AT_ONCE: Final = 500  # ids in one event, which has a limit
AT_ONCE: Final = 200  # wishes in one transaction, for which others that write wait


@dataclass(frozen=True, slots=True)
class Conversation:
    """What is to be kept. Turns that are not given are read from the session's events.

    `summary`: the caller's own. `forced`: a person asked for it. `moment`: when it was, now if not given. `record_id`
    and `event_id`: those of a new record and of the deed, where they were given before.
    """

    session_id: str | None = None
    turns: tuple[Turn, ...] = ()
    summary: Content | None = None
    project_path: str | None = None
    forced: bool = False
    author: Author = "caller"
    moment: datetime | None = None
    marks: tuple[Mark, ...] = ()
    record_id: str | None = None
    event_id: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A record that was made or changed, or the reason why not. `event_id`: the deed, for `undo`."""

    record: Record | None
    reason: str | None = None
    event_id: str | None = None


class Deeds:
    """The write door of one profile's records."""

    def __init__(
        self, events: Log, shelf: Shelf, places: Places, intake: Intake, redactor: Redactor, clock: Clock
    ) -> None:
        self._log = events
        self._shelf = shelf
        self._places = places
        self._intake = intake
        self._redactor = redactor.for_leaving()
        self._plain = Redactor(enabled=False)
        self._clock = clock
        self._alone = asyncio.Lock()  # a number is given once

    async def keep(self, given: Conversation) -> Outcome:
        """Record a conversation, or what came to a session since it was recorded. InvalidInput, StorageError."""
        async with self._alone:
            talk = await self._talk(given.session_id)
            turns = given.turns or tuple(turns_of(talk))
            path = given.project_path or next((event.project_path for event in talk[::-1] if event.project_path), None)
            options = (await asyncio.to_thread(self._places.options, path)).value
            book = await self._shelf.book()
            refused = self._refused(given, book, turns, options.recording)
            if refused is None and await asyncio.to_thread(self._places.of, path) is None:
                refused = "no_place"
            if refused is not None:
                return Outcome(None, refused)
            said = given.summary or summarise(turns)
            if not options.recording.save_code_snippets:
                said = replace(said, code=())
            known = book.of_session(given.session_id)[-1:] if given.session_id else []
            author: Author = given.author if given.summary is not None else "extractive"
            if known:
                return await self._again(book, known[0], said, talk[-1].event_id if talk else None, by=author)
            judged = quality(said, turns) if author != "hand" else None
            record = await asyncio.to_thread(self._new, given, talk, said, path, book)
            return await self._done(recording(replace(record, author=author, quality=judged), given.event_id))

    def _new(self, given: Conversation, talk: Sequence[Event], said: Content, path: str | None, book: Book) -> Record:
        """A record as it would be made, under the next number of its day's page."""
        moment = given.moment or (_moment_of(talk[-1], self._clock) if talk else self._clock.now())
        until = talk[-1].event_id if talk else None
        day = moment.date().isoformat()
        project_id = project_id_for(path) if given.project_path or not talk else talk[-1].project_id
        return Record(
            record_id=given.record_id or _record_id(given.session_id, until) or self.new_id(),
            event_id="",
            date=day,
            time=f"{moment:%H:%M:%S}",
            number=next_number(book.every(), self._places.of, path, day),
            content=said,
            project_id=project_id,
            project_path=path,
            device_id=self._log.device_id,
            session_id=given.session_id,
            until_event_id=until,
            marks=given.marks,
        )

    def new_id(self) -> str:
        """For a record that is to be."""
        return f"rec_{uuid7(milliseconds(self._clock.now()), self._clock.random_bytes).hex}"

    async def add(
        self,
        day: str | None,
        time: str | None,
        said: Content,
        path: str | None,
        marks: Sequence[Mark],
        *,
        record_id: str | None = None,
        event_id: str | None = None,
    ) -> Outcome:
        """Record by hand what no session has said, for today where no day is given."""
        now = self._clock.now()
        day, time = day or now.date().isoformat(), time or f"{now:%H:%M:%S}"
        moment = datetime.fromisoformat(f"{day}T{time}")
        return await self.keep(
            Conversation(
                summary=said,
                project_path=path,
                forced=True,
                author="hand",
                moment=moment,
                marks=marks_of(marks),
                record_id=record_id,
                event_id=event_id,
            )
        )

    async def edit(
        self, record_id: str, said: Content, parts: Sequence[str], *, event_id: str | None = None
    ) -> Outcome:
        """Change some parts of a record to what `said` has for them. InvalidInput where there is no such record."""
        book = await self._shelf.book()
        known = book.record(record_id)
        changed = [part for part in known.content.changed(said) if part in parts]
        if not changed:
            return Outcome(known, "nothing_changed")
        return await self._done(editing(known, said, changed, by="hand", event_id=event_id))

    async def remove(self, record_id: str, *, reason: str = "asked") -> Outcome:
        """Take a record away; `undo` brings it back."""
        known = (await self._shelf.book()).record(record_id)
        return replace(await self._done(removing(known, reason=reason)), record=known)

    async def mark(self, record_id: str, mark: Mark, *, on: bool = True) -> Outcome:
        """Set a mark, or take it away."""
        known = (await self._shelf.book()).record(record_id)
        deed = marking(known, mark, on=on)
        return Outcome(known, "nothing_changed") if deed is None else await self._done(deed)

    async def carry_out(self, wishes: Sequence[Wish]) -> None:
        """Many deeds, a few hundred in one transaction: recorded one by one, they would take minutes.

        What one wish asks for is recorded together. Stopped on the way, those that were recorded stand.
        """
        for start in range(0, len(wishes), AT_ONCE):
            book = await self._shelf.book()
            await self._record([deed for wish in wishes[start : start + AT_ONCE] for deed in wish(book)])

    async def skip(self, session_id: str | None, *, on: bool = True) -> str:
        """Do not save this conversation, or save it again; the event's id. None: what comes without a session id."""
        (recorded,) = await self._log.record([pause(session_id, self._redactor, on=on)])
        return recorded.event.event_id

    async def everything_of(self, talk: Talk, records: Iterable[str] = ()) -> list[str]:
        """The ids of all events of a conversation and of these records: what was said, noted and corrected."""
        book = await self._shelf.book()
        every = (*book.records.values(), *book.gone.values())
        ids = {record.record_id for record in every if record.session_id in talk.sessions}
        if talk.session_id is None:  # the session of a process goes on for days, with records of former conversations
            ids &= await self._shelf.reaching(frozenset(talk.event_ids))
        found = [*await self._shelf.about(ids.union(records)), *talk.event_ids]
        return [*found, *await self._shelf.corrections(set(found))]

    async def forget_session(self, session_id: str) -> list[str]:
        """A sensitive conversation: nothing of it is kept, here or anywhere. The ids of the events that are emptied."""
        await self.skip(session_id)
        talk = await self._log.database.read(lambda connection: current.named(connection, session_id))
        return await self._forgotten(await self.everything_of(talk))

    async def forget(self, record_id: str) -> list[str]:
        """A record that is sensitive goes for good, and with it the conversation it was about."""
        known = (await self._shelf.book()).record(record_id)
        if known.session_id is not None:
            return await self.forget_session(known.session_id)
        return await self._forgotten(await self.everything_of(Talk(None), {record_id}))

    async def undo(self, event_id: str | None = None) -> Outcome:
        """Take back a deed, this device's last one where none is named. InvalidInput where there is nothing to undo."""
        book = await self._shelf.book()
        deed = next((event for event in book.deeds if event.event_id == event_id), None)
        deed = book.last_deed(self._log.device_id) if event_id is None else deed
        if deed is None:
            raise InvalidInput("there is nothing to undo", field="eventId", hint="`events tail` shows the deeds.")
        if deed.type == SKIPPED:
            hint = "To save this conversation again, say 记住这个 or `save this`."
            raise InvalidInput("what was not saved cannot come back", field="eventId", hint=hint)
        record_id = deed.payload.get("record_id")
        then = await self._shelf.without(deed.event_id)
        known = then.records.get(record_id) if isinstance(record_id, str) else None
        payload: dict[str, Any] = {"undoes": deed.event_id, "record_id": record_id}
        payload |= after(known) if known is not None else {"gone": True}
        (done,) = await self._log.record([Draft(type=UNDONE, payload=self._redactor.payload(payload))])
        return Outcome(known, None, done.event.event_id)

    async def _forgotten(self, named: list[str]) -> list[str]:
        for start in range(0, len(named), FORGOTTEN_AT_ONCE):
            await self._log.record([self._intake.forgotten(named[start : start + FORGOTTEN_AT_ONCE])])
        return named

    async def _again(self, book: Book, known: Record, said: Content, until: str | None, *, by: Author) -> Outcome:
        """A session that went on after it was recorded. What a person has edited since is not overwritten."""
        if until is not None and until == known.until_event_id and by == "extractive":
            return Outcome(known, "already_recorded")
        edited = any(
            event.type == EDITED
            and event.payload.get("record_id") == known.record_id
            and event.payload.get("by") == "hand"
            for event in book.deeds
        )
        if edited and by == "extractive":
            return Outcome(known, "edited_by_hand")
        changed = known.content.changed(said)
        return await self._done(editing(known, said, changed, by=by, until=until))

    def _refused(self, given: Conversation, book: Book, turns: Sequence[Turn], recording: Any) -> str | None:
        if given.forced:
            return None if given.summary is not None or turns else "nothing_said"
        if given.session_id in book.skipped:
            return "skip"
        if given.summary is not None:  # the caller has judged that it is worth it
            asked = asked_for(turns)
            return str(asked) if asked in {Kind.SKIP, Kind.SENSITIVE} else None
        saving = should_save(turns, least_rounds=recording.min_conversation_length, auto=recording.auto_save)
        return None if saving.save else saving.reason

    async def _talk(self, session_id: str | None) -> list[Event]:
        if session_id is None:
            return []
        return await self._log.database.read(lambda connection: store.of_session(connection, session_id, TALK))

    async def _done(self, deed: Deed) -> Outcome:
        """Record a deed; what its record then is."""
        (event_id,) = await self._record([deed])
        found = (await self._shelf.book()).records.get(deed.record.record_id)
        return Outcome(found, None, event_id)

    async def _record(self, deeds: Sequence[Deed]) -> list[str]:
        """Record deeds in one transaction; the ids of their events."""
        named = [(deed.event_id or new_event_id(self._clock), deed) for deed in deeds]
        drafts = await asyncio.to_thread(lambda: [draft for one in named for draft in self._drafts(*one)])
        if drafts:
            await self._log.record(drafts)
        return [event_id for event_id, _ in named]

    def _drafts(self, event_id: str, deed: Deed) -> Iterator[Draft]:
        """A deed, and its words as they were where they are to stay so here."""
        record = deed.record
        path = None if record.project_path is None else self._redactor.clean(record.project_path)
        clean = self._redactor.payload(deed.payload)
        yield Draft(
            type=deed.kind,
            payload=clean,
            project_id=record.project_id,
            project_path=path,
            event_id=event_id,
            origin=Origin.MODEL if record.author != "hand" and deed.kind == RECORDED else Origin.USER,
        )
        options = self._places.options(record.project_path).value
        if deed.kind in {RECORDED, EDITED} and not options.recording.sanitize_sensitive:
            said = content_payload(record.content)
            if content_payload(content_of(clean.value)) != said:
                yield Draft(type=ORIGINAL, payload=self._plain.payload({"of": event_id, **said}))


def _record_id(session_id: str | None, until: str | None) -> str | None:
    """One record for one state of a session, whichever process makes it."""
    if session_id is None or until is None:
        return None
    return "rec_" + hashlib.sha256(f"{session_id}\n{until}".encode()).hexdigest()[:32]


def _moment_of(event: Event, clock: Clock) -> datetime:
    """When an event was, on the clock of the person, as that went on its own day."""
    try:
        return clock.local(datetime.fromisoformat(event.ts))
    except (ValueError, OverflowError):
        return clock.now()
