"""Turn conversations of other programs into events.

A conversation becomes a session and a turn an exchange, with ids derived from the other program's: another import
records only what is new. If a later export holds more of a turn, the recorded part stays and the rest becomes a turn
of its own. Recall finds these exchanges; the document leaves them out, because they would crowd out its own lines.
"""

import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from sync.archive.chat_exports import ChatTurn, ImportedChat
from sync.clock import Clock, local_day_and_offset, timestamp
from sync.document.capture.exchange_events import (
    ExchangeInput,
    RedactedExchange,
    draft_exchange_events,
    draft_exchange_text,
    keyed_event_id,
)
from sync.log.event_types import SESSION_ENDED, SESSION_STARTED
from sync.log.ingest import DraftBuilder
from sync.log.model import Door, Event, EventDraft, Origin

FindEvent = Callable[[str], Event | None]  # by its id


def split_recorded_turns(chat: ImportedChat, find_event: FindEvent) -> ImportedChat:
    """Split each turn that has grown since it was recorded into the recorded part and the rest."""
    return replace(chat, turns=tuple(part for turn in chat.turns for part in _split_turn(chat, turn, find_event)))


def _split_turn(chat: ImportedChat, turn: ChatTurn, find_event: FindEvent) -> Iterator[ChatTurn]:
    rest = turn
    while (recorded := find_event(_turn_event_id(chat, rest))) is not None:
        if not recorded.payload:  # erased: its whole text must not come back
            return
        count = _recorded_message_count(rest, recorded)
        yield ChatTurn(rest.messages[:count])
        if count == len(rest.messages):
            return
        rest = ChatTurn(rest.messages[count:])
    yield rest


def _recorded_message_count(turn: ChatTurn, recorded: Event) -> int:
    """Return how many messages of a turn an exchange holds, judged by its lengths; all if that cannot be decided."""
    lengths = (recorded.payload.get("question_length"), recorded.payload.get("answer_length"))
    return next((count for count, reached in enumerate(turn.lengths(), 1) if reached == lengths), len(turn.messages))


def draft_chat_events(chat: ImportedChat, intake: DraftBuilder, *, keeps_texts: bool) -> Iterator[EventDraft]:
    """Yield the events of one conversation, in order. Raises InvalidInput, RedactionFailed.

    `keeps_texts`: this device keeps the whole text of exchanges, not their summaries alone.
    """
    times = [turn.asked_at for turn in chat.turns if turn.asked_at is not None]
    started = chat.started_at or (times[0] if times else None)
    yield _draft_session_event(chat, intake, SESSION_STARTED, started, {"title": chat.title, "source": chat.program})
    latest = started
    for turn in chat.turns:
        latest = turn.asked_at or latest
        yield from _draft_turn_events(chat, turn, latest, intake, keeps_texts=keeps_texts)
    yield _draft_session_event(chat, intake, SESSION_ENDED, latest, {"reason": "imported"})


def _draft_turn_events(
    chat: ImportedChat, turn: ChatTurn, at: datetime | None, intake: DraftBuilder, *, keeps_texts: bool
) -> Iterator[EventDraft]:
    exchange = ExchangeInput(
        turn.question, turn.answer, _session_id_of(chat), idempotency_key=_idempotency_key(chat, turn)
    )
    policy_fields = {"in_document": False, "source": chat.program}
    redacted = RedactedExchange.of(exchange, intake.redactor)
    drafts = draft_exchange_events(
        exchange,
        intake.redactor,
        device_id=chat.program,
        store_messages=intake.store_messages,
        redacted=redacted,
        policy_fields=policy_fields,
    )
    sides = (" ".join(redacted.user_message.split()), " ".join(redacted.ai_response.split()))
    if keeps_texts and drafts and sides != (redacted.question, redacted.answer):
        text = draft_exchange_text(drafts[0], redacted, intake.redactor, (), tools=False)
        drafts += [text] if text is not None else []
    return (as_imported(draft, at, intake.clock) for draft in drafts)


def _draft_session_event(
    chat: ImportedChat, intake: DraftBuilder, event_type: str, at: datetime | None, payload: dict[str, Any]
) -> EventDraft:
    digest = hashlib.sha256(f"{chat.program}\n{chat.chat_id}\n{event_type}".encode()).hexdigest()[:32]
    value = {"type": event_type, "payload": payload, "session_id": _session_id_of(chat), "event_id": f"evt_{digest}"}
    return as_imported(intake.build(value), at, intake.clock)


def as_imported(draft: EventDraft, at: datetime | None, clock: Clock) -> EventDraft:
    """Mark a draft as imported, with its day in the user's time zone if the time is known and in the calendar."""
    local = None if at is None else local_day_and_offset(at, clock)
    draft = replace(draft, origin=Origin.IMPORTED, door=Door.IMPORT)
    if at is None or local is None:
        return draft
    day, offset = local
    return replace(draft, ts=timestamp(at), local_date=day, utc_offset=offset)


def _idempotency_key(chat: ImportedChat, turn: ChatTurn) -> str:
    return f"{chat.chat_id}\n{turn.turn_id}"


def _turn_event_id(chat: ImportedChat, turn: ChatTurn) -> str:
    """Return the id of a turn's exchange."""
    event_id = keyed_event_id(chat.program, _idempotency_key(chat, turn))
    assert event_id is not None  # it has a key
    return event_id


def _session_id_of(chat: ImportedChat) -> str:
    """Return a session id that is a valid file name: the program's own id, hashed."""
    return f"sess_{chat.program}_{hashlib.sha256(chat.chat_id.encode()).hexdigest()[:16]}"
