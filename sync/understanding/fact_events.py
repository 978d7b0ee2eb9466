"""Facts as events: the drafts of statements and of answers about facts, and how both are read again. Pure.

The events of other programs may have any fields: what is missing or wrong has a default, and an event without a text
is no statement.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast

import msgspec
from msgspec.structs import fields, replace

from sync.log.authorship import Author, author_of
from sync.log.envelope import bounded_hlc
from sync.log.event_types import (
    FACT_CONFIRMED,
    FACT_DOUBTED,
    FACT_EDITED,
    FACT_QUESTIONED,
    FACT_REJECTED,
    FACT_RETRACTED,
    FACT_SUPERSEDED,
    FOREIGN_CHANGE_ANSWERED,
    MEMORY_FACT,
)
from sync.log.model import GLOBAL_PROJECT, Door, Event, EventDraft, Origin
from sync.redaction import Redactor
from sync.understanding.model import (
    MAX_REMEMBERED,
    MAX_STATEMENT_LENGTH,
    REMEMBER,
    USER_SUBJECT,
    AnswerKind,
    FactAnswer,
    FactKind,
    FactOrigin,
    FactSection,
    RecordedStatement,
    Statement,
)

PROJECT_SUBJECT: Final = "project:"
PROJECT_KINDS: Final = frozenset({FactKind.DECISION, FactKind.KNOWLEDGE})  # of the project in which they are stated
ELLIPSIS: Final = "…"
MAX_NAMED: Final = 100  # statements that an answer names, so that the server takes its event
_ANSWER_OF_EVENT: Final = {
    FACT_CONFIRMED: AnswerKind.CONFIRMED,
    FACT_REJECTED: AnswerKind.REJECTED,
    FACT_EDITED: AnswerKind.EDITED,
    FACT_RETRACTED: AnswerKind.RETRACTED,
    FACT_SUPERSEDED: AnswerKind.SUPERSEDED,
    FACT_QUESTIONED: AnswerKind.QUESTIONED,
    FACT_DOUBTED: AnswerKind.DOUBTED,
}
_EVENT_OF_ANSWER: Final = {kind: event_type for event_type, kind in _ANSWER_OF_EVENT.items()}

# The `fact_type` values of the event catalogue, and what an event of another program means by it.
_FACT_TYPES: Final[Mapping[FactKind, str]] = {
    FactKind.PREFERENCE: "preference",
    FactKind.HABIT: "preference",
    FactKind.DECISION: "decision",
    FactKind.PLAN: "plan",
    FactKind.POSSESSION: "config",
}
_KIND_OF_FACT_TYPE: Final = {_FACT_TYPES[kind]: kind for kind in _FACT_TYPES if kind is not FactKind.HABIT}
_SECTION_OF_KIND: Final = {
    FactKind.PREFERENCE: FactSection.WORK_HABITS,
    FactKind.HABIT: FactSection.WORK_HABITS,
    FactKind.DECISION: FactSection.TECHNICAL_PREFERENCES,
    FactKind.POSSESSION: FactSection.TECHNICAL_PREFERENCES,
    FactKind.KNOWLEDGE: FactSection.TECHNICAL_PREFERENCES,
}


_ORIGIN_OF_AUTHOR: Final[Mapping[Author, FactOrigin]] = {
    Author.USER: FactOrigin.USER_STATED,
    Author.APP: FactOrigin.USER_STATED,
    Author.FILE: FactOrigin.IMPORTED,
}


# --- drafts --------------------------------------------------------------------------------------------------------


def statement_drafts(statements: Sequence[Statement], exchange: EventDraft, redactor: Redactor) -> list[EventDraft]:
    """The events of the statements in an exchange, whose draft has its id. Repeated, they have the same ids."""
    return [
        statement_draft(statement, exchange, f"{exchange.event_id}.fact.{number}", redactor)
        for number, statement in enumerate(statements, start=1)
    ]


def statement_draft(
    statement: Statement, exchange: EventDraft, fact_id: str, redactor: Redactor, *, extractor: str = "rules"
) -> EventDraft:
    """The event of one statement in an exchange; it has the exchange's session and project."""
    payload = {
        "fact_type": _FACT_TYPES.get(statement.kind, "note"),
        **_fields_of(statement),
        "evidence": [exchange.event_id],
        "extractor": extractor,
    }
    if statement.kind in PROJECT_KINDS and exchange.project_id != GLOBAL_PROJECT:
        payload["subject"] = PROJECT_SUBJECT + exchange.project_id
    clean = redactor.clean_payload(payload)
    return replace(exchange, type=MEMORY_FACT, payload=clean, origin=Origin.USER, event_id=fact_id)


