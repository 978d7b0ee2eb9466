"""Record, edit, mark, remove and undo daily records; each change is an event.

Every text is redacted like what leaves the device. If `sanitize_sensitive` is false, the unredacted text is also kept
in an event that never leaves (`session_original`). A record's event does not carry the session's id, or it would reopen
the session; its payload names it. A sensitive conversation is erased with all its events, and cannot be restored.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.clock import Clock, new_event_id, to_unix_ms, uuid7
from sync.daily.conversation import current_conversation, store
from sync.daily.conversation.command_parser import decide_saving, last_save_request
from sync.daily.conversation.command_phrases import CommandKind
from sync.daily.conversation.current_conversation import ConversationEvents
from sync.daily.conversation.extractive_summary import SummaryTurn, quality
from sync.daily.conversation.transcript import contents_of, local_time_of, said_by_one, turns_of
from sync.daily.model import Author, Content, Mark, Record, content_of, marks_of
from sync.daily.pages.numbering import next_number
from sync.daily.pages.page_folders import PageFolders
from sync.daily.records.changes import (
    PlannedChange,
    RecordChange,
    author_fields,
    create_record,
    edit_record,
    mark_record,
    payload_after,
    remove_record,
    session_record_id,
)
from sync.daily.records.records_cache import RecordsCache
from sync.daily.records.reducer import DailyRecords
from sync.errors import InvalidInput
from sync.log.authorship import authorship
from sync.log.event_types import (
    CONVERSATION_TYPES,
    DAILY_UNDONE,
    EXCHANGE_TEXT,
    SESSION_EDITED,
    SESSION_ORIGINAL,
    SESSION_RECORDED,
    SESSION_SKIPPED,
)
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import DOOR_FIELD, Door, Event, EventDraft, Origin, project_id_for
from sync.log.sessions import session_store
from sync.log.sessions.pauses import draft_pause
from sync.redaction import Redactor

BeforeErasure = Callable[[Sequence[str]], Awaitable[None]]  # with the ids of the events that are erased next
ERASE_BATCH: Final = 500  # ids in one event, whose size is limited
CHANGES_PER_TRANSACTION: Final = 200  # other writers wait for a transaction


class RecordRequest(msgspec.Struct, frozen=True):
    """What to record. Missing turns are read from the session's events.

    `summary`: the caller's own. `is_explicit`: the user asked for it. `moment`: now by default. `record_id` and
    `event_id`: ids that were chosen beforehand. `door`: where it is recorded.
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
    door: Door = Door.HAND


class ChangeResult(msgspec.Struct, frozen=True):
    """The record as changed, or the reason for no change. `event_id`: for `undo`."""

    record: Record | None
    reason: str | None = None
    event_id: str | None = None


