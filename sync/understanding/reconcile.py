"""Turn all recorded statements and the user's answers about them into facts. Pure; any order of arrival gives the same.

Statements are applied in the order of their hybrid clock: decisions 028 and 045. What changes a fact of another device
has that effect from an admitted device only: decision 042.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from sync.log.devices.device_view import EVERY_DEVICE, DeviceView
from sync.understanding.changes.admission import ChangeGuard, ForeignChange
from sync.understanding.changes.effects import Effect, effect_of
from sync.understanding.fact_draft import FactDraft
from sync.understanding.likeness import CurrentFacts, has_other_clauses, statement_key, topic_of, without_part
from sync.understanding.model import (
    REMEMBER,
    TRUSTED,
    USER_SUBJECT,
    AnswerKind,
    Fact,
    FactAnswer,
    FactOrigin,
    FactStatus,
    Level,
    RecordedStatement,
    Statement,
)

_Order = tuple[str, int, str, str, str]


class FactTimeline:
    """Statements and answers in the order of their clocks, and the facts that follow from them."""

    def __init__(
        self,
        statements: Iterable[RecordedStatement] = (),
        answers: Iterable[FactAnswer] = (),
        admitted: DeviceView = EVERY_DEVICE,
    ) -> None:
        self.book = FactBook(admitted)
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

    def _apply(self, item: RecordedStatement | FactAnswer) -> bool:
        """Apply one item; False for an answer about a fact that is not known."""
        if isinstance(item, RecordedStatement):
            self.book.state(item)
        elif item.fact_id in self.book.names:
            self.book.answer(item)
        else:
            return False
        return True


def _order(item: RecordedStatement | FactAnswer) -> _Order:
    if isinstance(item, RecordedStatement):
        return item.hlc, 0, item.event_id, item.fact_id, item.device_id
    return item.hlc, 1, item.event_id, item.fact_id, item.kind


@dataclass(slots=True)
class _Effects:
    """What a statement does to the active facts, by their ids."""

    ended: list[str] = field(default_factory=list)
    questioned: list[str] = field(default_factory=list)
    is_contradiction: bool = False


class FactBook:
    """The facts so far."""

    def __init__(self, admitted: DeviceView) -> None:
        self._admitted = admitted
        self._guard = ChangeGuard(admitted)
        self._drafts: dict[str, FactDraft] = {}
        self._facts: dict[str, Fact] = {}  # those that did not change since they were asked for
        self.names: dict[str, str] = {}  # the fact_id of a statement -> the fact it belongs to
        self._by_key: dict[tuple[str, str], str] = {}  # (subject, key) -> the newest fact with this key
        self._current = CurrentFacts()  # the active ones, and those that the user's own words make likely
        self._ordinals: dict[str, int] = {}  # the place of each fact in the order of their first statements
        self._questions: dict[str, set[str]] = {}  # the fact of a newer sentence -> the facts that it questions

    def state(self, said: RecordedStatement) -> None:
        """Apply one statement."""
        if said.fact_id in self.names:  # the same statement arrived twice
            return
        key = said.subject, statement_key(said.statement.text)
        if (repeated := self._by_key.get(key)) is not None and self._is_repeat(repeated, said):
            self._add_evidence(repeated, said)
            return
        is_trusted, is_refused = said.origin in TRUSTED, self._admitted.refuses(said)
        effects = self._effects_of(said.fact_id, said, said.statement) if is_trusted else _Effects()
        if is_trusted and said.statement.is_tentative and not effects.questioned:
            return
        self.names[said.fact_id] = said.fact_id
        self._by_key[key] = said.fact_id
        self._ordinals[said.fact_id] = len(self._ordinals)
        status = FactStatus.RETRACTED if is_refused else FactStatus.CANDIDATE
        self._drafts[said.fact_id] = FactDraft(said, status)
        if is_trusted and not is_refused and not said.statement.is_tentative:
            self._current.add(said.fact_id, said.subject, said.statement)
        if said.is_certain and not is_refused and not effects.is_contradiction:
            self._activate(said.fact_id, said, said.statement, effects)
        elif effects.questioned and self._may_change(
            said, [said.fact_id, *effects.questioned], after=said.statement.text
        ):
            self._question(effects.questioned, said.fact_id)

    def answer(self, given: FactAnswer) -> None:
        """Apply one answer to its fact, unless it waits or was refused."""
        fact_id = self.names[given.fact_id]
        draft = self._draft_to_change(fact_id)
        match given.kind:
            case AnswerKind.REJECTED | AnswerKind.RETRACTED:
                if self._may_change(given, [fact_id], after=None):
                    self._retract(fact_id, given.recorded_at)
                    draft.is_removal_admitted = self._admitted.allows(given)
                    draft.devices.add(given.device_id)
            case AnswerKind.SUPERSEDED if draft.status in (FactStatus.ACTIVE, FactStatus.CANDIDATE):
                by = self.names.get(given.superseded_by or "", given.superseded_by)
                after = self._drafts[by].statement.text if by in self._drafts else None
                if self._may_change(given, [fact_id], after=after):
                    self._end(fact_id, given.recorded_at, by)
            case AnswerKind.QUESTIONED if draft.status is FactStatus.ACTIVE:
                by = self.names.get(given.superseded_by or "", fact_id)
                is_open = by != fact_id and self._drafts[by].status is not FactStatus.RETRACTED
                if is_open and self._may_change(given, [fact_id], after=self._drafts[by].statement.text):
                    self._question([fact_id], by)
            case AnswerKind.DOUBTED if draft.status is FactStatus.ACTIVE and draft.origin is FactOrigin.USER_STATED:
                if self._may_change(given, [fact_id], after=None):
                    self._settle(fact_id)
                    draft.status = FactStatus.CANDIDATE
            case AnswerKind.CONFIRMED | AnswerKind.EDITED:
                is_kept = given.kind is AnswerKind.CONFIRMED and draft.status is FactStatus.ACTIVE
                statement = replace(given.statement or draft.statement, level=Level.CERTAIN, confidence=1.0)
                effects = _Effects() if is_kept else self._effects_of(fact_id, given, statement)
                self._activate(fact_id, given, statement, effects)

    def facts(self) -> tuple[Fact, ...]:
        """All facts, whatever their status, ordered by the time of their first statement."""
        for name in self._drafts.keys() - self._facts.keys():
            self._facts[name] = self._drafts[name].fact
        return tuple(self._facts[name] for name in self._drafts)

    @property
    def withheld(self) -> Collection[str]:
        """The events that have no effect: they wait, or were refused."""
        return self._guard.withheld

    def open_changes(self) -> tuple[ForeignChange, ...]:
        """The changes of one device in facts of another, in order: those that wait, and of vital facts all."""
        return self._guard.open_changes(self._drafts)

    def _draft_to_change(self, fact_id: str) -> FactDraft:
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
        """Add a repeated statement. The user's own words make a candidate active, a retracted fact only their wish."""
        draft = self._draft_to_change(fact_id)
        self.names[said.fact_id] = fact_id
        draft.statement_ids.append(said.fact_id)
        if said.event_id not in draft.evidence:
            draft.evidence.append(said.event_id)
            draft.doubt *= 1.0 - said.statement.confidence
        is_trusted, statement = said.is_certain, said.statement
        is_dated = statement.valid_until not in {None, draft.valid_until} and draft.status is not FactStatus.RETRACTED
        after = f"{draft.statement.text} ({statement.valid_until})"
        if is_trusted and is_dated and self._may_change(said, [fact_id], after=after):
            draft.valid_until = statement.valid_until  # a plan of last year is one of this year again
        is_open = draft.status is FactStatus.CANDIDATE or draft.questioned_by is not None
        if is_trusted and (statement.reader == REMEMBER if draft.status is FactStatus.RETRACTED else is_open):
            self._activate(fact_id, said, statement, self._effects_of(fact_id, said, statement))
        draft.devices |= {said.device_id} if is_trusted else set()

    def _effects_of(self, fact_id: str, by: RecordedStatement | FactAnswer, statement: Statement) -> _Effects:
        """What a statement does to the active facts, or at least to a likely one, which nothing ends.

        Facts of one event never replace or question each other.
        """
        own = self._drafts.get(fact_id)
        events = {by.event_id, *(own.evidence if own is not None else ())}
        subject = (
            own.first.subject if own is not None else by.subject if isinstance(by, RecordedStatement) else USER_SUBJECT
        )
        found: dict[Effect, list[tuple[bool, bool, int, int, str]]] = {}
        for name, shared in self._near(fact_id, subject, statement).items():
            draft = self._drafts[name]
            if name == fact_id or not events.isdisjoint(draft.evidence):
                continue
            effect, is_active = effect_of(draft.statement, statement), draft.status is FactStatus.ACTIVE
            if not is_active or (effect is Effect.ENDS and draft.first.subject != subject):
                effect = min(effect, Effect.QUESTIONS)
            is_of_topic = topic_of(draft.statement) == topic_of(statement) is not None
            found.setdefault(effect, []).append((is_active, is_of_topic, shared, self._ordinals[name], name))
        contradicted = [name for *_, name in found.get(Effect.CONTRADICTS, ()) if self._may_question(name, by)]
        questioned = [] if Effect.ENDS in found else [max(found.get(Effect.QUESTIONS, ()), default=("",))[-1]]
        return _Effects(
            ended=[name for *_, name in sorted(found.get(Effect.ENDS, ()))],
            questioned=contradicted or [name for name in questioned if name],
            is_contradiction=bool(contradicted) and Effect.ENDS not in found,
        )

    def _near(self, fact_id: str, subject: str, statement: Statement) -> Counter[str]:
        """The facts that share a slot or content with a statement, and how much; also what it questions."""
        found = self._current.sharing(subject, statement) + Counter(self._questions.get(fact_id, ()))
        if subject != USER_SUBJECT and statement.change is not None:  # said in a project, it may be about its user
            found += self._current.sharing(USER_SUBJECT, statement)
        return found

    def _may_question(self, fact_id: str, by: RecordedStatement | FactAnswer) -> bool:
        """Whether a fact may make a statement of another device doubtful."""
        draft = self._drafts[fact_id]
        return by.device_id in draft.devices or draft.is_admitted

    def _activate(
        self, fact_id: str, by: RecordedStatement | FactAnswer, statement: Statement, effects: _Effects
    ) -> None:
        """Make a fact active with the words of `statement`, and end or question what it replaces.

        If it may not replace that, or not be changed by this device, it stays as it is. What the user confirms or
        repeats is no longer questioned.
        """
        if not self._may_change(by, [fact_id, *effects.ended, *effects.questioned], after=statement.text):
            return
        if isinstance(by, RecordedStatement) and not self._admitted.allows(by):
            return  # what a device states before it is admitted is a candidate, also if it would change nothing
        winner = self._draft_to_change(fact_id)
        if winner.questioned_by is not None:
            self._settle(fact_id, by.recorded_at)
        self._take_words(winner, by, statement)
        winner.status = FactStatus.ACTIVE
        for name in effects.ended:
            self._end_or_mark(name, statement, by.recorded_at, fact_id)
        self._question(effects.questioned, fact_id)
        self._current.add(fact_id, winner.first.subject, statement)

    def _take_words(self, winner: FactDraft, by: RecordedStatement | FactAnswer, statement: Statement) -> None:
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
        return self._guard.may_change(by, [self._drafts[name] for name in names], after=after)

    def _end_or_mark(self, fact_id: str, new: Statement, at: str, by: str) -> None:
        """End a fact. What says more than the change is about is cut, or marked as partly out of date."""
        draft = self._draft_to_change(fact_id)
        rest = without_part(draft.statement.text, new.former) if new.former is not None else None
        if rest is not None:
            draft.statement = replace(draft.statement, text=rest)
            self._current.add(fact_id, draft.first.subject, draft.statement)
        elif has_other_clauses(draft.statement.text, new.text):
            self._question([fact_id], by)
            draft.outdated_part = new.former
        else:
            self._end(fact_id, at, by)

    def _question(self, names: Iterable[str], by: str) -> None:
        for name in names:
            draft = self._draft_to_change(name)
            if draft.questioned_by is not None:
                self._questions[draft.questioned_by].discard(name)
            draft.questioned_by, draft.outdated_part = by, None
            self._questions.setdefault(by, set()).add(name)

    def _settle(self, fact_id: str, at: str | None = None) -> None:
        """End the question about a fact. If it holds (`at`), a sentence that said nothing else is taken back."""
        draft = self._draft_to_change(fact_id)
        by, draft.questioned_by, draft.outdated_part = draft.questioned_by, None, None
        if by is None:
            return
        self._questions[by].discard(fact_id)
        newer = self._draft_to_change(by)
        is_only_question = newer.status is FactStatus.CANDIDATE and newer.statement.is_tentative
        if at is not None and is_only_question and not self._questions[by]:
            newer.status, newer.valid_until = FactStatus.RETRACTED, at

    def _retract(self, fact_id: str, at: str) -> None:
        """Take a fact back, and with it the questions that it raised."""
        draft = self._draft_to_change(fact_id)
        self._settle(fact_id)
        for name in sorted(self._questions.get(fact_id, ())):
            self._settle(name)
        draft.status, draft.valid_until, draft.superseded_by = FactStatus.RETRACTED, at, None
        self._current.remove(fact_id)

    def _end(self, fact_id: str, at: str, by: str | None) -> None:
        draft = self._draft_to_change(fact_id)
        self._settle(fact_id)
        draft.status, draft.valid_until, draft.superseded_by = FactStatus.SUPERSEDED, at, by
        self._current.remove(fact_id)
