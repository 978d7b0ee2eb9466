"""Chinese messages: the rules for each clause behind gates, and clauses joined into statements."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sync.understanding.model import MAX_STATEMENT_LENGTH, FactKind, Statement
from sync.understanding.rules import chinese_gates as gates
from sync.understanding.rules.changes import find_change, is_correction
from sync.understanding.rules.chinese_clauses import is_boss_wish, read_clause
from sync.understanding.rules.chinese_wishes import is_negative, read_wish
from sync.understanding.rules.chinese_words import FAMILY, ME
from sync.understanding.rules.reading import Reading
from sync.understanding.rules.topics import section_of
from sync.understanding.rules.typed_text import Sentence


@dataclass(slots=True)
class _Clause:
    """A clause in its sentence: where it stands, its visible words without fillers, and what was read in it."""

    start: int
    end: int
    text: str
    reading: Reading | None = None
    is_part: bool = False  # a wish that the clause before explains, or the reason of one: part of its statement
    is_closed: bool = False  # belongs to nobody's statement: a request, a question, another speaker


def read_chinese(sentences: Sequence[Sentence]) -> list[Statement]:
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
    return found


def _clauses(sentence: Sentence) -> Iterator[_Clause]:
    visible = sentence.visible
    ends = [match.span() for match in gates.CLAUSE.finditer(visible) if not _in_number(visible, match.start())]
    start = 0
    for left, right in [*ends, (len(visible), len(visible))]:
        body = visible[start:left]
        filler = gates.FILLER.match(body)
        begin = start + (filler.end() if filler else 0)
        end = start + len(body.rstrip(" 。！!？?；;….～~"))
        if begin < end:
            yield _Clause(begin, end, visible[begin:end] + ("？" if body.rstrip().endswith(("?", "？")) else ""))
        start = right


def _in_number(text: str, at: int) -> bool:
    """Whether a mark stands between two digits, as in 2,900 and 9:30."""
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
    _reported: bool = False
    _lasting_past: bool = False

    def listen(self, clause: _Clause, *, kin: bool) -> None:
        """Note the next clause. `kin`: it goes on about the author's family."""
        text = clause.text
        adviser = gates.OWN_ADVISER.search(text) is not None
        if clause.end > self.condition_at or gates.REPORTED.search(text):
            self.foreign = self._reported = not adviser
        elif not kin and gates.OTHER_SUBJECT.search(text) and not adviser and not is_boss_wish(text):
            self.foreign = True
        elif self.foreign and not self._reported and re.match(ME, text):
            self.foreign = False
        over = gates.PAST_OVER.search(text) is not None
        self._lasting_past = (self._lasting_past or gates.STRONG_PAST.search(text) is not None) and not over
        self.past = self._lasting_past or (gates.PAST.search(text) is not None and not over)


def _read_sentence(sentence: Sentence, clauses: list[_Clause], context: _Context) -> None:
    """Read every clause of a sentence."""
    visible = sentence.visible
    context.announced = None
    if gates.JOKE.search(visible) or gates.META_QUESTION.search(visible):
        for clause in clauses:
            clause.is_closed = True
        return
    condition = None if gates.POLITE_CONDITION.search(visible) else gates.CONDITION.search(visible)
    speaker = _Speaker(condition.start() if condition is not None else len(visible))
    for clause in clauses:
        kin = context.kin and gates.PRONOUN.match(clause.text) is not None
        speaker.listen(clause, kin=kin)
        _read(clause, sentence, context, foreign=speaker.foreign, past=speaker.past, kin=kin)
        context.follow(clause, foreign=speaker.foreign)
    _read_plain_wishes(sentence, clauses)


def _read_plain_wishes(sentence: Sentence, clauses: list[_Clause]) -> None:
    """A wish without a word of duration counts if a fact explains it: before it, or as a part of its statement."""
    if sentence.is_question:
        return
    for clause, after in pairwise(clauses):
        if clause.reading is None and after.reading is not None and not gates.QUESTION.search(clause.text):
            wish = read_wish(clause.text, has_reason=True)
            if wish is not None and gates.PROHIBITS.search(clause.text) and after.reading.kind in gates.REASON_KINDS:
                clause.reading = after.reading
                after.reading, after.is_closed, after.is_part = None, False, True
    for before, clause in pairwise(clauses):
        if clause.reading is None and (before.reading is not None or before.is_part):
            clause.is_part = clause.is_part or (
                not gates.QUESTION.search(clause.text) and read_wish(clause.text, has_reason=True) is not None
            )


def _read(clause: _Clause, sentence: Sentence, context: _Context, *, foreign: bool, past: bool, kin: bool) -> None:
    text = clause.text
    if gates.QUESTION.search(text):
        clause.is_closed = True
        return
    if not (foreign or past or sentence.is_question):
        for kind, pattern in gates.ANNOUNCES:
            if pattern.search(text):
                context.announced = kind
                clause.is_closed = True
                return
    is_wish_of_other = foreign and (gates.REPORTED.search(text) or not re.search(r"[你您]|回[答复]", text))
    if not is_wish_of_other and not sentence.is_question:
        clause.reading = read_wish(text, has_reason=False)
        if clause.reading is not None:
            return
    is_task = gates.TASK.search(text) is not None and context.announced is None
    if foreign or past or is_task or gates.OPINION.search(text) or gates.PASSING.search(text):
        clause.is_closed = True
        return
    clause.reading = read_clause(
        text,
        is_question=sentence.is_question,
        has_self=context.has_self or (gates.OWN_START.match(text) is not None and not sentence.is_question),
    ) or _read_from_context(text, context, kin=kin)
    if clause.reading is None and gates.REQUEST_START.match(text):
        clause.is_closed = True


def _read_from_context(text: str, context: _Context, *, kin: bool) -> Reading | None:
    """What a clause without a subject or topic of its own says after those before it."""
    if kin:
        return Reading(FactKind.RELATIONSHIP, None, is_negative(text))
    if context.announced is not None and len(text) > 3 and not re.match(r"[你您帮请]", text):
        return Reading(context.announced, None, is_negative(text))
    if context.correction and re.search(r"是|在|叫|为", text) and not is_correction(text):
        return Reading(FactKind.KNOWLEDGE, None, is_negative(text))
    if context.has_self and len(text) > 3 and gates.SWITCHES.search(text):
        return Reading(FactKind.KNOWLEDGE, None, is_negative(text))
    if context.wishes and gates.WISHES_ON.match(text):
        return Reading(FactKind.PREFERENCE, None, is_negative(text))
    return None


def _statements(sentence: Sentence, clauses: list[_Clause], *, correction: bool) -> Iterator[Statement]:
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
        yield _statement(sentence, clause, clauses[last].end, correction=correction)
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
    return (
        before.reading is not None and before.reading.kind is after.reading.kind and bool(gates.LINKS.match(after.text))
    )


def _statement(sentence: Sentence, clause: _Clause, end: int, *, correction: bool) -> Statement:
    assert clause.reading is not None
    reading = clause.reading
    text = sentence.text[clause.start : end][:MAX_STATEMENT_LENGTH].strip()
    visible = sentence.visible[clause.start : end]
    change, former = find_change(visible, context=sentence.visible if correction else "")
    return Statement(
        text=text,
        kind=reading.kind,
        section=section_of(visible, reading.kind, reading.slot),
        slot=reading.slot,
        is_negative=reading.is_negative,
        change=change,
        former=former,
    )
