"""Turn all recorded statements and the user's answers about them into facts. Pure; any order of arrival gives the same.

Statements are applied in the order of their hybrid clock. A newer statement of a slot supersedes the older one, a
repeated one adds evidence, and untrusted text or an unexplained contradiction becomes a candidate. See decision 028.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sync.understanding.likeness import is_same_statement, shared_content, statement_key
from sync.understanding.model import Fact, FactOrigin, FactStatus, Statement

_TRUSTED: Final = frozenset({FactOrigin.USER_STATED, FactOrigin.USER_CONFIRMED})
_CONTRADICTION: Final = 0.5  # shared content of two statements without a slot that say yes and no about one thing


class AnswerKind(StrEnum):
    """What the user, or a model with a quote, said about a fact that exists."""

    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    EDITED = "edited"
    RETRACTED = "retracted"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class RecordedStatement:
    """A statement as an event holds it. `hlc` orders statements and answers; `recorded_at` is ISO 8601, for display.

    `origin` is the same on every device: it comes from the event, not from the reader's point of view.
    """

    statement: Statement
    fact_id: str  # unique; a repeated statement keeps the id of the first
    event_id: str  # the event in which it was said: the evidence
    hlc: str
    recorded_at: str
    device_id: str
    origin: FactOrigin
    subject: str = "user"


@dataclass(frozen=True, slots=True)
class FactAnswer:
    """An answer about a fact, named by the `fact_id` of any statement that belongs to it.

    `statement` is the new text of an edit, `superseded_by` the fact that replaces it (SUPERSEDED).
    """

    kind: AnswerKind
    fact_id: str
    event_id: str
    hlc: str
    recorded_at: str
    statement: Statement | None = None
    superseded_by: str | None = None


def reconcile(statements: Iterable[RecordedStatement], answers: Iterable[FactAnswer] = ()) -> tuple[Fact, ...]:
    """All facts, whatever their status, ordered by the time of their first statement."""
    items: list[RecordedStatement | FactAnswer] = [*statements, *answers]
    timeline = sorted(items, key=_order)
    known = {item.fact_id for item in timeline if isinstance(item, RecordedStatement)}
    book = _FactBook()
    waiting: list[FactAnswer] = []
    for item in timeline:
        if isinstance(item, RecordedStatement):
            book.state(item)
        elif book.knows(item.fact_id):
            book.answer(item)
        elif item.fact_id in known:  # a wrong clock: the statement comes later in the order
            waiting.append(item)
    for late in waiting:
        book.answer(late)
    return book.facts()


def _order(item: RecordedStatement | FactAnswer) -> tuple[str, int, str, str, str]:
    if isinstance(item, RecordedStatement):
        return item.hlc, 0, item.event_id, item.fact_id, item.device_id
    return item.hlc, 1, item.event_id, item.fact_id, item.kind


@dataclass(slots=True)
class _FactDraft:
    """A fact while statements and answers are applied."""

    first: RecordedStatement
    statement: Statement
    origin: FactOrigin
    status: FactStatus
    valid_from: str
    evidence: list[str]
    doubt: float  # the product of 1 - confidence of its statements
    valid_until: str | None = None
    superseded_by: str | None = None


class _FactBook:
    """The facts so far. Every method keeps one invariant: at most one active fact for a subject's slot."""

    def __init__(self) -> None:
        self._drafts: dict[str, _FactDraft] = {}
        self._names: dict[str, str] = {}  # the fact_id of a statement -> the fact it belongs to
        self._by_key: dict[tuple[str, str], str] = {}  # (subject, key) -> the newest fact with this key

    def knows(self, fact_id: str) -> bool:
        return fact_id in self._names

    def state(self, said: RecordedStatement) -> None:
        """Apply one statement."""
        if said.fact_id in self._names:  # the same statement arrived twice
            return
        key = said.subject, statement_key(said.statement.text)
        repeated = self._by_key.get(key)
        if repeated is not None and self._is_repeat(repeated, said):
            self._add_evidence(repeated, said)
            return
        candidate = said.origin not in _TRUSTED or self._contradicts(said)
        self._names[said.fact_id] = said.fact_id
        self._by_key[key] = said.fact_id
        self._drafts[said.fact_id] = _FactDraft(
            first=said,
            statement=said.statement,
            origin=said.origin,
            status=FactStatus.CANDIDATE if candidate else FactStatus.ACTIVE,
            valid_from=said.recorded_at,
            evidence=[said.event_id],
            doubt=1.0 - said.statement.confidence,
            valid_until=said.statement.valid_until,
        )
        if not candidate:
            self._supersede_older(said.fact_id, said.recorded_at)

    def answer(self, given: FactAnswer) -> None:
        """Apply one answer to its fact."""
        fact_id = self._names[given.fact_id]
        draft = self._drafts[fact_id]
        match given.kind:
            case AnswerKind.REJECTED | AnswerKind.RETRACTED:
                draft.status, draft.valid_until, draft.superseded_by = FactStatus.RETRACTED, given.recorded_at, None
            case AnswerKind.SUPERSEDED:
                if draft.status in (FactStatus.ACTIVE, FactStatus.CANDIDATE):
                    by = given.superseded_by
                    self._end(draft, given.recorded_at, self._names.get(by, by) if by else None)
            case AnswerKind.CONFIRMED | AnswerKind.EDITED:
                if given.statement is not None:
                    draft.statement = given.statement
                    self._by_key[draft.first.subject, statement_key(given.statement.text)] = fact_id
                draft.status, draft.origin, draft.doubt = FactStatus.ACTIVE, FactOrigin.USER_CONFIRMED, 0.0
                draft.valid_until, draft.superseded_by = draft.statement.valid_until, None
                self._supersede_older(fact_id, given.recorded_at)

    def facts(self) -> tuple[Fact, ...]:
        return tuple(_fact(draft) for draft in self._drafts.values())

    def _is_repeat(self, fact_id: str, said: RecordedStatement) -> bool:
        """Whether a statement repeats the fact of the same key. A superseded fact that is said again is a new one."""
        draft = self._drafts[fact_id]
        if draft.status is FactStatus.SUPERSEDED:
            return False
        return is_same_statement(draft.statement, said.statement)

    def _add_evidence(self, fact_id: str, said: RecordedStatement) -> None:
        """Add a repeated statement. The user's own words make a candidate active; a retracted fact stays retracted."""
        draft = self._drafts[fact_id]
        self._names[said.fact_id] = fact_id
        if said.event_id not in draft.evidence:
            draft.evidence.append(said.event_id)
            draft.doubt *= 1.0 - said.statement.confidence
        if draft.status is FactStatus.CANDIDATE and said.origin in _TRUSTED:
            draft.status, draft.origin = FactStatus.ACTIVE, said.origin
            self._supersede_older(fact_id, said.recorded_at)

    def _active(self, subject: str) -> list[tuple[str, _FactDraft]]:
        return [
            (fact_id, draft)
            for fact_id, draft in self._drafts.items()
            if draft.status is FactStatus.ACTIVE and draft.first.subject == subject
        ]

    def _contradicts(self, said: RecordedStatement) -> bool:
        """Whether a statement without a slot says the opposite of an active one, and does not say that it changed."""
        new = said.statement
        if new.slot is not None or new.change is not None:
            return False
        return any(
            draft.statement.slot is None
            and draft.statement.is_negative != new.is_negative
            and shared_content(draft.statement.text, new.text) >= _CONTRADICTION
            for _, draft in self._active(said.subject)
        )

    def _supersede_older(self, fact_id: str, at: str) -> None:
        """End the active facts that a new active one replaces."""
        winner = self._drafts[fact_id]
        others = [(name, draft) for name, draft in self._active(winner.first.subject) if name != fact_id]
        for _, draft in others:
            if winner.statement.slot is not None and draft.statement.slot == winner.statement.slot:
                self._end(draft, at, fact_id)
        if winner.statement.change is None:
            return
        if (ended := _ended_by(winner.statement, [draft for _, draft in others])) is not None:
            self._end(ended, at, fact_id)

    @staticmethod
    def _end(draft: _FactDraft, at: str, by: str | None) -> None:
        draft.status, draft.valid_until, draft.superseded_by = FactStatus.SUPERSEDED, at, by


def _ended_by(new: Statement, older: list[_FactDraft]) -> _FactDraft | None:
    """The active fact that a statement of a change ends: the one that shares most content, the newest of equals.

    A named former value (`former`) counts before the statement's own words.
    """
    best: tuple[float, _FactDraft] | None = None
    for draft in older:
        if draft.status is not FactStatus.ACTIVE:
            continue
        score = shared_content(draft.statement.text, new.text)
        if new.former is not None:
            score += 2 * shared_content(draft.statement.text, new.former)
        if score > 0 and (best is None or score >= best[0]):
            best = score, draft
    return None if best is None else best[1]


def _fact(draft: _FactDraft) -> Fact:
    said = draft.statement
    return Fact(
        fact_id=draft.first.fact_id,
        kind=said.kind,
        section=said.section,
        subject=draft.first.subject,
        statement=said.text,
        slot=said.slot,
        is_negative=said.is_negative,
        valid_from=draft.valid_from,
        valid_until=draft.valid_until,
        evidence=tuple(draft.evidence),
        origin=draft.origin,
        confidence=round(1.0 - draft.doubt, 3),
        status=draft.status,
        superseded_by=draft.superseded_by,
    )