def answer_draft(
    kind: AnswerKind,
    fact_ids: Sequence[str],
    redactor: Redactor,
    *,
    statement: Statement | None = None,
    superseded_by: str | None = None,
    reason: str | None = None,
    door: Door | None = Door.COMMAND,
) -> EventDraft:
    """The event of the user's answer about a fact.

    `fact_ids`: the fact's id first, then those of its other statements, so that the answer holds after one is erased.
    `statement`: the new text of an edit. `reason`: a word of the program, not of the user, such as `document`.
    `door`: where the user answered.
    """
    if len(fact_ids) > MAX_NAMED:  # a statement repeated in every message: the oldest and the newest
        fact_ids = [*fact_ids[: MAX_NAMED // 2], *fact_ids[-MAX_NAMED // 2 :]]
    first, *others = fact_ids
    named = {"fact_id": first, "also_ids": others or None, "by_id": superseded_by, "reason": reason}
    payload = {name: value for name, value in named.items() if value is not None}
    payload |= {} if statement is None else _fields_of(statement)
    event_type = _EVENT_OF_ANSWER[kind]
    return EventDraft(type=event_type, payload=redactor.clean_payload(payload), origin=Origin.USER, door=door)


def _fields_of(statement: Statement) -> dict[str, Any]:
    return cast("dict[str, Any]", msgspec.to_builtins(statement, enc_hook=str))  # of clean text


# --- events --------------------------------------------------------------------------------------------------------


def evidence_of(event: Event) -> str:
    """The exchange in which a fact was stated; the event itself if it names none."""
    evidence = event.payload.get("evidence")
    return (_value(evidence[0], str) if isinstance(evidence, list) and evidence else None) or event.event_id


def recorded_statement(event: Event) -> RecordedStatement | None:
    """The statement of a `memory_fact`; None without a text."""
    statement = parse_statement(event.payload) if event.type == MEMORY_FACT else None
    if statement is None:
        return None
    subject = _value(event.payload.get("subject"), str) or USER_SUBJECT
    return RecordedStatement(
        statement=statement,
        fact_id=event.event_id,
        event_id=evidence_of(event),
        hlc=order_of(event),
        recorded_at=event.ts,
        device_id=event.device_id,
        origin=_origin_of(event),
        subject=subject if subject.startswith(PROJECT_SUBJECT) else USER_SUBJECT,
        is_proven=event.is_proven,
        has_door=event.door is not None,
    )


def recorded_answer(event: Event, known: Iterable[str]) -> FactAnswer | None:
    """The user's answer that an event holds, about the first of its facts that is in `known`.

    None for an event of which the user, or the app, is not the author, and for an edit whose text is erased.
    """
    kind = _ANSWER_OF_EVENT.get(event.type)
    fact_id = next((name for name in answered_ids(event) if name in known), None)
    if kind is None or fact_id is None or not _is_users(event):
        return None
    statement = parse_statement(event.payload) if kind is AnswerKind.EDITED else None
    if kind is AnswerKind.EDITED and statement is None:
        return None
    return FactAnswer(
        kind=kind,
        fact_id=fact_id,
        event_id=event.event_id,
        hlc=order_of(event),
        recorded_at=event.ts,
        statement=statement,
        superseded_by=_value(event.payload.get("by_id"), str),
        device_id=event.device_id,
        is_proven=event.is_proven,
    )


def recorded_decisions(event: Event) -> dict[str, bool]:
    """Whether each change of another device that an event names holds, as the user answered."""
    names, accepted = event.payload.get("event_ids"), event.payload.get("accepted")
    is_answer = event.type == FOREIGN_CHANGE_ANSWERED and author_of(event).is_users
    if not is_answer or not isinstance(names, list) or not isinstance(accepted, bool):
        return {}
    return {name: accepted for name in names if isinstance(name, str)}


def answered_ids(event: Event) -> tuple[str, ...]:
    """The ids of the statements that an answer is about."""
    named = [event.payload.get("fact_id"), *(_value(event.payload.get("also_ids"), list[Any]) or ())]
    return tuple(name for name in named if isinstance(name, str))


def parse_statement(payload: Mapping[str, Any]) -> Statement | None:
    """The statement in a payload, on one line; None without a text."""
    values = {one.name: _value(payload.get(one.encode_name), one.type) for one in fields(Statement)}
    known = {name: value for name, value in values.items() if value is not None}
    text = " ".join(known.pop("text", "").split())
    if not text:
        return None
    most = MAX_REMEMBERED if known.get("reader") == REMEMBER else MAX_STATEMENT_LENGTH
    if len(text) > most:
        text = text[: most - 1] + ELLIPSIS
    fact_type = _value(payload.get("fact_type"), str) or ""
    kind = known.setdefault("kind", _KIND_OF_FACT_TYPE.get(fact_type, FactKind.KNOWLEDGE))
    known.setdefault("section", _SECTION_OF_KIND.get(kind, FactSection.PERSONAL))
    for name in known.keys() & {"confidence", "importance"}:
        known[name] = min(max(0.0, known[name]), 1.0)
    return Statement(text, **known)


def _value(value: object, kind: Any) -> Any:
    """A value of any program; None if it is empty or of another kind."""
    with suppress(msgspec.ValidationError):
        return None if value == "" else msgspec.convert(value, kind)
    return None


def _origin_of(event: Event) -> FactOrigin:
    if not event.is_proven or event.origin == Origin.PEER:
        return FactOrigin.OTHER_DEVICE
    if event.door == Door.CLOUD:
        return FactOrigin.IMPORTED
    author = author_of(event).author
    if event.door is None and evidence_of(event) == event.event_id and author is Author.USER:
        return FactOrigin.AGENT_PROPOSED  # recorded before events had doors: a program that named no exchange
    return _ORIGIN_OF_AUTHOR.get(author, FactOrigin.AGENT_PROPOSED)


def _is_users(event: Event) -> bool:
    """Whether the user answered, or their app for them; the guard decides what that may change."""
    return event.door != Door.CLOUD and author_of(event).author in {Author.USER, Author.APP}


def order_of(event: Event) -> str:
    """What orders events among all devices, as text."""
    return f"{bounded_hlc(event)} {event.hlc}"
