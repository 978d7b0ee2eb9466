"""Which events follow from the operations of a model's answer. Pure.

A model chooses, classifies and repairs; it does not write: the text of a fact is the user's own sentence around its
quote. It makes a fact active only where the form of the sentence agrees, and ends none: see decision 046.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

from sync.errors import XiaobaiError
from sync.log.event_types import MEMORY_FACT
from sync.log.model import EventDraft
from sync.redaction import KINDS, Redactor, placeholder
from sync.understanding.fact_events import answer_draft, statement_draft
from sync.understanding.model import (
    USER_SUBJECT,
    AnswerKind,
    Change,
    Fact,
    FactKind,
    FactOrigin,
    FactSection,
    FactStatus,
    Level,
    Statement,
)
from sync.understanding.projection import Facts
from sync.understanding.second_reader.model_reply import Operation, OperationKind, ReadReply
from sync.understanding.second_reader.model_request import WaitingExchange
from sync.understanding.second_reader.quotes import Passage, find_passage, letters_of

READER: Final = "model"
UNKNOWN: Final = "unknown"  # whom a statement is about
_WORD: Final = re.compile("[a-z]{2,20}")
_KNOWN: Final = frozenset({FactStatus.ACTIVE, FactStatus.CANDIDATE})
_CHANGES: Final = {OperationKind.REPLACE: Change.REPLACES, OperationKind.END: Change.ENDS}


@dataclass(frozen=True, slots=True)
class AcceptedOperations:
    """The events of the accepted operations, how many were refused, and the exchanges that were answered."""

    drafts: list[EventDraft] = field(default_factory=list)
    refused: int = 0
    answered: frozenset[str] = frozenset()


def accept_operations(
    reply: ReadReply, exchanges: Sequence[WaitingExchange], facts: Facts, redactor: Redactor
) -> AcceptedOperations:
    """The events of an answer's operations; one that cannot be repaired is refused alone."""
    decided = [_decide(one, exchanges, facts, redactor) for one in reply.operations]
    drafts = {str(draft.event_id or draft.payload.value): draft for one in decided for draft in one or ()}
    named = frozenset(name for one in reply.operations for name in one.event_ids)
    answered = named if not reply.is_whole else frozenset(one.event_id for one in exchanges)
    return AcceptedOperations(list(drafts.values()), reply.refused + decided.count(None), answered)


def _decide(
    operation: Operation, exchanges: Sequence[WaitingExchange], facts: Facts, redactor: Redactor
) -> list[EventDraft] | None:
    """The events of one operation; None if it is refused."""
    older = facts.by_id.get(facts.id_of_statement.get(operation.fact_id, ""))
    older = older if older is not None and older.status is FactStatus.ACTIVE else None
    match operation.op:
        case OperationKind.NONE:
            return []
        case OperationKind.NOT_A_FACT:
            return None if older is None else _doubt(older, exchanges, redactor)
    quoted = _quoted(operation, exchanges)
    if quoted is None or (operation.op is OperationKind.END and older is None):
        return None
    exchange, passage = quoted
    if operation.op is not OperationKind.ADD and older is not None:
        return _change(operation, older, exchange, passage, redactor)
    return _add(operation, exchange, passage, facts, redactor)


def _quoted(operation: Operation, exchanges: Sequence[WaitingExchange]) -> tuple[WaitingExchange, Passage] | None:
    """The exchange and the passage of a quote. If the named exchange does not have it, the only one that does."""
    found = [(one, passage) for one in exchanges if (passage := find_passage(operation.quote, one.typed)) is not None]
    named = [one for one in found if one[0].event_id in operation.event_ids]
    chosen = named or (found if len(found) == 1 else [])
    if not chosen or any(placeholder(kind) in chosen[0][1].text for kind in KINDS):
        return None  # a statement of which redaction took a value says nothing
    return chosen[0]


