"""Which events follow from the operations of a model's answer. Pure.

A model chooses, classifies and repairs; it does not write: the text of a fact is the user's own sentence around its
quote. It makes a fact active only where the form of the sentence agrees, and ends none: see decision 046.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

from sync.log.event_types import MEMORY_FACT
from sync.log.model import EventDraft
from sync.redaction import KINDS, Redactor, placeholder
from sync.understanding.fact_events import answer_draft, statement_draft
from sync.understanding.model import AnswerKind, Change, Fact, FactOrigin, FactStatus, Level, Statement
from sync.understanding.projection import Facts
from sync.understanding.reading.bearers import relation_of
from sync.understanding.reading.reader import remembered
from sync.understanding.second_reader.model_reply import Operation, ReadReply
from sync.understanding.second_reader.model_request import WaitingExchange
from sync.understanding.second_reader.quotes import Passage, find_passage, letters_of

READER: Final = "model"


@dataclass(frozen=True, slots=True)
class AcceptedOperations:
    """The events of the accepted operations, and how many operations were refused."""

    drafts: list[EventDraft] = field(default_factory=list)
    refused: int = 0


def accept_operations(
    reply: ReadReply, exchanges: Sequence[WaitingExchange], facts: Facts, redactor: Redactor
) -> AcceptedOperations:
    """The events of an answer's operations; one that cannot be repaired is refused alone."""
    decided = [_decide(one, exchanges, facts, redactor) for one in reply.operations]
    drafts = {str(draft.event_id or draft.payload.value): draft for one in decided for draft in one or ()}
    return AcceptedOperations(list(drafts.values()), reply.refused + decided.count(None))


def _decide(
    operation: Operation, exchanges: Sequence[WaitingExchange], facts: Facts, redactor: Redactor
) -> list[EventDraft] | None:
    """The events of one operation; None if it is refused."""
    if operation.op == "none":
        return []
    older = facts.by_id.get(facts.id_of_statement.get(operation.fact_id, ""))
    older = older if older is not None and older.status is FactStatus.ACTIVE else None
    if operation.op == "not_a_fact":
        return None if older is None else _doubt(older, exchanges, redactor)
    quoted = _quoted(operation, exchanges)
    if quoted is None or (operation.op == "end" and older is None):
        return None
    exchange, passage = quoted
    if operation.op == "add" or older is None or exchange.event_id in older.evidence:
        return list(_add(operation, exchange, passage, facts, redactor))
    change = Change.ENDS if operation.op == "end" else Change.REPLACES
    statement = _statement(operation, passage.text, exchange, Level.LIKELY)
    questioning = replace(statement, about=older.about, change=change, former=older.statement)
    return [_draft(questioning, exchange, redactor)]


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
) -> Iterator[EventDraft]:
    """A statement, in place of the fragments of it that were read before; a candidate that it repeats is certain."""
    said = letters_of(passage.text)
    known = [one for one in (*facts.active, *facts.candidates) if exchange.event_id in one.evidence]
    whole = next((one for one in known if said in letters_of(one.statement)), None)
    if whole is not None and (whole.status is FactStatus.ACTIVE or not passage.is_certain):
        return
    level = Level.CERTAIN if passage.is_certain else Level.LIKELY
    stated = _draft(
        _statement(operation, passage.text if whole is None else whole.statement, exchange, level), exchange, redactor
    )
    yield stated
    for one in known if passage.is_certain else ():
        if one is not whole and letters_of(one.statement) in said and one.origin is not FactOrigin.USER_CONFIRMED:
            ended = one.statement_ids
            yield answer_draft(AnswerKind.SUPERSEDED, ended, redactor, superseded_by=stated.event_id, door=None)


def _doubt(fact: Fact, exchanges: Sequence[WaitingExchange], redactor: Redactor) -> list[EventDraft] | None:
    """Make a line a candidate. One of identity or health only beside the exchange in which it was stated."""
    is_vital = Statement(fact.statement, fact.kind, fact.section, fact.slot).is_vital
    is_read_here = any(one.event_id in fact.evidence for one in exchanges)
    if fact.origin is FactOrigin.USER_CONFIRMED or (is_vital and not is_read_here):
        return None
    return [answer_draft(AnswerKind.DOUBTED, fact.statement_ids, redactor, reason=READER, door=None)]


def _statement(operation: Operation, text: str, exchange: WaitingExchange, level: Level) -> Statement:
    """The user's sentence as the product reads it, with what the model says about it; it ends nothing by itself."""
    read = remembered(text, level)
    assert read is not None  # a passage has letters
    is_named = bool(operation.about) and letters_of(operation.about) in letters_of(exchange.typed)
    return replace(
        read,
        text=text.rstrip(" 。.!！"),
        kind=operation.kind or read.kind,
        section=operation.section or read.section,
        about=relation_of(operation.about) or (operation.about if is_named else read.about),
        change=None,
        former=None,
        valid_until=operation.valid_until,
        importance=None,
        reader=READER,
    )


def _draft(statement: Statement, exchange: WaitingExchange, redactor: Redactor) -> EventDraft:
    event, digest = exchange.event, sha256(repr(statement).encode()).hexdigest()[:8]
    source = EventDraft(
        type=MEMORY_FACT,
        payload=redactor.clean_payload({}),
        project_id=event.project_id,
        project_path=None if event.project_path is None else redactor.clean(event.project_path),
        session_id=event.session_id,
        event_id=event.event_id,
    )
    return statement_draft(statement, source, f"{event.event_id}.fact.{digest}", redactor, extractor=READER)
