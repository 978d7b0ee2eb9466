"""Chinese messages: the rules for each clause behind gates, and clauses joined into statements."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from sync.understanding.model import MAX_STATEMENT_LENGTH, TENTATIVE, Change, FactKind, Statement
from sync.understanding.rules import chinese_gates as gates
from sync.understanding.rules.changes import find_change, is_correction
from sync.understanding.rules.chinese_clauses import is_boss_wish, is_change, read_change, read_clause
from sync.understanding.rules.chinese_wishes import is_negative, lasts_alone, read_polite_wish, read_wish
from sync.understanding.rules.chinese_words import FAMILY, ME
from sync.understanding.rules.reading import Reading
from sync.understanding.rules.topics import section_of, tool_role
from sync.understanding.rules.typed_text import HIDDEN, MAX_CLAUSE_LENGTH, MAX_HIDDEN, TypedSentence

_ANNOUNCEABLE: Final = frozenset({FactKind.KNOWLEDGE, FactKind.IDENTITY, FactKind.HABIT, FactKind.PREFERENCE})
_TENTATIVE_CONFIDENCE: Final = TENTATIVE - 0.1
_SHORT: Final = 9  # characters; a longer last clause announces nothing
_ENDS: Final = " 。！!；;….～~"
_DENIED_VERB: Final = re.compile(r"^[而但也]?不(?:再|会)?(?P<verb>[用吃喝坐穿看走收做住接])")


@dataclass(slots=True)
class _Clause:
    """A clause in its sentence: its position, its visible words without fillers, and what was read in it."""

    start: int
    end: int
    text: str
    reading: Reading | None = None
    is_part: bool = False  # a request that the clause before explains, or the reason of one: part of its statement
    is_closed: bool = False  # belongs to no statement: a request, a question, another speaker


def read_chinese(sentences: Sequence[TypedSentence]) -> list[Statement]:
    """The statements of the sentences of one message."""
    if any(gates.FICTION.search(sentence.visible) for sentence in sentences):
        return []
    found: list[Statement] = []
    context = _Context()
    for sentence in sentences:
        context.correction = context.correction or is_correction(sentence.visible)
        clauses = list(_clauses(sentence))
        _read_sentence(sentence, clauses, context)
        found.extend(_statements(sentence, clauses, correction=context.correction))
    return found or list(_presupposed(sentences))


def _presupposed(sentences: Sequence[TypedSentence]) -> Iterator[Statement]:
    """What a question or request takes for granted about its author: 我用的 Sublime Text 里怎么…, 我家二宝上户口…."""
    for sentence in sentences:
        if any(gate.search(sentence.visible) for gate in (gates.REPORTED, gates.CONDITION, gates.JOKE, gates.SARCASM)):
            continue
        for kind, pattern in gates.PRESUPPOSED:
            if (match := pattern.search(sentence.visible)) is not None:
                text = sentence.text[match.start() : match.end()].strip()
                slot = tool_role(text) if kind is FactKind.PREFERENCE else None
                yield Statement(text, kind, section_of(text, kind, slot), slot)


def _clauses(sentence: TypedSentence) -> Iterator[_Clause]:
    visible = sentence.visible
    ends = [match.span() for match in gates.CLAUSE.finditer(visible) if not _in_number(visible, match.start())]
    start = 0
    for left, right in [*ends, (len(visible), len(visible))]:
        body = visible[start:left]
        if gates.INTRODUCTION.search(body) and left < len(visible):
            continue
        filler = gates.FILLER.match(body)
        begin = start + (filler.end() if filler else 0)
        end = start + len(body.rstrip(" 。！!？?；;….～~"))
        if begin < end <= begin + MAX_CLAUSE_LENGTH:
            yield _Clause(begin, end, visible[begin:end] + ("？" if body.rstrip().endswith(("?", "？")) else ""))
        start = right


def _in_number(text: str, at: int) -> bool:
    """Whether a mark is between two digits, as in 2,900 and 9:30."""
    return text[at : at + 1] in ",:：" and text[at - 1 : at].isdigit() and text[at + 1 : at + 2].isdigit()


@dataclass(slots=True)
class _Context:
    """What the clauses before say about the next one."""

    has_self: bool = False  # the last subject was the author
    wishes: bool = False  # the clause before stated a preference
    kin: bool = False  # … or their family
    correction: bool = False
    announced: FactKind | None = None  # what follows in the sentence: decisions, goals, rules

    def follow(self, clause: _Clause, *, foreign: bool) -> None:
        """Note a clause that was read."""
        if clause.reading is not None:
            self.has_self = not foreign
            self.kin = clause.reading.kind is FactKind.RELATIONSHIP
            self.wishes = clause.reading.kind is FactKind.PREFERENCE
        elif re.search(ME, clause.text):
            self.has_self = not foreign
        elif foreign:
            self.has_self = False
        if re.match(rf"(?:我|我们|我家|带我|给我)?[^，,我]{{0,3}}{FAMILY}", clause.text):
            self.kin = True


@dataclass(slots=True)
class _Speaker:
    """Who speaks, and of what time, from clause to clause of a sentence."""

    condition_at: int  # where a condition begins
    foreign: bool = False  # not the author of themselves
    past: bool = False
    once: bool = False  # limited to this day or this time: so are the clauses behind it
    _reported: bool = False
    _of_time: bool = False
    _of_thing: bool = False
    _lasting_past: bool = False

    def listen(self, clause: _Clause, *, kin: bool) -> None:
        """Note the next clause. `kin`: it goes on about the author's family."""
        text = clause.text
        adviser = gates.OWN_ADVISER.search(text) is not None
        own_account = adviser or is_boss_wish(text)
        if clause.end > self.condition_at or gates.REPORTED.search(text):
            self.foreign = self._reported = not own_account
        elif not kin and not own_account and gates.OTHER_SUBJECT.search(text):
            self.foreign = True
        elif self.foreign and not self._reported and re.match(ME, text):
            self.foreign = False
        self._of_thing = not re.search(ME, text) and (self._of_thing or gates.ONCE_THING.search(text) is not None)
        is_once = gates.ONCE_TIME.search(text) is not None and gates.ASKS_ADVICE.search(text) is None
        self._of_time = (self._of_time or is_once) and (gates.LASTING_TIME.search(text) is None)
        self.once = self._of_time or self._of_thing
        over = gates.PAST_OVER.search(text) is not None
        self._lasting_past = (self._lasting_past or gates.STRONG_PAST.search(text) is not None) and not over
        self.past = self._lasting_past or (gates.PAST.search(text) is not None and not over)