class RecordService:
    """Every change of one profile's records goes through here."""

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
        self._lock = asyncio.Lock()  # so that no number is assigned twice

    async def record_conversation(self, request: RecordRequest) -> ChangeResult:
        """Record a conversation, or update the record of its session. Raises InvalidInput, StorageError."""
        async with self._lock:
            name, own = request.session_id, self._log.own_device_ids
            said = await self._log.database.read(store.session_events, name, CONVERSATION_TYPES) if name else []
            events, door = said_by_one(said, own)
            turns = request.turns or tuple(turns_of(events))
            texts = await self._log.database.read(store.session_events, name, (EXCHANGE_TEXT,)) if name else []
            whole = () if request.turns else tuple(turns_of(events, texts))
            paths = (event.project_path for event in reversed(events) if event.project_path)
            path = request.project_path or next(paths, None)
            options = (await asyncio.to_thread(self._page_folders.options, path)).value
            records = await self._records_cache.current_records()
            paused = await self._log.database.read(session_store.read_paused_sessions, own)
            refused = _refusal_reason(request, paused.session_ids, turns, options.recording)
            if refused is None and await asyncio.to_thread(self._page_folders.folder_of, path) is None:
                refused = "no_place"
            if refused is not None:
                return ChangeResult(None, refused)
            content, original = contents_of(request.summary, turns, whole, self._redactor, options.recording)
            author: Author = request.author if request.summary is not None else "extractive"
            origin = Origin.USER if author == "hand" else Origin.MODEL
            extra = {DOOR_FIELD: request.door if request.turns or request.summary is not None else door}
            written = authorship(SESSION_RECORDED, origin, self._log.device_id, extra)
            until = events[-1].event_id if events else None
            if name and (of_session := records.of_session(name, written, own)):
                change = _continue_record(records, of_session[-1], content, original, until, author)
                if isinstance(change, str):
                    return ChangeResult(of_session[-1], change)
                return await self._apply(replace(change, original=original, is_whole=bool(whole)))
            rating = quality(original, whole or turns) if author != "hand" else None
            record = await asyncio.to_thread(self._build_record, request, events, content, path, records)
            record_id = request.record_id or session_record_id(written, name, until) or self.new_id()
            record = replace(record, record_id=record_id, author=author, quality=rating, written=written)
            change = create_record(record, request.event_id)
            return await self._apply(replace(change, original=original, is_whole=bool(whole)))

    def _build_record(
        self, request: RecordRequest, events: Sequence[Event], content: Content, path: str | None, records: DailyRecords
    ) -> Record:
        """A new record with the next number of its day's page."""
        moment = request.moment or (local_time_of(events[-1], self._clock) if events else self._clock.now())
        until = events[-1].event_id if events else None
        day = moment.date().isoformat()
        project_id = project_id_for(path) if request.project_path or not events else events[-1].project_id
        return Record(
            record_id="",
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
        """An id for a new record."""
        return f"rec_{uuid7(to_unix_ms(self._clock.now()), self._clock.random_bytes).hex}"

    async def add(
        self,
        day: str | None,
        time: str | None,
        content: Content,
        path: str | None,
        marks: Sequence[Mark],
        **chosen: Any,
    ) -> ChangeResult:
        """Record something outside of a session; today by default. `chosen`: further fields of the request."""
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
                **chosen,
            )
        )

    async def edit(
        self, record_id: str, content: Content, parts: Sequence[str], *, event_id: str | None = None
    ) -> ChangeResult:
        """Replace the named parts of a record by those of `content`. Raises InvalidInput."""
        record = (await self._records_cache.current_records()).get(record_id, self._log.own_device_ids)
        changed = [part for part in record.content.changed_parts(content) if part in parts]
        if not changed:
            return ChangeResult(record, "nothing_changed")
        return await self._apply(edit_record(record, content, changed, by="hand", event_id=event_id))

    async def remove(self, record_id: str, *, reason: str = "asked") -> ChangeResult:
        """Remove a record; `undo` restores it."""
        record = (await self._records_cache.current_records()).get(record_id, self._log.own_device_ids)
        return replace(await self._apply(remove_record(record, reason=reason)), record=record)

    async def mark(self, record_id: str, mark: Mark, *, on: bool = True) -> ChangeResult:
        """Set or clear a mark."""
        record = (await self._records_cache.current_records()).get(record_id, self._log.own_device_ids)
        change = mark_record(record, mark, on=on)
        return ChangeResult(record, "nothing_changed") if change is None else await self._apply(change)

    async def apply_all(self, changes: Sequence[PlannedChange]) -> None:
        """Apply many changes, a few hundred in one transaction; one by one they would take minutes.

        Each planned change is applied as a whole. If this stops early, the finished transactions remain.
        """
        for start in range(0, len(changes), CHANGES_PER_TRANSACTION):
            records = await self._records_cache.current_records()
            batch = changes[start : start + CHANGES_PER_TRANSACTION]
            await self._append([change for plan in batch for change in plan(records)])

    async def set_skipped(self, session_id: str | None, *, on: bool = True) -> str:
        """Stop saving this conversation, or resume; the event's id. None means whatever has no session id."""
        (recorded,) = await self._log.append([draft_pause(session_id, self._redactor, on=on)])
        return recorded.event.event_id

    async def event_ids_of(self, conversation: ConversationEvents, records: Iterable[str] = ()) -> list[str]:
        """The ids of all events of a conversation and of these records, with their corrections."""
        every = (await self._records_cache.current_records()).all_records()
        ids = {record.record_id for record in every if record.session_id in conversation.session_ids}
        if conversation.session_id is None:  # a process's session lasts for days and has records of other conversations
            ids &= await self._records_cache.record_ids_ending_with(frozenset(conversation.event_ids))
        event_ids = [*await self._records_cache.event_ids_of_records(ids.union(records)), *conversation.event_ids]
        return [*event_ids, *await self._records_cache.correction_ids(set(event_ids))]

    async def forget_session(self, session_id: str, *, before: BeforeErasure | None = None) -> list[str]:
        """Erase a sensitive conversation, here and everywhere. The ids of the erased events, which `before` gets."""
        await self.set_skipped(session_id)
        conversation = await self._log.database.read(current_conversation.conversation_of_session, session_id)
        return await self._erase(await self.event_ids_of(conversation), before)

    async def forget(self, record_id: str, *, before: BeforeErasure | None = None) -> list[str]:
        """Erase a sensitive record and its conversation."""
        record = (await self._records_cache.current_records()).get(record_id, self._log.own_device_ids)
        if record.session_id is not None:
            return await self.forget_session(record.session_id, before=before)
        return await self._erase(await self.event_ids_of(ConversationEvents(None), {record.record_id}), before)

    async def undo(self, event_id: str | None = None) -> ChangeResult:
        """Undo a change, by default this device's last one. Raises InvalidInput if there is nothing to undo."""
        records = await self._records_cache.current_records()
        if event_id is None:
            change = records.last_undoable_change(self._log.device_id)
        else:
            change = next((event for event in records.changes if event.event_id == event_id), None)
        if change is None:
            hint = "`xiaobai-memory daily list` shows the records; nothing was changed."
            raise InvalidInput("there is nothing to undo", field="eventId", hint=hint)
        if change.type == SESSION_SKIPPED:
            hint = "To save this conversation again, say 记住这个 or `save this`."
            raise InvalidInput("what was not saved cannot come back", field="eventId", hint=hint)
        record_id = change.payload.get("record_id")
        remaining = await self._records_cache.records_without(change.event_id)
        record = remaining.by_id.get(record_id) if isinstance(record_id, str) else None
        payload: dict[str, Any] = {"undoes": change.event_id, "record_id": record_id}
        payload |= payload_after(record) if record is not None else {"gone": True}
        author = author_fields(record) if record is not None else {}
        clean = self._redactor.clean_payload(payload)
        (undo,) = await self._log.append([EventDraft(type=DAILY_UNDONE, payload=clean, **author)])
        return ChangeResult(record, None, undo.event.event_id)

    async def _erase(self, event_ids: list[str], before: BeforeErasure | None) -> list[str]:
        if before is not None:
            await before(event_ids)
        for start in range(0, len(event_ids), ERASE_BATCH):
            await self._log.append([self._intake.build_erasure(event_ids[start : start + ERASE_BATCH])])
        return event_ids

    async def _apply(self, change: RecordChange) -> ChangeResult:
        """Append a change; the record after it."""
        (event_id,) = await self._append([change])
        record = (await self._records_cache.current_records()).by_id.get(change.record.record_id)
        return ChangeResult(record, None, event_id)

    async def _append(self, changes: Sequence[RecordChange]) -> list[str]:
        """Append changes in one transaction; the ids of their events."""
        named = [(change.event_id or new_event_id(self._clock), change) for change in changes]
        drafts = await asyncio.to_thread(lambda: [draft for pair in named for draft in self._event_drafts(*pair)])
        if drafts:
            await self._log.append(drafts)
        return [event_id for event_id, _ in named]

    def _event_drafts(self, event_id: str, change: RecordChange) -> Iterator[EventDraft]:
        """A change's event and, if this device shows more, one with that: whole texts, or what is not redacted."""
        record = change.record
        path = None if record.project_path is None else self._redactor.clean(record.project_path)
        clean = self._redactor.clean_payload(change.payload)
        yield EventDraft(
            type=change.event_type,
            payload=clean,
            project_id=record.project_id,
            project_path=path,
            event_id=event_id,
            **change.author_fields,
        )
        if change.event_type in {SESSION_RECORDED, SESSION_EDITED}:
            is_redacted = self._page_folders.options(record.project_path).value.recording.sanitize_sensitive
            redactor = self._redactor if is_redacted else self._no_redaction
            original = redactor.clean_payload({"of": event_id, **change.original_payload})
            if content_of(original.value) != content_of(clean.value):
                yield EventDraft(type=SESSION_ORIGINAL, payload=original)


