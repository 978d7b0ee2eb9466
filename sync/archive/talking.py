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
from typing import Any, Final

from sync.archive.conversations import Talk, Turn
from sync.clock import Clock, day_and_offset, timestamp
from sync.document.capture import Exchange, exchange_drafts, keyed_event_id
from sync.log.intake import Intake
from sync.log.model import Draft, Event, Origin
from sync.log.payloads import STARTED

ENDED: Final = "session_ended"


Find = Callable[[str], Event | None]  # what the log holds under an id


def gone_on(talk: Talk, find: Find) -> Talk:
    """The conversation with each turn that has grown since it was recorded divided into what is here and the rest."""
    return replace(talk, turns=tuple(part for turn in talk.turns for part in _parts(talk, turn, find)))


def _parts(talk: Talk, turn: Turn, find: Find) -> Iterator[Turn]:
    rest = turn
    while (recorded := find(_event_id(talk, rest))) is not None:
        here = _recorded_of(rest, recorded)
        yield Turn(rest.messages[:here])
        if here == len(rest.messages):
            return
        rest = Turn(rest.messages[here:])
    yield rest


def _recorded_of(turn: Turn, recorded: Event) -> int:
    """How many messages of a turn an exchange was made of; all, where that cannot be told."""
    lengths = (recorded.payload.get("question_length"), recorded.payload.get("answer_length"))
    return next((count for count, found in enumerate(turn.lengths(), 1) if found == lengths), len(turn.messages))


def said(talk: Talk, intake: Intake) -> Iterator[Draft]:
    """The events of one conversation, in order. Raises InvalidInput, RedactionFailed."""
    times = [turn.at for turn in talk.turns if turn.at is not None]
    begun = talk.begun or (times[0] if times else None)
    yield _frame(talk, intake, STARTED, begun, {"title": talk.title, "source": talk.program})
    latest = begun
    for turn in talk.turns:
        latest = turn.at or latest
        yield from _turn(talk, turn, latest, intake)
    yield _frame(talk, intake, ENDED, latest, {"reason": "imported"})


def _turn(talk: Talk, turn: Turn, at: datetime | None, intake: Intake) -> Iterator[Draft]:
    exchange = Exchange(turn.question, turn.answer, _session(talk), idempotency_key=_key(talk, turn))
    decided = {"in_document": False, "source": talk.program}
    drafts = exchange_drafts(
        exchange, intake.redactor, device_id=talk.program, store_messages=intake.store_messages, decided=decided
    )
    return (_then(draft, at, intake.clock) for draft in drafts)


def _frame(talk: Talk, intake: Intake, kind: str, at: datetime | None, payload: dict[str, Any]) -> Draft:
    digest = hashlib.sha256(f"{talk.program}\n{talk.talk_id}\n{kind}".encode()).hexdigest()[:32]
    value = {"type": kind, "payload": payload, "session_id": _session(talk), "event_id": f"evt_{digest}"}
    return _then(intake.draft(value), at, intake.clock)


def _then(draft: Draft, at: datetime | None, clock: Clock) -> Draft:
    """As imported, on the day it was, where that is known and is one in the zone of the person."""
    known = None if at is None else day_and_offset(at, clock)
    if at is None or known is None:
        return replace(draft, origin=Origin.IMPORTED)
    day, offset = known
    return replace(draft, origin=Origin.IMPORTED, ts=timestamp(at), local_date=day, utc_offset=offset)


def _key(talk: Talk, turn: Turn) -> str:
    return f"{talk.talk_id}\n{turn.turn_id}"


def _event_id(talk: Talk, turn: Turn) -> str:
    """The id of the exchange that a turn becomes."""
    event_id = keyed_event_id(talk.program, _key(talk, turn))
    assert event_id is not None  # there is a key
    return event_id


def _session(talk: Talk) -> str:
    """The program's own id, hashed: it becomes a file's name and must be one."""
    return f"sess_{talk.program}_{hashlib.sha256(talk.talk_id.encode()).hexdigest()[:16]}"
