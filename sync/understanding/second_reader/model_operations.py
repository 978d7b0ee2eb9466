"""Which events follow from the operations of a model's answer. Pure.

A model chooses, classifies and repairs; it does not write: the text of a fact is the user's own sentence around its
quote. It makes a fact active only where the form of the sentence agrees, and ends none: see decision 046.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

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
_KNOWN: Final = frozenset({FactStatus.ACTIVE, FactStatus.CANDIDATE})


@dataclass(frozen=True, slots=True)
class AcceptedOperations:
    """The events of the accepted operations, and how many operations were refused."""

    drafts: list[EventDraft] = field(default_factory=list)
    refused: int = 0


def accept_operations(
    reply: ReadReply, exchanges: Sequence[WaitingExchange], facts: Facts, redactor: Redactor
) -> AcceptedOperations:
    """The events of an answer's operations; one that cannot be repaired is refused alone."""
    decider = _Decider(exchanges, facts, redactor)
    decided = [decider.decide(one) for one in reply.operations]
    drafts = {str(draft.event_id or draft.payload.value): draft for one in decided for draft in one or ()}
    return AcceptedOperations(list(drafts.values()), reply.refused + decided.count(None))


@dataclass(frozen=True, slots=True)
class _Decider:
    exchanges: Sequence[WaitingExchange]
    facts: Facts
    redactor: Redactor

    def decide(self, operation: Operation) -> list[EventDraft] | None:
        """The events of one operation; None if it is refused."""
        if operation.op == "none":
            return []
        older = self.facts.by_id.get(self.facts.id_of_statement.get(operation.fact_id, ""))
        older = older if older is not None and older.status is FactStatus.ACTIVE else None
        if operation.op == "not_a_fact":
            return None if older is None or self._is_beyond_doubt(older) else [self._answer(AnswerKind.DOUBTED, older)]
        quoted = self._quoted(operation)
        if quoted is None or (operation.op == "end" and older is None):
            return None
        if operation.op == "add" or older is None or quoted[0].event_id in older.evidence:
            return self._add(operation, *quoted)[0]
        drafts, newer = self._add(operation, *quoted, older)
        return drafts if newer == older.questioned_by else [*drafts, self._answer(AnswerKind.QUESTIONED, older, newer)]

    def _quoted(self, operation: Operation) -> tuple[WaitingExchange, Passage] | None:
        """The exchange and the passage of a quote. If the named exchange does not have it, the only one that does."""
        passages = ((one, find_passage(operation.quote, one.typed)) for one in self.exchanges)
        found = [(one, passage) for one, passage in passages if passage is not None]
        named = [one for one in found if one[0].event_id in operation.event_ids]
        chosen = named or (found if len(found) == 1 else [])
        if not chosen or any(placeholder(kind) in chosen[0][1].text for kind in KINDS):
            return None  # a statement of which redaction took a value says nothing
        return chosen[0]

    def _add(
        self, operation: Operation, exchange: WaitingExchange, passage: Passage, older: Fact | None = None
    ) -> tuple[list[EventDraft], str]:
        """A statement, and the id of its fact. What was read before of the same sentence is not stated again.

        A candidate that it repeats is certain; a fragment gives way to it. The end of a fact is a candidate.
        """
        is_certain = passage.is_certain and operation.op != "end"
        said = letters_of(passage.text)
        known = [one for one in self.facts.facts if exchange.event_id in one.evidence and one.status in _KNOWN]
        whole = next((one for one in known if said in letters_of(one.statement)), None)
        if whole is not None and (whole.status is FactStatus.ACTIVE or not is_certain):
            return [], whole.fact_id
        statement = _statement(operation, passage.text if whole is None else whole.statement, exchange)
        if not is_certain:
            statement = replace(statement, level=Level.LIKELY)
        if older is not None and operation.op == "end":
            statement = replace(statement, about=older.about, change=Change.ENDS, former=older.statement)
        stated = self._draft(statement, exchange)
        newer = whole.fact_id if whole is not None else str(stated.event_id)
        fragments = [one for one in known if one is not whole and letters_of(one.statement) in said]
        ended = [
            self._answer(AnswerKind.SUPERSEDED, one, newer)
            for one in fragments
            if is_certain and one.origin is not FactOrigin.USER_CONFIRMED
        ]
        return [stated, *ended], newer

    def _is_beyond_doubt(self, fact: Fact) -> bool:
        """Whether the user confirmed a fact, or it is of identity or health and was stated in another exchange."""
        is_read_here = any(one.event_id in fact.evidence for one in self.exchanges)
        return fact.origin is FactOrigin.USER_CONFIRMED or (fact.is_vital and not is_read_here)

    def _answer(self, kind: AnswerKind, fact: Fact, by: str | None = None) -> EventDraft:
        return answer_draft(kind, fact.statement_ids, self.redactor, superseded_by=by, door=None)

    def _draft(self, statement: Statement, exchange: WaitingExchange) -> EventDraft:
        event, digest = exchange.event, sha256(repr(statement).encode()).hexdigest()[:8]
        source = EventDraft(
            type=MEMORY_FACT,
            payload=self.redactor.clean_payload({}),
            project_id=event.project_id,
            project_path=None if event.project_path is None else self.redactor.clean(event.project_path),
            session_id=event.session_id,
            event_id=event.event_id,
        )
        return statement_draft(statement, source, f"{event.event_id}.fact.{digest}", self.redactor, extractor=READER)


def _statement(operation: Operation, text: str, exchange: WaitingExchange) -> Statement:
    """The user's sentence as the product reads it, with what the model says about it; it ends nothing by itself."""
    read = remembered(text)
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