def _read_sentence(sentence: TypedSentence, clauses: list[_Clause], context: _Context) -> None:
    """Read every clause of a sentence."""
    visible = sentence.visible
    context.announced = None
    if any(gate.search(visible) for gate in (gates.JOKE, gates.SARCASM, gates.META_QUESTION)):
        for clause in clauses:
            clause.is_closed = True
        return
    condition = None if gates.POLITE_CONDITION.search(visible) else gates.CONDITION.search(visible)
    speaker = _Speaker(condition.start() if condition is not None else len(visible))
    for clause in clauses:
        kin = context.kin and gates.PRONOUN.match(clause.text) is not None
        speaker.listen(clause, kin=kin)
        _read(clause, sentence, context, foreign=speaker.foreign, past=speaker.past or speaker.once, kin=kin)
        context.follow(clause, foreign=speaker.foreign)
    _read_plain_wishes(sentence, clauses)


def _read_plain_wishes(sentence: TypedSentence, clauses: list[_Clause]) -> None:
    """A request without a word of duration counts if a fact explains it: before it, or as a part of its statement."""
    if sentence.is_question:
        return
    _read_generalised(clauses)
    for clause, after in pairwise(clauses):
        if after.reading is None or gates.QUESTION.search(clause.text):
            continue
        wish = read_wish(clause.text, has_reason=True)
        is_reason = after.reading.kind in gates.REASON_KINDS and gates.PROHIBITS.search(clause.text) is not None
        if wish is not None and is_reason and clause.reading in (None, wish):
            clause.reading = clause.reading or after.reading
            after.reading, after.is_closed, after.is_part = None, False, True
    _attach_to_reasons(clauses)
    for before, clause in pairwise(clauses):
        if clause.reading is None and (before.reading is not None or before.is_part):
            clause.is_part = clause.is_part or (
                not gates.QUESTION.search(clause.text) and read_wish(clause.text, has_reason=True) is not None
            )


def _read_generalised(clauses: list[_Clause]) -> None:
    """Requests that the end of the sentence makes last: 标题用二级，结尾别总结，往后都照这个来."""
    if any(gates.GENERALISES.match(clause.text) for clause in clauses[1:]):
        for clause in clauses:
            if clause.reading is None and not clause.is_closed and gates.SAYS_HOW.match(clause.text):
                clause.reading = Reading(FactKind.PREFERENCE, None, is_negative(clause.text))


def _attach_to_reasons(clauses: list[_Clause]) -> None:
    """Make a request that holds only for the fact before it a part of its statement: 我不会开车，自驾就不用看了."""
    is_reason = False
    for clause in clauses:
        if is_reason and clause.reading is not None and clause.reading == read_wish(clause.text, has_reason=True):
            if not lasts_alone(clause.text):
                clause.reading, clause.is_part = None, True
        elif clause.reading is not None:
            is_reason = clause.reading.kind in gates.REASON_KINDS and not clause.reading.is_tentative
        else:
            is_reason = is_reason and not clause.is_closed