def _continue_record(
    records: DailyRecords, record: Record, content: Content, original: Content, until_event_id: str | None, by: Author
) -> RecordChange | str:
    """Update the record of a session that continued, or say why not. A summary does not replace a manual edit."""
    if until_event_id is not None and until_event_id == record.until_event_id and by == "extractive":
        return "already_recorded"
    edited = any(
        event.type == SESSION_EDITED
        and event.payload.get("record_id") == record.record_id
        and event.payload.get("by") == "hand"
        for event in records.changes
    )
    if edited and by == "extractive":
        return "edited_by_hand"
    changed = sorted({*record.content.changed_parts(original), *record.shared_content.changed_parts(content)})
    return edit_record(record, original, changed, by=by, until_event_id=until_event_id, shared=content)


def _refusal_reason(
    request: RecordRequest, paused: Collection[str], turns: Sequence[SummaryTurn], recording: Any
) -> str | None:
    """Why a conversation is not recorded; None if it is."""
    if request.is_explicit:
        return None if request.summary is not None or turns else "nothing_said"
    if request.session_id in paused:
        return "skip"
    if request.summary is None and not turns:
        return "nothing_said"
    if request.summary is not None:  # the caller has decided that it is worth keeping
        decision = last_save_request(turns)
        return str(decision) if decision in {CommandKind.SKIP, CommandKind.SENSITIVE} else None
    saving = decide_saving(turns, min_rounds=recording.min_conversation_length, auto_save=recording.auto_save)
    return None if saving.is_wanted else saving.reason
