"""Turn all recorded statements and the user's answers about them into facts. Pure; any order of arrival gives the same.

Statements are applied in the order of their hybrid clock. A newer statement of a slot supersedes the older one, a
repeated one adds evidence, and untrusted text or an unexplained contradiction becomes a candidate. See decision 028.
What changes a fact of another device has that effect from an admitted device only: see decision 042.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sync.log.devices.device_view import EVERY_DEVICE, DeviceView
from sync.understanding.changes.admission import ForeignChange
from sync.understanding.likeness import ActiveFacts, is_about_same_person, is_contained, statement_key, without_part
from sync.understanding.model import (
    TENTATIVE,
    USER_SUBJECT,
    AnswerKind,
    Change,
    Fact,
    FactAnswer,
    FactKind,
    FactOrigin,
    FactStatus,
    RecordedStatement,
    Statement,
)

_LEAST_SHARE: Final = 0.2  # of content that a change has in common with the fact that it ends
_NOW_SHARE: Final = 0.33  # of content that what holds now has in common with the fact of its kind that it ends
_CONTRADICTION: Final = 0.5  # shared content of two statements without a slot that say yes and no about one thing

_Order = tuple[str, int, str, str, str]


class FactTimeline:
    """Statements and answers in the order of their clocks, and the facts that follow from them."""

    def __init__(
        self,
        statements: Iterable[RecordedStatement] = (),
        answers: Iterable[FactAnswer] = (),
        admitted: DeviceView = EVERY_DEVICE,
    ) -> None:
        self._book = _FactBook(admitted)
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

    @property
    def withheld(self) -> Collection[str]:
        """The events that have no effect: they wait, or were refused."""
        return self._book.withheld

    def changes(self) -> tuple[ForeignChange, ...]:
        """The changes of one device in facts of another, in order: those that wait, and of vital facts all."""
        return self._book.foreign_changes()

    def _apply(self, item: RecordedStatement | FactAnswer) -> bool:
        """Apply one item; False for an answer about a fact that is not known."""
        if isinstance(item, RecordedStatement):
            self._book.state(item)
        elif self._book.knows(item.fact_id):
            self._book.answer(item)
        else:
            return False
        return True


def reconcile(
    statements: Iterable[RecordedStatement],
    answers: Iterable[FactAnswer] = (),
    admitted: DeviceView = EVERY_DEVICE,
) -> tuple[Fact, ...]:
    """All facts, whatever their status, ordered by the time of their first statement."""
    return FactTimeline(statements, answers, admitted).facts()


def _order(item: RecordedStatement | FactAnswer) -> _Order:
    if isinstance(item, RecordedStatement):
        return item.hlc, 0, item.event_id, item.fact_id, item.device_id
    return item.hlc, 1, item.event_id, item.fact_id, item.kind


@dataclass(slots=True)
class _FactDraft:
    """A fact while statements and answers are applied.

    `devices`: whose words it is made of. `is_removal_admitted`: other devices may not state anew what was retracted.
    """

    first: RecordedStatement
    statement: Statement
    origin: FactOrigin
    status: FactStatus
    valid_from: str
    evidence: list[str]
    statement_ids: list[str]
    doubt: float  # the product of 1 - confidence of its statements
    devices: set[str]
    is_admitted: bool = False
    is_removal_admitted: bool = False
    valid_until: str | None = None
    superseded_by: str | None = None


class _FactBook:
    """The facts so far. Every method keeps one invariant: at most one active fact for a subject's slot."""

    def __init__(self, admitted: DeviceView) -> None:
        self._admitted = admitted
        self._changes: dict[str, ForeignChange] = {}  # by event
        self.withheld: set[str] = set()  # events
        self._drafts: dict[str, _FactDraft] = {}
        self._facts: dict[str, Fact] = {}  # those that did not change since they were asked for
        self._names: dict[str, str] = {}  # the fact_id of a statement -> the fact it belongs to
        self._by_key: dict[tuple[str, str], str] = {}  # (subject, key) -> the newest fact with this key
        self._active = ActiveFacts()
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
        if said.statement.confidence < TENTATIVE and said.is_certain:
            ended = self._ended_by(said.subject, said.statement)
            if ended is None:
                return
            said = _inherit(said, self._drafts[ended].statement)
        is_refused = self._admitted.refuses(said)
        candidate = not said.is_certain or self._contradicts(said)
        self._names[said.fact_id] = said.fact_id
        self._by_key[key] = said.fact_id
        self._ordinals[said.fact_id] = len(self._ordinals)
        self._drafts[said.fact_id] = _FactDraft(
            first=said,
            statement=said.statement,
            origin=said.origin,
            status=FactStatus.RETRACTED if is_refused else FactStatus.CANDIDATE,
            valid_from=said.recorded_at,
            evidence=[said.event_id],
            statement_ids=[said.fact_id],
            doubt=1.0 - said.statement.confidence,
            devices={said.device_id},
            valid_until=said.statement.valid_until,
        )
        if not candidate and not is_refused:
            self._activate(said.fact_id, said)

    def answer(self, given: FactAnswer) -> None:
        """Apply one answer to its fact, unless it waits or was refused."""
        fact_id = self._names[given.fact_id]
        draft = self._draft_to_change(fact_id)
        match given.kind:
            case AnswerKind.REJECTED | AnswerKind.RETRACTED:
                if self._may_change(given, [fact_id], after=None):
                    draft.status, draft.valid_until, draft.superseded_by = FactStatus.RETRACTED, given.recorded_at, None
                    draft.is_removal_admitted = self._admitted.allows(given)
                    draft.devices.add(given.device_id)
                    self._active.remove(fact_id)
            case AnswerKind.SUPERSEDED if draft.status in (FactStatus.ACTIVE, FactStatus.CANDIDATE):
                by = self._names.get(given.superseded_by or "", given.superseded_by)
                after = self._drafts[by].statement.text if by in self._drafts else None
                if self._may_change(given, [fact_id], after=after):
                    self._end(fact_id, given.recorded_at, by)
            case AnswerKind.DOUBTED if draft.status is FactStatus.ACTIVE and draft.origin is FactOrigin.USER_STATED:
                if self._may_change(given, [fact_id], after=None):
                    draft.status = FactStatus.CANDIDATE
                    self._active.remove(fact_id)
            case AnswerKind.CONFIRMED | AnswerKind.EDITED:
                self._activate(fact_id, given, given.statement)

    def facts(self) -> tuple[Fact, ...]:
        for name, draft in self._drafts.items():
            if name not in self._facts:
                self._facts[name] = _fact(draft)
        return tuple(self._facts[name] for name in self._drafts)

    def foreign_changes(self) -> tuple[ForeignChange, ...]:
        return tuple(change for change in self._changes.values() if not change.waits or self._is_open(change))

    def _draft_to_change(self, fact_id: str) -> _FactDraft:
        self._facts.pop(fact_id, None)
        return self._drafts[fact_id]

    def _is_repeat(self, fact_id: str, said: RecordedStatement) -> bool:
        """Whether a statement repeats the fact of its key; not a superseded one, nor the former text of an edit."""
        draft = self._drafts[fact_id]
        if draft.status is FactStatus.SUPERSEDED:
            return False
        is_removed_for_all = draft.status is not FactStatus.RETRACTED or draft.is_removal_admitted
        if not is_removed_for_all and said.device_id not in draft.devices:
            return False  # no device removes beforehand what another one says
        if self._admitted.allows(said) and not (draft.is_admitted or self._admitted.allows(draft.first)):
            return False  # what the user says is their own fact, whoever claimed the same before
        is_same = statement_key(draft.statement.text) == statement_key(said.statement.text)
        return is_same and draft.statement.is_negative == said.statement.is_negative

    def _add_evidence(self, fact_id: str, said: RecordedStatement) -> None:
        """Add a repeated statement. The user's own words make a candidate active; a retracted fact stays retracted."""
        draft = self._draft_to_change(fact_id)
        self._names[said.fact_id] = fact_id
        draft.statement_ids.append(said.fact_id)
        if said.event_id not in draft.evidence:
            draft.evidence.append(said.event_id)
            draft.doubt *= 1.0 - said.statement.confidence
        is_trusted, statement = said.is_certain, said.statement
        is_dated = statement.valid_until not in {None, draft.valid_until} and draft.status is not FactStatus.RETRACTED
        after = f"{draft.statement.text} ({statement.valid_until})"
        if is_trusted and is_dated and self._may_change(said, [fact_id], after=after):
            draft.valid_until = statement.valid_until  # a plan of last year is one of this year again
        if is_trusted and draft.status is FactStatus.CANDIDATE:
            self._activate(fact_id, said, statement)
        draft.devices |= {said.device_id} if is_trusted else set()

    def _contradicts(self, said: RecordedStatement) -> bool:
        """Whether a statement without a slot says the opposite of an active one, and does not say that it changed."""
        new = said.statement
        if new.slot is not None or new.change is not None:
            return False
        opposite = (not new.is_negative,)
        shared = self._active.sharing(said.subject, new.text, slotless=(True,), negative=opposite)
        return any(share >= _CONTRADICTION and self._may_question(name, said) for name, share in shared.items())

    def _may_question(self, fact_id: str, said: RecordedStatement) -> bool:
        """Whether a fact may make a statement of another device doubtful."""
        draft = self._drafts[fact_id]
        return said.device_id in draft.devices or draft.is_admitted

    def _activate(self, fact_id: str, by: RecordedStatement | FactAnswer, text: Statement | None = None) -> None:
        """Make a fact active, `text` in place of its own, and end the active facts that it replaces.

        If it may not replace them, or not be changed by this device, it stays as it is.
        """
        winner = self._draft_to_change(fact_id)
        subject, statement, at = winner.first.subject, text or winner.statement, by.recorded_at
        ended = self._active.of_slot(subject, statement.slot) if statement.slot is not None else []
        is_replaced = any(name != fact_id for name in ended)
        similar = self._active.sharing(subject, statement.text, negative=(statement.is_negative,))
        ended += [name for name in similar if is_contained(self._drafts[name].statement, statement)]
        ended = [name for name in dict.fromkeys(ended) if name != fact_id]
        changed = None
        if statement.change is not None and not is_replaced:
            changed = self._ended_by(subject, statement, besides=(*ended, fact_id))
        if not self._may_change(by, [fact_id, *ended, *filter(None, [changed])], after=statement.text):
            return
        if isinstance(by, RecordedStatement) and not self._admitted.allows(by):
            return  # what a device states before it is admitted is a candidate, also if it would change nothing
        self._take_words(winner, by, statement)
        winner.status = FactStatus.ACTIVE
        for name in ended:
            self._end(name, at, fact_id)
        if changed is not None:
            self._end_or_shorten(changed, statement, at, fact_id)
        self._active.add(fact_id, subject, statement)

    def _take_words(self, winner: _FactDraft, by: RecordedStatement | FactAnswer, statement: Statement) -> None:
        """Note whose words a fact has from now on, and that the user stands by it."""
        winner.is_admitted = self._admitted.allows(by)
        if isinstance(by, RecordedStatement):
            winner.origin, winner.statement, winner.valid_until = by.origin, statement, statement.valid_until
            return
        if by.statement is not None:
            winner.statement, winner.devices = statement, set()
            self._by_key[winner.first.subject, statement_key(statement.text)] = winner.first.fact_id
        winner.devices.add(by.device_id)
        winner.origin, winner.doubt = FactOrigin.USER_CONFIRMED, 0.0
        winner.valid_until, winner.superseded_by = statement.valid_until, None

    def _may_change(self, by: RecordedStatement | FactAnswer, names: Sequence[str], *, after: str | None) -> bool:
        """Whether an item may change these facts. A change of another device's facts is noted, also one that waits."""
        changed = [self._drafts[name] for name in names]
        drafts = [draft for draft in changed if draft.devices != {by.device_id} or not by.is_proven]
        may = self._admitted.allows(by) if drafts else not self._admitted.refuses(by)
        self.withheld |= set() if may else {by.change_id}
        is_vital = any(draft.statement.is_vital for draft in drafts)
        if (not may or is_vital) and by.change_id not in self._admitted.answers:
            self._changes[by.change_id] = ForeignChange(
                event_id=by.change_id,
                device_id=by.device_id,
                is_proven=by.is_proven,
                recorded_at=by.recorded_at,
                kind="stated" if isinstance(by, RecordedStatement) else by.kind.value,
                fact_id=names[0],
                before=tuple(dict.fromkeys(draft.statement.text for draft in drafts)),
                after=after,
                is_vital=is_vital,
                waits=not may,
            )
        return may

    def _is_open(self, change: ForeignChange) -> bool:
        """Whether a change that waits would still have an effect."""
        draft = self._drafts[change.fact_id]
        match change.kind:
            case AnswerKind.RETRACTED | AnswerKind.REJECTED | AnswerKind.SUPERSEDED | AnswerKind.DOUBTED:
                return draft.status in (FactStatus.ACTIVE, FactStatus.CANDIDATE)
            case AnswerKind.CONFIRMED:
                return draft.status is not FactStatus.ACTIVE
            case AnswerKind.EDITED:
                return draft.statement.text != change.after
        return draft.status is FactStatus.CANDIDATE or change.after not in (None, draft.statement.text)

    def _ended_by(self, subject: str, new: Statement, besides: Collection[str] = ()) -> str | None:
        """The active fact that a statement of a change ends: it shares most content with it, the newest of equals.

        A named former value (`former`) counts before the statement's own words.
        """
        is_weak = new.change is Change.NOW and new.confidence >= TENTATIVE
        least = _NOW_SHARE if is_weak else _LEAST_SHARE
        scores: dict[str, float] = {}
        for owner in dict.fromkeys((subject, USER_SUBJECT)):  # a change said in a project may be about its user
            for text, weight in ((new.text, 1.0), (new.former or "", 2.0)):
                for name, share in self._active.sharing(owner, text, negative=(True, False)).items():
                    scores[name] = scores.get(name, 0.0) + weight * share
        scores = {
            name: score
            for name, score in scores.items()
            if score >= least
            and name not in besides
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
        about=said.about,
        level=said.level,
        importance=said.importance,
    )
