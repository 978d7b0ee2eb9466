"""Forget by meaning: show what belongs together, hide it at once, and erase it when it can no longer be undone.

Why it is done this way: docs/decisions/055-forget-by-meaning.md.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from sync.clock import Clock, is_process_session, new_event_id, timestamp
from sync.db.engine import Transaction
from sync.document.erasure import erasure
from sync.erasure_service import ErasureService
from sync.errors import InvalidInput, StorageError, TooLarge
from sync.log import erased_store
from sync.log import store as log_store
from sync.log.event_types import CONVERSATION_TYPES, FORGET_ENDED, FORGET_REQUESTED, RECORD_CHANGE_TYPES
from sync.log.model import Event, text_in
from sync.log.retractions import ForgetRequest
from sync.runtime.change_counter import wait_for_any_change

if TYPE_CHECKING:  # loaded at their first use
    from sync.daily.service import DailyService
    from sync.understanding.service import FactService

MAX_FORGET_EVENTS: Final = 2_000  # that one request may take
MAX_UNDO_SECONDS: Final = 300  # nothing that follows an unsent event is sent meanwhile
RETRY_SECONDS: Final = 5.0  # after an erasure that the disk refused


class ForgetSubject(msgspec.Struct, frozen=True):
    """What to forget: a fact, events, or what has some words. Exactly one is given."""

    fact_id: str | None = None
    event_ids: tuple[str, ...] = ()
    query: str | None = None


class ForgetPreview(msgspec.Struct, frozen=True):
    """The events that would go together. `token`: what a request for words must give."""

    events: tuple[Event, ...]
    token: str


class Forgetting(msgspec.Struct, frozen=True):
    """An accepted request. `request_id` is None if it was carried out at once."""

    events: tuple[Event, ...]
    due: str
    request_id: str | None = None
    kept_files: tuple[str, ...] = ()


class ForgetService(msgspec.Struct, frozen=True):
    """The requests of one profile. `serves`: a sidecar runs that can carry out a request later."""

    erasure: ErasureService
    facts: "Callable[[], FactService]"
    daily: "Callable[[], DailyService]"
    undo_seconds: float
    clock: Clock
    serves: Callable[[], bool]
    lock: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)

    async def preview(self, subject: ForgetSubject) -> ForgetPreview:
        """What would go. Raises InvalidInput, TooLarge with the count."""
        return await self._preview(subject, await self.erasure.log.newest_position())

    async def request(
        self, subject: ForgetSubject, *, token: str | None = None, undo_seconds: float | None = None
    ) -> Forgetting:
        """Hide what a subject means, and erase it later; without a sidecar, or with 0 seconds, erase it at once.

        The request is on disk when this returns. Raises InvalidInput, TooLarge, StorageError.
        """
        position = await self.erasure.log.newest_position()
        if subject.query is not None:
            head = (token or "").partition(".")[0]
            position = int(head) if head.isdecimal() and head.isascii() else -1
        found = await self._preview(subject, position)
        if subject.query is not None and token != found.token:
            hint = "Call it with preview: true, show what would go, and give the token of that answer."
            wrong = "what these words mean has changed since the preview" if token else "a query needs a token"
            raise InvalidInput(wrong, field="token", hint=hint)
        return await self.accept(found.events, undo_seconds=undo_seconds)

    async def accept(self, events: Sequence[Event], *, undo_seconds: float | None = None) -> Forgetting:
        """Forget these events, which a preview has shown."""
        names, now = [event.event_id for event in events], self.clock.now()
        seconds = self.undo_seconds if undo_seconds is None else undo_seconds
        if not names:
            return Forgetting((), timestamp(now))
        if not self.serves() or seconds <= 0:
            kept_files = (await self.erasure.request(names)).files_left
            return Forgetting(tuple(events), timestamp(now), kept_files=tuple(kept_files))
        request_id, due = new_event_id(self.clock), timestamp(now + timedelta(seconds=seconds))
        build = self.erasure.draft_builder.build_hold
        parts = enumerate(erasure.parts_of(names))
        drafts = [build(FORGET_REQUESTED, _part_id(request_id, at), part, due=due) for at, part in parts]
        await self.erasure.log.append(drafts)
        return Forgetting(tuple(events), due, request_id)

    async def erase_later(self, events: Sequence[Event]) -> str | None:
        """`accept` these events with all that belongs to them; when they are erased. None without a sidecar."""
        if not self.serves() or self.undo_seconds <= 0:
            return None
        done = await self.accept(await self.together(events))
        return None if done.request_id is None else done.due

    async def undo_newest(self) -> bool:
        """Undo the newest request that waits; False if there is none."""
        if not [one for one in await self.waiting() if not self._is_due(one)]:
            return False
        await self.undo()
        return True

    async def undo(self, request_id: str | None = None) -> ForgetRequest:
        """Show again what a request has hidden, by default the newest. Raises InvalidInput if its time is over."""

        def work(connection: Transaction) -> ForgetRequest:
            waiting = [one for one in erased_store.forget_requests(connection) if not self._is_due(one)]
            chosen = [one for one in waiting if request_id in {None, one.request_id}]
            if not chosen:
                message = "nothing waits to be forgotten" if request_id is None else "no such request waits"
                hint = "It was undone, or its time is over: then it is erased and cannot come back."
                raise InvalidInput(message, field="requestId", hint=hint)
            self._end(connection, chosen[-1], undone=True)
            return chosen[-1]

        async with self.lock:
            undone = await self.erasure.log.database.write(work)
        self.erasure.log.changed.increment()
        return undone

    async def waiting(self) -> list[ForgetRequest]:
        """The requests that are not carried out yet, oldest first."""
        return await self.erasure.log.database.read(erased_store.forget_requests)

    async def carry_out_due(self) -> float | None:
        """Erase what is due; the seconds until the next request is, None if none waits. Raises StorageError."""
        async with self.lock:
            for one in await self.waiting():
                if self._is_due(one):
                    await self.erasure.request(sorted(one.event_ids))
                    await self.erasure.log.database.write(self._end, one, undone=False)
                    self.erasure.log.changed.increment()
        left = [datetime.fromisoformat(one.due) - self.clock.now() for one in await self.waiting()]
        return max(0.0, min(left).total_seconds()) if left else None

    async def run(self) -> None:
        """A sidecar's work: carry out each request when it is due."""
        log = self.erasure.log
        while True:
            seen = log.changed.count
            try:
                seconds = await self.carry_out_due()
            except StorageError:  # the text stays hidden; `doctor` says why the disk refuses
                seconds = RETRY_SECONDS
            await wait_for_any_change(seconds, (log.changed, seen))

    def _is_due(self, request: ForgetRequest) -> bool:
        """Whether its time is over, or the clock was put back behind its beginning."""
        try:
            left = (datetime.fromisoformat(request.due) - self.clock.now()).total_seconds()
        except (ValueError, TypeError):
            return True
        return not 0 < left <= MAX_UNDO_SECONDS

    def _end(self, connection: Transaction, request: ForgetRequest, *, undone: bool) -> None:
        build = self.erasure.draft_builder.build_hold
        parts = enumerate(erasure.parts_of(sorted(request.event_ids)))
        ends = [build(FORGET_ENDED, f"{request.request_id}.end{at or ''}", part, undone=undone) for at, part in parts]
        self.erasure.log.append_in(connection, ends)
        erased_store.settle_forget_requests(connection, self.clock)

    # --- what belongs together ------------------------------------------------------------------------------------

    async def _preview(self, subject: ForgetSubject, position: int) -> ForgetPreview:
        named = [event for event in await self._named_by(subject) if event.position <= position]
        digest = hashlib.sha256("\n".join(sorted(event.event_id for event in named)).encode()).hexdigest()
        return ForgetPreview(tuple(await self.together(named)), f"{position}.{digest[:32]}")

    async def _named_by(self, subject: ForgetSubject) -> list[Event]:
        if subject.query is not None:
            from sync.daily.commands.named_facts import named_facts  # noqa: PLC0415 - at its first use

            facts = await self.facts().current()
            meant = named_facts(subject.query, [*facts.active, *facts.candidates])
            said = await self.erasure.find_with_words(subject.query)
            return list({one.event_id: one for one in [*said, *await self.facts().events_of(meant)]}.values())
        if subject.fact_id is not None:
            fact = (await self.facts().explain(subject.fact_id)).fact
            return await self._with_records(await self.facts().events_of([fact]))
        known = await self.erasure.known_ids(subject.event_ids)
        return await self._with_records(await self._events(list(known.values())))

    async def _with_records(self, events: list[Event]) -> list[Event]:
        """Events, and the daily records of the conversations that they are of."""
        spoken = {event.session_id for event in events if event.type in CONVERSATION_TYPES}
        sessions = {session_id for session_id in spoken if not is_process_session(session_id)}
        if not sessions:
            return events
        records = (await self.daily().current_records()).all_records()
        ids = {record.record_id for record in records if record.session_id in sessions}
        return [*events, *await self._events(await self._events_of_records(ids))]

    async def _events_of_records(self, record_ids: set[str]) -> list[str]:
        if not record_ids:
            return []
        from sync.daily.conversation.current_conversation import ConversationEvents  # noqa: PLC0415 - at its first use

        return await self.daily().record_service.event_ids_of(ConversationEvents(None), record_ids)

    async def together(self, events: Sequence[Event]) -> list[Event]:
        """These events with all of their daily records and what repeats them. Raises TooLarge with the count."""
        changes = (text_in(event, "record_id") for event in events if event.type in RECORD_CHANGE_TYPES)
        names = [event.event_id for event in events]
        names += await self._events_of_records({name for name in changes if name is not None})
        read = self.erasure.log.database.read
        held = await read(erased_store.held_ids)
        every = await read(lambda connection: erasure.erasable_events(connection, [*dict.fromkeys(names)]))
        left = [name for name in every if name not in held]
        if len(left) > MAX_FORGET_EVENTS:
            message = f"that would take {len(left)} events; one request takes at most {MAX_FORGET_EVENTS}"
            raise TooLarge(message, hint="Use more words, or forget it in parts.")
        return await self._events(left)

    async def _events(self, names: Sequence[str]) -> list[Event]:
        def read(connection: Transaction) -> Iterator[Event]:
            found = (log_store.find_event(connection, name) for name in dict.fromkeys(names))
            return (event for event in found if event is not None)

        return await self.erasure.log.database.read(lambda connection: list(read(connection)))


def _part_id(request_id: str, number: int) -> str:
    return f"{request_id}.{number}" if number else request_id
