"""Turn all recorded statements and the user's answers about them into facts. Pure; any order of arrival gives the same.

Statements are applied in the order of their hybrid clock. A newer statement of a slot supersedes the older one, a
repeated one adds evidence, and untrusted text or an unexplained contradiction becomes a candidate. See decision 028.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from sync.understanding.likeness import (
    content_of,
    is_about_same_person,
    is_contained,
    is_same_statement,
    statement_key,
    without_part,
)
from sync.understanding.model import TENTATIVE, TRUSTED, Change, Fact, FactKind, FactOrigin, FactStatus, Statement

_USER: Final = "user"  # the subject of facts about the user
_LEAST_SHARE: Final = 0.2  # of content that a change has in common with the fact that it ends
_NOW_SHARE: Final = 0.33  # of content that what holds now has in common with the fact of its kind that it ends
_MAX_COMMON: Final = 64  # facts that may share a word that still tells them apart
_CONTRADICTION: Final = 0.5  # shared content of two statements without a slot that say yes and no about one thing

_Order = tuple[str, int, str, str, str]


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
    event_id: str  # the event that states it: the evidence
    hlc: str
    recorded_at: str
    device_id: str
    origin: FactOrigin
    subject: str = _USER


@dataclass(frozen=True, slots=True)
class FactAnswer:
    """An answer about a fact, named by the `fact_id` of any statement that belongs to it.

    `statement` is the new text of an edit, `superseded_by` the fact that replaces it (SUPERSEDED), `device_id` the
    device on which it was given.
    """

    kind: AnswerKind
    fact_id: str
    event_id: str
    hlc: str
    recorded_at: str
    statement: Statement | None = None
    superseded_by: str | None = None
    device_id: str = ""


class FactTimeline:
    """Statements and answers in the order of their clocks, and the facts that follow from them."""

    def __init__(self, statements: Iterable[RecordedStatement] = (), answers: Iterable[FactAnswer] = ()) -> None:
        self._book = _FactBook()
        self._last: _Order | None = None
        self._has_late_answer = False  # one that precedes its statement, because of a wrong clock: it comes last
        self.add(statements, answers)

    def add(self, statements: Iterable[RecordedStatement], answers: Iterable[FactAnswer]) -> bool:
        """Apply what follows all that is here; False, with nothing applied, if something does not."""
        unordered: list[RecordedStatement | FactAnswer] = [*statements, *answers]
        items = sorted(unordered, key=_order)
        if not items:
            return True
        if self._has_late_answer or (self._last is not None and _order(items[0]) <= self._last):
            return False
        late = [item for item in items if not self._apply(item)]
        for item in late:
            self._apply(item)
        self._has_late_answer = bool(late)
        self._last = _order(items[-1])
        return True

    def facts(self) -> tuple[Fact, ...]:
        """All facts, whatever their status, ordered by the time of their first statement."""
        return self._book.facts()

    def _apply(self, item: RecordedStatement | FactAnswer) -> bool:
        """Apply one item; False for an answer about a fact that is not known."""
        if isinstance(item, RecordedStatement):
            self._book.state(item)
        elif self._book.knows(item.fact_id):
            self._book.answer(item)
        else:
            return False
        return True


def reconcile(statements: Iterable[RecordedStatement], answers: Iterable[FactAnswer] = ()) -> tuple[Fact, ...]:
    """All facts, whatever their status, ordered by the time of their first statement."""
    return FactTimeline(statements, answers).facts()


def _order(item: RecordedStatement | FactAnswer) -> _Order:
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
    statement_ids: list[str]
    doubt: float  # the product of 1 - confidence of its statements
    valid_until: str | None = None
    superseded_by: str | None = None


class _ActiveFacts:
    """The active facts by what a new statement asks of them: their slot, and the content words that they have.

    Thousands of statements are applied one by one, so none of them may look at all others.
    """

    def __init__(self) -> None:
        self._contents: dict[str, frozenset[str]] = {}
        self._keys: dict[str, tuple[str, str | None, bool]] = {}  # subject, slot, whether negative
        self._by_slot: dict[tuple[str, str], set[str]] = {}
        self._by_word: dict[tuple[str, str, bool, bool], set[str]] = {}  # subject, word, slotless, negative

    def add(self, fact_id: str, subject: str, statement: Statement) -> None:
        """Add a fact, or replace its statement."""
        self.remove(fact_id)
        content = content_of(statement.text)
        self._contents[fact_id] = content
        self._keys[fact_id] = subject, statement.slot, statement.is_negative
        if statement.slot is not None:
            self._by_slot.setdefault((subject, statement.slot), set()).add(fact_id)
        for word in content:
            key = subject, word, statement.slot is None, statement.is_negative
            self._by_word.setdefault(key, set()).add(fact_id)

    def remove(self, fact_id: str) -> None:
        """Remove a fact, if it is there."""
        if fact_id not in self._keys:
            return
        subject, slot, is_negative = self._keys.pop(fact_id)
        if slot is not None:
            self._by_slot[subject, slot].discard(fact_id)
        for word in self._contents.pop(fact_id):
            self._by_word[subject, word, slot is None, is_negative].discard(fact_id)

    def of_slot(self, subject: str, slot: str) -> list[str]:
        """The facts of a slot."""
        return sorted(self._by_slot.get((subject, slot), ()))

    def sharing(
        self, subject: str, text: str, *, slotless: tuple[bool, ...] = (True, False), negative: tuple[bool, ...]
    ) -> dict[str, float]:
        """The facts that share content with a text: the share, from 0 to 1, of the smaller content that both have.

        A word that more than `_MAX_COMMON` of these facts have tells none of them apart, and is not looked up.
        """
        content, counts = content_of(text), Counter[str]()
        for word in content:
            for is_slotless in slotless:
                for is_negative in negative:
                    having = self._by_word.get((subject, word, is_slotless, is_negative), ())
                    if len(having) <= _MAX_COMMON:
                        counts.update(having)
        return {name: count / min(len(content), len(self._contents[name])) for name, count in counts.items()}


class _FactBook:
    """The facts so far. Every method keeps one invariant: at most one active fact for a subject's slot."""

    def __init__(self) -> None:
        self._drafts: dict[str, _FactDraft] = {}
        self._facts: dict[str, Fact] = {}  # those that did not change since they were asked for
        self._names: dict[str, str] = {}  # the fact_id of a statement -> the fact it belongs to
        self._by_key: dict[tuple[str, str], str] = {}  # (subject, key) -> the newest fact with this key
        self._active = _ActiveFacts()
        self._ordinals: dict[str, int] = {}  # the place of each fact in the order of their first statements

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
        if said.statement.confidence < TENTATIVE and said.origin in TRUSTED:
            ended = self._ended_by(said.subject, said.statement)
            if ended is None:
                return
            said = _inherit(said, self._drafts[ended].statement)
        candidate = said.origin not in TRUSTED or self._contradicts(said)
        self._names[said.fact_id] = said.fact_id
        self._by_key[key] = said.fact_id
        self._ordinals[said.fact_id] = len(self._ordinals)
        self._drafts[said.fact_id] = _FactDraft(
            first=said,
            statement=said.statement,
            origin=said.origin,
            status=FactStatus.CANDIDATE if candidate else FactStatus.ACTIVE,
            valid_from=said.recorded_at,
            evidence=[said.event_id],
            statement_ids=[said.fact_id],
            doubt=1.0 - said.statement.confidence,
            valid_until=said.statement.valid_until,
        )
        if not candidate:
            self._activate(said.fact_id, said.recorded_at)

    def answer(self, given: FactAnswer) -> None:
        """Apply one answer to its fact."""
        fact_id = self._names[given.fact_id]
        draft = self._draft_to_change(fact_id)
        match given.kind:
            case AnswerKind.REJECTED | AnswerKind.RETRACTED:
                draft.status, draft.valid_until, draft.superseded_by = FactStatus.RETRACTED, given.recorded_at, None
                self._active.remove(fact_id)
            case AnswerKind.SUPERSEDED:
                if draft.status in (FactStatus.ACTIVE, FactStatus.CANDIDATE):
                    by = given.superseded_by
                    self._end(fact_id, given.recorded_at, self._names.get(by, by) if by else None)
            case AnswerKind.CONFIRMED | AnswerKind.EDITED:
                if given.statement is not None:
                    draft.statement = given.statement
                    self._by_key[draft.first.subject, statement_key(given.statement.text)] = fact_id
                draft.origin, draft.doubt = FactOrigin.USER_CONFIRMED, 0.0
                draft.valid_until, draft.superseded_by = draft.statement.valid_until, None
                self._activate(fact_id, given.recorded_at)

    def facts(self) -> tuple[Fact, ...]:
        for name, draft in self._drafts.items():
            if name not in self._facts:
                self._facts[name] = _fact(draft)
        return tuple(self._facts[name] for name in self._drafts)

    def _draft_to_change(self, fact_id: str) -> _FactDraft:
        self._facts.pop(fact_id, None)
        return self._drafts[fact_id]

    def _is_repeat(self, fact_id: str, said: RecordedStatement) -> bool:
        """Whether a statement repeats the fact of the same key.

        A superseded fact that the user states again is a new one, and so is the former text of an edited one.
        """
        draft = self._drafts[fact_id]
        if draft.status is FactStatus.SUPERSEDED:
            return False
        if statement_key(draft.statement.text) != statement_key(said.statement.text):
            return False
        return is_same_statement(draft.statement, said.statement)

    def _add_evidence(self, fact_id: str, said: RecordedStatement) -> None:
        """Add a repeated statement. The user's own words make a candidate active; a retracted fact stays retracted."""
        draft = self._draft_to_change(fact_id)
        self._names[said.fact_id] = fact_id
        draft.statement_ids.append(said.fact_id)
        if said.event_id not in draft.evidence:
            draft.evidence.append(said.event_id)
            draft.doubt *= 1.0 - said.statement.confidence
        if said.statement.valid_until is not None and draft.status is not FactStatus.RETRACTED:
            draft.valid_until = said.statement.valid_until  # a plan of last year is one of this year again
        if draft.status is FactStatus.CANDIDATE and said.origin in TRUSTED:
            draft.origin = said.origin
            self._activate(fact_id, said.recorded_at)

    def _contradicts(self, said: RecordedStatement) -> bool:
        """Whether a statement without a slot says the opposite of an active one, and does not say that it changed."""
        new = said.statement
        if new.slot is not None or new.change is not None:
            return False
        opposite = (not new.is_negative,)
        shared = self._active.sharing(said.subject, new.text, slotless=(True,), negative=opposite)
        return any(share >= _CONTRADICTION for share in shared.values())

    def _activate(self, fact_id: str, at: str) -> None:
        """Make a fact active, and end the active facts that it replaces."""
        winner = self._draft_to_change(fact_id)
        subject, statement = winner.first.subject, winner.statement
        winner.status = FactStatus.ACTIVE
        self._active.remove(fact_id)
        replaced = self._active.of_slot(subject, statement.slot) if statement.slot is not None else []
        for name in replaced:
            self._end(name, at, fact_id)
        for name in self._active.sharing(subject, statement.text, negative=(statement.is_negative,)):
            if is_contained(self._drafts[name].statement, statement):
                self._end(name, at, fact_id)
        if statement.change is not None and not replaced and (ended := self._ended_by(subject, statement)) is not None:
            self._end_or_shorten(ended, statement, at, fact_id)
        self._active.add(fact_id, subject, statement)

    def _ended_by(self, subject: str, new: Statement) -> str | None:
        """The active fact that a statement of a change ends: it shares most content with it, the newest of equals.

        A named former value (`former`) counts before the statement's own words.
        """
        is_weak = new.change is Change.NOW and new.confidence >= TENTATIVE
        least = _NOW_SHARE if is_weak else _LEAST_SHARE
        scores: dict[str, float] = {}
        for owner in dict.fromkeys((subject, _USER)):  # a change said in a project may be about its user
            for text, weight in ((new.text, 1.0), (new.former or "", 2.0)):
                for name, share in self._active.sharing(owner, text, negative=(True, False)).items():
                    scores[name] = scores.get(name, 0.0) + weight * share
        scores = {
            name: score
            for name, score in scores.items()
            if score >= least
            and is_about_same_person(self._drafts[name].statement, new)
            and (not is_weak or _is_of_kind(self._drafts[name].statement.kind, new.kind))
        }
        return max(scores, key=lambda name: (scores[name], self._ordinals[name]), default=None)

    def _end_or_shorten(self, fact_id: str, new: Statement, at: str, by: str) -> None:
        """End a fact; of one that lists several things, only what the change names: 不用 VS Code 了 leaves the Mac."""
        draft = self._draft_to_change(fact_id)
        rest = without_part(draft.statement.text, new.former) if new.former is not None else None
        if rest is None:
            self._end(fact_id, at, by)
            return
        draft.statement = replace(draft.statement, text=rest)
        self._active.add(fact_id, draft.first.subject, draft.statement)

    def _end(self, fact_id: str, at: str, by: str | None) -> None:
        draft = self._draft_to_change(fact_id)
        draft.status, draft.valid_until, draft.superseded_by = FactStatus.SUPERSEDED, at, by
        self._active.remove(fact_id)


def _is_of_kind(older: FactKind, newer: FactKind) -> bool:
    return older is newer or {older, newer} <= {FactKind.KNOWLEDGE, FactKind.POSSESSION, FactKind.HABIT}


def _inherit(said: RecordedStatement, older: Statement) -> RecordedStatement:
    """A change that names no topic of its own has the topic of the fact that it changes."""
    statement = replace(said.statement, kind=older.kind, section=older.section, slot=older.slot, confidence=TENTATIVE)
    return replace(said, statement=statement)


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
        statement_ids=tuple(draft.statement_ids),
    )