def _read(clause: _Clause, sentence: TypedSentence, context: _Context, *, foreign: bool, past: bool, kin: bool) -> None:
    text = clause.text
    if gates.QUESTION.search(text):
        clause.is_closed = True
        clause.reading = None if foreign else read_polite_wish(text)
        return
    if not (foreign or past or sentence.is_question):
        for kind, pattern in gates.ANNOUNCES:
            if pattern.search(text) and (len(text) < _SHORT or clause.end < len(sentence.visible.rstrip(_ENDS))):
                context.announced = kind
                clause.is_closed = True
                return
    is_wish_of_other = foreign and (gates.REPORTED.search(text) or not re.search(r"[你您]|回[答复]", text))
    if not is_wish_of_other and not sentence.is_question:
        clause.reading = read_wish(text, has_reason=False, is_heading=sentence.is_heading)
        if clause.reading is not None:
            return
    is_task = gates.TASK.search(text) is not None and context.announced is None
    of_the_moment = any(gate.search(text) for gate in (gates.OPINION, gates.PASSING, gates.EXPERIENCE, gates.UNCERTAIN))
    if foreign or past or is_task or of_the_moment:
        clause.is_closed = True
        return
    has_self = context.has_self or (gates.OWN_START.match(text) is not None and not sentence.is_question)
    clause.reading = (
        read_clause(text, has_self=has_self, is_question=sentence.is_question)
        or _read_from_context(text, context, kin=kin)
        or (None if sentence.is_question else read_change(text, is_correction=context.correction))
    )
    if clause.reading is not None:
        clause.reading = _in_context(clause.reading, text, context)
    if clause.reading is None and gates.REQUEST_START.match(text):
        clause.is_closed = True


def _in_context(reading: Reading, text: str, context: _Context) -> Reading:
    """The kind that the clauses before give a clause: a decision, a goal, a rule; a fact about the family."""
    if context.announced is not None and reading.kind in _ANNOUNCEABLE:
        return replace(reading, kind=context.announced)
    if context.kin and reading.kind is FactKind.IDENTITY and not re.search(ME, text):
        return Reading(FactKind.RELATIONSHIP, None, reading.is_negative)
    return reading


def _read_from_context(text: str, context: _Context, *, kin: bool) -> Reading | None:
    """What a clause without a subject or topic of its own says after those before it."""
    if kin:
        return Reading(FactKind.RELATIONSHIP, None, is_negative(text))
    if context.announced is not None and len(text) > 3 and not re.match(r"[你您帮请]", text):
        return Reading(context.announced, None, is_negative(text))
    if context.wishes and gates.WISHES_ON.match(text):
        return Reading(FactKind.PREFERENCE, None, is_negative(text))
    return None


def _statements(sentence: TypedSentence, clauses: list[_Clause], *, correction: bool) -> Iterator[Statement]:
    """Join what belongs together and make statements of it."""
    at = 0
    while at < len(clauses):
        clause = clauses[at]
        if clause.reading is None:
            at += 1
            continue
        last = at
        while last + 1 < len(clauses) and _continues(clauses[last], clauses[last + 1], clause.start):
            last += 1
        whole = sentence.visible[clauses[at].start : clauses[last].end]
        if whole.count(HIDDEN) <= MAX_HIDDEN * len(whole):
            yield _statement(sentence, clauses[at : last + 1], correction=correction)
        at = last + 1


def _continues(before: _Clause, after: _Clause, start: int) -> bool:
    """Whether a clause only adds to the one before it: a reason, a consequence, a remark without a fact of its own."""
    if after.end - start > MAX_STATEMENT_LENGTH:
        return False
    if after.is_part:
        return True
    if after.is_closed:
        return False
    if after.reading is None:
        return not re.match(rf"(?:{ME}|{FAMILY})", after.text) and not gates.ASIDE.search(after.text)
    return before.reading is not None and _is_one_statement(before, after)


def _is_one_statement(before: _Clause, after: _Clause) -> bool:
    """Whether two clauses with a reading each say one thing: two sides of a change, or yes and no about one topic."""
    if before.reading is None or after.reading is None:
        return False
    if is_change(before.text) and is_change(after.text):
        return True
    denied = _DENIED_VERB.match(after.text)
    if denied is not None and denied["verb"] in before.text and not before.reading.is_negative:
        return True
    if before.reading.kind is not after.reading.kind:
        return False
    has_subject = re.match(ME, after.text) is not None
    is_contrast = before.reading.is_negative != after.reading.is_negative and not has_subject
    return is_contrast or gates.LINKS.match(after.text) is not None


def _statement(sentence: TypedSentence, clauses: Sequence[_Clause], *, correction: bool) -> Statement:
    start, end = clauses[0].start, clauses[-1].end
    readings = [clause.reading for clause in clauses if clause.reading is not None]
    reading = next((one for one in readings if not one.is_tentative), readings[0])
    is_tentative = reading.is_tentative and len(readings) == 1  # what ends and what comes instead: a decision
    kind = FactKind.DECISION if reading.is_tentative and not is_tentative else reading.kind
    slot = next((one.slot for one in readings if one.slot is not None), None)
    visible = sentence.visible[start:end]
    change, former = find_change(visible, context=sentence.visible if correction else "")
    return Statement(
        text=sentence.text[start:end][:MAX_STATEMENT_LENGTH].strip(),
        kind=kind,
        section=section_of(visible, kind, slot),
        slot=slot,
        is_negative=reading.is_negative,
        change=change or (Change.REPLACES if is_tentative else None),
        former=former,
        confidence=_TENTATIVE_CONFIDENCE if is_tentative else 1.0,
    )
