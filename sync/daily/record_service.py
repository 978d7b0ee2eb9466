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

from sync.clock import Clock, new_event_id, to_unix_ms, uuid7
from sync.daily.conversation import current_conversation, store
from sync.daily.conversation.command_parser import CommandKind, decide_saving, last_save_request
from sync.daily.conversation.current_conversation import ConversationEvents
from sync.daily.conversation.extractive_summary import SummaryTurn, quality, summarise
from sync.daily.conversation.transcript import turns_of
from sync.daily.model import Author, Content, Mark, Record, content_of, content_payload, marks_of
from sync.daily.pages.numbering import next_number
from sync.daily.pages.page_folders import PageFolders
from sync.daily.records.changes import (
    PlannedChange,
    RecordChange,
    create_record,
    edit_record,
    mark_record,
    payload_after,
    remove_record,
)
from sync.daily.records.records_cache import RecordsCache
from sync.daily.records.reducer import DailyRecords
from sync.errors import InvalidInput
from sync.log.event_types import (
    CONVERSATION_TYPES,
    DAILY_UNDONE,
    SESSION_EDITED,
    SESSION_ORIGINAL,
    SESSION_RECORDED,
    SESSION_SKIPPED,
)
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import Event, EventDraft, Origin, project_id_for
from sync.log.sessions.pauses import draft_pause
from sync.redaction import Redactor

ERASE_BATCH: Final = 500  # ids in one event, which has a limit
CHANGES_PER_TRANSACTION: Final = 200  # wishes in one transaction, for which others that write wait


@dataclass(frozen=True, slots=True)
class RecordRequest:
    """What is to be kept. Turns that are not given are read from the session's events.

    `summary`: the caller's own. `forced`: a person asked for it. `moment`: when it was, now if not given. `record_id`
    and `event_id`: those of a new record and of the deed, where they were given before.
    """

    session_id: str | None = None
    turns: tuple[SummaryTurn, ...] = ()
    summary: Content | None = None
    project_path: str | None = None
    is_explicit: bool = False
    author: Author = "caller"
    moment: datetime | None = None
    marks: tuple[Mark, ...] = ()
    record_id: str | None = None
    event_id: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """A record that was made or changed, or the reason why not. `event_id`: the deed, for `undo`."""

    record: Record | None
    reason: str | None = None
    event_id: str | None = None