def _add(
    operation: Operation, exchange: WaitingExchange, passage: Passage, facts: Facts, redactor: Redactor
) -> list[EventDraft]:
    """A statement, in place of the fragments of it that were read before; a candidate that it repeats is certain."""
    said = letters_of(passage.text)
    known = [fact for fact in facts.facts if exchange.event_id in fact.evidence and fact.status in _KNOWN]
    whole = next((fact for fact in known if said in letters_of(fact.statement)), None)
    if whole is not None and (whole.status is FactStatus.ACTIVE or not passage.is_certain):
        return []
    statement = _statement(operation, exchange, passage.text, Level.CERTAIN if passage.is_certain else Level.LIKELY)
    if whole is not None:
        statement = replace(statement, text=whole.statement)
    drafts = [_draft(statement, exchange, redactor)]
    for fact in known if passage.is_certain else ():
        if fact is not whole and letters_of(fact.statement) in said and not _is_confirmed(fact):
            by = drafts[0].event_id
            drafts.append(
                answer_draft(AnswerKind.SUPERSEDED, fact.statement_ids, redactor, superseded_by=by, door=None)
            )
    return drafts


def _change(
    operation: Operation, older: Fact, exchange: WaitingExchange, passage: Passage, redactor: Redactor
) -> list[EventDraft]:
    """A statement that questions a fact: both wait for the user."""
    statement = _statement(operation, exchange, passage.text, Level.LIKELY)
    statement = replace(
        statement,
        kind=operation.kind or older.kind,
        section=operation.section or older.section,
        about=older.about,
        change=_CHANGES[operation.op],
        former=older.statement,
    )
    return [_draft(statement, exchange, redactor)]


def _doubt(fact: Fact, exchanges: Sequence[WaitingExchange], redactor: Redactor) -> list[EventDraft] | None:
    """Make a line a candidate. One of identity or health only beside the exchange in which it was stated."""
    is_read_here = any(one.event_id in fact.evidence for one in exchanges)
    if _is_confirmed(fact) or (_is_vital(fact) and not is_read_here):
        return None
    return [answer_draft(AnswerKind.DOUBTED, fact.statement_ids, redactor, reason=READER, door=None)]


def _is_confirmed(fact: Fact) -> bool:
    return fact.origin is FactOrigin.USER_CONFIRMED


def _is_vital(fact: Fact) -> bool:
    return Statement(fact.statement, fact.kind, fact.section, fact.slot).is_vital


def _statement(operation: Operation, exchange: WaitingExchange, text: str, level: Level) -> Statement:
    return Statement(
        text=text,
        kind=operation.kind or FactKind.KNOWLEDGE,
        section=operation.section or FactSection.PERSONAL,
        is_negative=operation.is_negative,
        valid_until=operation.valid_until,
        about=_about(operation.about, exchange.typed),
        level=level,
        reader=READER,
    )


def _about(name: str, typed: str) -> str:
    """Whom a statement is about: in the user's own words, or with one word of the model, which can say no more."""
    if not name or name.lower() == USER_SUBJECT:
        return USER_SUBJECT
    if letters_of(name) in letters_of(typed):
        return name
    return name.lower() if _WORD.fullmatch(name.lower()) else UNKNOWN


def _draft(statement: Statement, exchange: WaitingExchange, redactor: Redactor) -> EventDraft:
    event = exchange.event
    try:
        path = None if event.project_path is None else redactor.clean(event.project_path)
    except XiaobaiError:
        path = None
    source = EventDraft(
        type=MEMORY_FACT,
        payload=redactor.clean_payload({}),
        project_id=event.project_id,
        project_path=path,
        session_id=event.session_id,
        event_id=event.event_id,
    )
    digest = sha256(f"{statement.text}\n{statement.level}".encode()).hexdigest()[:8]
    return statement_draft(statement, source, f"{event.event_id}.fact.{digest}", redactor, extractor=READER)
