"""Conversations of other programs as events of this log.

Decisions
    A conversation becomes a session that began and ended when it did; a turn becomes an exchange, as if it had been
    said here, but for its origin (`imported`), its day and its id, which comes from the ids of the other program: the
    same export again, and a later one that holds more, record only what is new, on whatever device.
    Where a later export holds more of a turn, as the answer that was still missing, what is recorded stays as it is and
    the rest is a turn of its own, without a question where it is an answer. How much is recorded is told by the
    lengths in the recorded exchange; where no beginning of the turn has those (it was forgotten, or answered anew), it
    stays what it is.
    They are found by recall and kept out of the document: years of another program would fold its few lines away.
    Their whole text is kept where the user has the originals of messages kept, as for what is said here.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from sync.archive.chat_exports import ChatTurn, ImportedChat
from sync.clock import Clock, local_day_and_offset, timestamp
from sync.document.capture.exchange_events import ExchangeInput, draft_exchange_events, keyed_event_id
from sync.log.event_types import SESSION_ENDED, SESSION_STARTED
from sync.log.ingest import DraftBuilder
from sync.log.model import Event, EventDraft, Origin

FindEvent = Callable[[str], Event | None]  # what the log holds under an id


def split_recorded_turns(chat: ImportedChat, find_event: FindEvent) -> ImportedChat:
    """The conversation with each turn that has grown since it was recorded divided into what is here and the rest."""
    return replace(chat, turns=tuple(part for turn in chat.turns for part in _split_turn(chat, turn, find_event)))


def _split_turn(chat: ImportedChat, turn: ChatTurn, find_event: FindEvent) -> Iterator[ChatTurn]:
    rest = turn
    while (recorded := find_event(_turn_event_id(chat, rest))) is not None:
        here = _recorded_message_count(rest, recorded)
        yield ChatTurn(rest.messages[:here])
        if here == len(rest.messages):
            return
        rest = ChatTurn(rest.messages[here:])
    yield rest


def _recorded_message_count(turn: ChatTurn, recorded: Event) -> int:
    """How many messages of a turn an exchange was made of; all, where that cannot be told."""
    lengths = (recorded.payload.get("question_length"), recorded.payload.get("answer_length"))
    return next((count for count, found in enumerate(turn.lengths(), 1) if found == lengths), len(turn.messages))


def draft_chat_events(chat: ImportedChat, intake: DraftBuilder) -> Iterator[EventDraft]:
    """The events of one conversation, in order. Raises InvalidInput, RedactionFailed."""
    times = [turn.asked_at for turn in chat.turns if turn.asked_at is not None]
    begun = chat.started_at or (times[0] if times else None)
    yield _draft_session_event(chat, intake, SESSION_STARTED, begun, {"title": chat.title, "source": chat.program})
    latest = begun
    for turn in chat.turns:
        latest = turn.asked_at or latest
        yield from _draft_turn_events(chat, turn, latest, intake)
    yield _draft_session_event(chat, intake, SESSION_ENDED, latest, {"reason": "imported"})


def _draft_turn_events(
    chat: ImportedChat, turn: ChatTurn, at: datetime | None, intake: DraftBuilder
) -> Iterator[EventDraft]:
    exchange = ExchangeInput(
        turn.question, turn.answer, _session_id_of(chat), idempotency_key=_idempotency_key(chat, turn)
    )
    decided = {"in_document": False, "source": chat.program}
    drafts = draft_exchange_events(
        exchange, intake.redactor, device_id=chat.program, store_messages=intake.store_messages, policy_fields=decided
    )
    return (_as_imported(draft, at, intake.clock) for draft in drafts)


def _draft_session_event(
    chat: ImportedChat, intake: DraftBuilder, event_type: str, at: datetime | None, payload: dict[str, Any]
) -> EventDraft:
    digest = hashlib.sha256(f"{chat.program}\n{chat.chat_id}\n{event_type}".encode()).hexdigest()[:32]
    value = {"type": event_type, "payload": payload, "session_id": _session_id_of(chat), "event_id": f"evt_{digest}"}
    return _as_imported(intake.build(value), at, intake.clock)


def _as_imported(draft: EventDraft, at: datetime | None, clock: Clock) -> EventDraft:
    """As imported, on the day it was, where that is known and is one in the zone of the person."""
    known = None if at is None else local_day_and_offset(at, clock)
    if at is None or known is None:
        return replace(draft, origin=Origin.IMPORTED)
    day, offset = known
    return replace(draft, origin=Origin.IMPORTED, ts=timestamp(at), local_date=day, utc_offset=offset)


def _idempotency_key(chat: ImportedChat, turn: ChatTurn) -> str:
    return f"{chat.chat_id}\n{turn.turn_id}"


def _turn_event_id(chat: ImportedChat, turn: ChatTurn) -> str:
    """The id of the exchange that a turn becomes."""
    event_id = keyed_event_id(chat.program, _idempotency_key(chat, turn))
    assert event_id is not None  # there is a key
    return event_id


def _session_id_of(chat: ImportedChat) -> str:
    """The program's own id, hashed: it becomes a file's name and must be one."""
    return f"sess_{chat.program}_{hashlib.sha256(chat.chat_id.encode()).hexdigest()[:16]}"