class RecordService:
    """The write door of one profile's records."""

    def __init__(
        self,
        events: EventLog,
        records_cache: RecordsCache,
        page_folders: PageFolders,
        intake: DraftBuilder,
        redactor: Redactor,
        clock: Clock,
    ) -> None:
        self._log = events
        self._records_cache = records_cache
        self._page_folders = page_folders
        self._intake = intake
        self._redactor = redactor.for_egress()
        self._no_redaction = Redactor(enabled=False)
        self._clock = clock
        self._lock = asyncio.Lock()  # a number is given once

    async def record_conversation(self, request: RecordRequest) -> ChangeResult:
        """Record a conversation, or what came to a session since it was recorded. InvalidInput, StorageError."""
        async with self._lock:
            talk = await self._conversation_events(request.session_id)
            turns = request.turns or tuple(turns_of(talk))
            path = request.project_path or next(
                (event.project_path for event in talk[::-1] if event.project_path), None
            )
            options = (await asyncio.to_thread(self._page_folders.options, path)).value
            book = await self._records_cache.current_records()
            refused = self._refusal_reason(request, book, turns, options.recording)
            if refused is None and await asyncio.to_thread(self._page_folders.folder_of, path) is None:
                refused = "no_place"
            if refused is not None:
                return ChangeResult(None, refused)
            said = request.summary or summarise(turns)
            if not options.recording.save_code_snippets:
                said = replace(said, code=())
            known = book.of_session(request.session_id)[-1:] if request.session_id else []
            author: Author = request.author if request.summary is not None else "extractive"
            if known:
                return await self._update_record(book, known[0], said, talk[-1].event_id if talk else None, by=author)
            judged = quality(said, turns) if author != "hand" else None
            record = await asyncio.to_thread(self._build_record, request, talk, said, path, book)
            return await self._apply(create_record(replace(record, author=author, quality=judged), request.event_id))

    def _build_record(
        self, request: RecordRequest, events: Sequence[Event], content: Content, path: str | None, records: DailyRecords
    ) -> Record:
        """A record as it would be made, under the next number of its day's page."""
        moment = request.moment or (_local_time_of(events[-1], self._clock) if events else self._clock.now())
        until = events[-1].event_id if events else None
        day = moment.date().isoformat()
        project_id = project_id_for(path) if request.project_path or not events else events[-1].project_id
        return Record(
            record_id=request.record_id or _record_id(request.session_id, until) or self.new_id(),
            event_id="",
            date=day,
            time=f"{moment:%H:%M:%S}",
            number=next_number(records.all_records(), self._page_folders.folder_of, path, day),
            content=content,
            project_id=project_id,
            project_path=path,
            device_id=self._log.device_id,
            session_id=request.session_id,
            until_event_id=until,
            marks=request.marks,
        )

    def new_id(self) -> str:
        """For a record that is to be."""
        return f"rec_{uuid7(to_unix_ms(self._clock.now()), self._clock.random_bytes).hex}"

    async def add(
        self,
        day: str | None,
        time: str | None,
        content: Content,
        path: str | None,
        marks: Sequence[Mark],
        *,
        record_id: str | None = None,
        event_id: str | None = None,
    ) -> ChangeResult:
        """Record by hand what no session has said, for today where no day is given."""
        now = self._clock.now()
        day, time = day or now.date().isoformat(), time or f"{now:%H:%M:%S}"
        moment = datetime.fromisoformat(f"{day}T{time}")
        return await self.record_conversation(
            RecordRequest(
                summary=content,
                project_path=path,
                is_explicit=True,
                author="hand",
                moment=moment,
                marks=marks_of(marks),
                record_id=record_id,
                event_id=event_id,
            )
        )

    async def edit(
        self, record_id: str, content: Content, parts: Sequence[str], *, event_id: str | None = None
    ) -> ChangeResult:
        """Change some parts of a record to what `said` has for them. InvalidInput where there is no such record."""
        book = await self._records_cache.current_records()
        known = book.get(record_id)
        changed = [part for part in known.content.changed_parts(content) if part in parts]
        if not changed:
            return ChangeResult(known, "nothing_changed")
        return await self._apply(edit_record(known, content, changed, by="hand", event_id=event_id))

    async def remove(self, record_id: str, *, reason: str = "asked") -> ChangeResult:
        """Take a record away; `undo` brings it back."""
        known = (await self._records_cache.current_records()).get(record_id)
        return replace(await self._apply(remove_record(known, reason=reason)), record=known)

    async def mark(self, record_id: str, mark: Mark, *, on: bool = True) -> ChangeResult:
        """Set a mark, or take it away."""
        known = (await self._records_cache.current_records()).get(record_id)
        deed = mark_record(known, mark, on=on)
        return ChangeResult(known, "nothing_changed") if deed is None else await self._apply(deed)

    async def apply_all(self, changes: Sequence[PlannedChange]) -> None:
        """Many deeds, a few hundred in one transaction: recorded one by one, they would take minutes.

        What one wish asks for is recorded together. Stopped on the way, those that were recorded stand.
        """
        for start in range(0, len(changes), CHANGES_PER_TRANSACTION):
            book = await self._records_cache.current_records()
            await self._append(
                [deed for wish in changes[start : start + CHANGES_PER_TRANSACTION] for deed in wish(book)]
            )

    async def set_skipped(self, session_id: str | None, *, on: bool = True) -> str:
        """Do not save this conversation, or save it again; the event's id. None: what comes without a session id."""
        (recorded,) = await self._log.append([draft_pause(session_id, self._redactor, on=on)])
        return recorded.event.event_id

    async def event_ids_of(self, conversation: ConversationEvents, records: Iterable[str] = ()) -> list[str]:
        """The ids of all events of a conversation and of these records: what was said, noted and corrected."""
        book = await self._records_cache.current_records()
        every = (*book.by_id.values(), *book.removed.values())
        ids = {record.record_id for record in every if record.session_id in conversation.session_ids}
        if (
            conversation.session_id is None
        ):  # the session of a process goes on for days, with records of former conversations
            ids &= await self._records_cache.record_ids_ending_with(frozenset(conversation.event_ids))
        found = [*await self._records_cache.event_ids_of_records(ids.union(records)), *conversation.event_ids]
        return [*found, *await self._records_cache.correction_ids(set(found))]

    async def forget_session(self, session_id: str) -> list[str]:
        """A sensitive conversation: nothing of it is kept, here or anywhere. The ids of the events that are emptied."""
        await self.set_skipped(session_id)
        talk = await self._log.database.read(
            lambda connection: current_conversation.conversation_of_session(connection, session_id)
        )
        return await self._erase(await self.event_ids_of(talk))

    async def forget(self, record_id: str) -> list[str]:
        """A record that is sensitive goes for good, and with it the conversation it was about."""
        known = (await self._records_cache.current_records()).get(record_id)
        if known.session_id is not None:
            return await self.forget_session(known.session_id)
        return await self._erase(await self.event_ids_of(ConversationEvents(None), {record_id}))

    async def undo(self, event_id: str | None = None) -> ChangeResult:
        """Take back a deed, this device's last one where none is named. InvalidInput where there is nothing to undo."""
        book = await self._records_cache.current_records()
        deed = next((event for event in book.changes if event.event_id == event_id), None)
        deed = book.last_undoable_change(self._log.device_id) if event_id is None else deed
        if deed is None:
            raise InvalidInput("there is nothing to undo", field="eventId", hint="`events tail` shows the deeds.")
        if deed.type == SESSION_SKIPPED:
            hint = "To save this conversation again, say 记住这个 or `save this`."
            raise InvalidInput("what was not saved cannot come back", field="eventId", hint=hint)
        record_id = deed.payload.get("record_id")
        then = await self._records_cache.records_without(deed.event_id)
        known = then.by_id.get(record_id) if isinstance(record_id, str) else None
        payload: dict[str, Any] = {"undoes": deed.event_id, "record_id": record_id}
        payload |= payload_after(known) if known is not None else {"gone": True}
        (done,) = await self._log.append([EventDraft(type=DAILY_UNDONE, payload=self._redactor.clean_payload(payload))])
        return ChangeResult(known, None, done.event.event_id)

    async def _erase(self, event_ids: list[str]) -> list[str]:
        for start in range(0, len(event_ids), ERASE_BATCH):
            await self._log.append([self._intake.build_erasure(event_ids[start : start + ERASE_BATCH])])
        return event_ids

    async def _update_record(
        self, records: DailyRecords, record: Record, content: Content, until_event_id: str | None, *, by: Author
    ) -> ChangeResult:
        """A session that went on after it was recorded. What a person has edited since is not overwritten."""
        if until_event_id is not None and until_event_id == record.until_event_id and by == "extractive":
            return ChangeResult(record, "already_recorded")
        edited = any(
            event.type == SESSION_EDITED
            and event.payload.get("record_id") == record.record_id
            and event.payload.get("by") == "hand"
            for event in records.changes
        )
        if edited and by == "extractive":
            return ChangeResult(record, "edited_by_hand")
        changed = record.content.changed_parts(content)
        return await self._apply(edit_record(record, content, changed, by=by, until_event_id=until_event_id))

    def _refusal_reason(
        self, request: RecordRequest, records: DailyRecords, turns: Sequence[SummaryTurn], recording: Any
    ) -> str | None:
        if request.is_explicit:
            return None if request.summary is not None or turns else "nothing_said"
        if request.session_id in records.skipped_sessions:
            return "skip"
        if request.summary is not None:  # the caller has judged that it is worth it
            asked = last_save_request(turns)
            return str(asked) if asked in {CommandKind.SKIP, CommandKind.SENSITIVE} else None
        saving = decide_saving(turns, min_rounds=recording.min_conversation_length, auto_save=recording.auto_save)
        return None if saving.is_wanted else saving.reason

    async def _conversation_events(self, session_id: str | None) -> list[Event]:
        if session_id is None:
            return []
        return await self._log.database.read(
            lambda connection: store.session_events(connection, session_id, CONVERSATION_TYPES)
        )

    async def _apply(self, change: RecordChange) -> ChangeResult:
        """Record a deed; what its record then is."""
        (event_id,) = await self._append([change])
        found = (await self._records_cache.current_records()).by_id.get(change.record.record_id)
        return ChangeResult(found, None, event_id)

    async def _append(self, changes: Sequence[RecordChange]) -> list[str]:
        """Record deeds in one transaction; the ids of their events."""
        named = [(deed.event_id or new_event_id(self._clock), deed) for deed in changes]
        drafts = await asyncio.to_thread(lambda: [draft for one in named for draft in self._event_drafts(*one)])
        if drafts:
            await self._log.append(drafts)
        return [event_id for event_id, _ in named]

    def _event_drafts(self, event_id: str, change: RecordChange) -> Iterator[EventDraft]:
        """A deed, and its words as they were where they are to stay so here."""
        record = change.record
        path = None if record.project_path is None else self._redactor.clean(record.project_path)
        clean = self._redactor.clean_payload(change.payload)
        yield EventDraft(
            type=change.event_type,
            payload=clean,
            project_id=record.project_id,
            project_path=path,
            event_id=event_id,
            origin=Origin.MODEL if record.author != "hand" and change.event_type == SESSION_RECORDED else Origin.USER,
        )
        options = self._page_folders.options(record.project_path).value
        if change.event_type in {SESSION_RECORDED, SESSION_EDITED} and not options.recording.sanitize_sensitive:
            said = content_payload(record.content)
            if content_payload(content_of(clean.value)) != said:
                yield EventDraft(
                    type=SESSION_ORIGINAL, payload=self._no_redaction.clean_payload({"of": event_id, **said})
                )


def _record_id(session_id: str | None, until_event_id: str | None) -> str | None:
    """One record for one state of a session, whichever process makes it."""
    if session_id is None or until_event_id is None:
        return None
    return "rec_" + hashlib.sha256(f"{session_id}\n{until_event_id}".encode()).hexdigest()[:32]


def _local_time_of(event: Event, clock: Clock) -> datetime:
    """When an event was, on the clock of the person, as that went on its own day."""
    try:
        return clock.local(datetime.fromisoformat(event.ts))
    except (ValueError, OverflowError):
        return clock.now()
