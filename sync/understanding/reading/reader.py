"""Turn a message into statements: sentences by form, certain forms, and the scorer. Pure, under 5 ms for a message."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.small_talk import is_small_talk
from sync.understanding.changes.verbs import find_change, unread_change
from sync.understanding.model import (
    MAX_REMEMBERED,
    MAX_STATEMENT_LENGTH,
    REMEMBER,
    UNKNOWN_BEARER,
    USER_SUBJECT,
    FactKind,
    Level,
    Statement,
)
from sync.understanding.reading import scorer
from sync.understanding.reading.bearers import ClauseBearer, clause_bearers, is_link
from sync.understanding.reading.certain_forms import FoundForm, find_forms, is_guarded
from sync.understanding.reading.introductions import is_own_head, names_another
from sync.understanding.reading.segments import Foreign, LineForm, Sentence, read_sentences
from sync.understanding.reading.topics import section_of, topic_slot

MAX_STATEMENTS: Final = 12  # of one message
FORMS: Final = "forms"
# Of a statement whose reader gives no importance, by its kind; what may hurt when it is forgotten counts more.
_IMPORTANCE: Final = {
    FactKind.IDENTITY: 0.6,
    FactKind.CONSTRAINT: 0.65,
    FactKind.DECISION: 0.65,
    FactKind.RELATIONSHIP: 0.55,
    FactKind.PLAN: 0.5,
}
_VITAL: Final = 0.8
_VITAL_CLASSES: Final = frozenset({"allergy", "diet", "illness", "medicine"})
# From which probability on a sentence is the user's own its form is certain: alone, and beside the words of others.
_OWN: Final = 0.6
_OWN_BESIDE_OTHERS: Final = 0.9
_RATHER_OWN: Final = 0.5  # with which its form is likely
_PLAIN_KEEP: Final = 0.5  # with which a sentence that names its subject, and nothing in doubt, is certain
_ORDINARY: Final = 0.4
_EDGES: Final = " \t\u3000，,。.;；、:：!！~～-–—"
_TAG: Final = re.compile(  # what ends a request: 好吗, ", please"
    r"(?i)(?:[\s,，]+(?:ok(?:ay)?|alright|please|thanks|thank you|谢谢|哈|哦)|[\s,，]*(?:好不好|[好行]?吗|可以吗))?"
    r"[\s?？!！.。]*$"
)
_NEGATED: Final = re.compile(r"(?i)不(?!仅|但|过|错|止)|没|别|无法|勿|n't\b|\b(?:not|never|no|without|dont|cant)\b")
_A_RELATION: Final = "relation"  # the scorer's word for anybody of the household
_SPLITS: Final = frozenset({"name", "location", "employer", "age"})  # slots whose values part a sentence
_POINTS_BACK: Final = re.compile(
    r"(?i)^[\W_]*(?:这[个些点条件事段话]*|那[个些点]?|上面的?|刚才(?:的|说的)?"
    r"|this|that|it|these|above|(?:what )?i(?: just)? said)*"
    r"[\W_]*(?:了|哈|啊|呀|吧|哦|please|pls|too|for me|ok)*[\W_]*$"
)


class _Message(msgspec.Struct, frozen=True):
    """What is read in a message. `is_mixed`: it also has words of others, or a work on them."""

    text: str
    sentences: Sequence[Sentence]
    forms: Sequence[FoundForm]
    scores: Sequence[scorer.Score | None]
    bearers: Sequence[Sequence[ClauseBearer]]
    is_mixed: bool


class _Choice(msgspec.Struct, frozen=True):
    """What states something: the clauses `first` to `last` of a sentence, and the one of them that says it best."""

    sentence: int
    clause: int
    first: int
    last: int
    level: Level
    form: FoundForm | None = None


def extract_statements(message: str, previous: str = "") -> list[Statement]:
    """The statements of a message, in its order. `previous`: the assistant's turn before it."""
    sentences = read_sentences(message)
    if not sentences or is_small_talk(message):
        return []
    has_foreign = any(clause.foreign for sentence in sentences for clause in sentence.clauses)
    read = _Message(
        message,
        sentences,
        find_forms(message, sentences),
        scorer.score(message, previous, sentences) or [None] * len(sentences),
        clause_bearers(sentences),
        has_foreign or names_another(message),
    )
    found, chosen = _remembered(read), list(_choices(read))
    for choice in chosen:
        statement = _statement(read, choice)
        if statement is not None and all(statement.text not in one.text for one in found):
            found.append(statement)
    return [*found, *_unread_changes(read, {choice.sentence for choice in chosen})][:MAX_STATEMENTS]


def points_back(message: str) -> bool:
    """Whether a message asks to remember what was said before it, and says nothing else: 记住这个."""
    sentences = read_sentences(message)
    forms = find_forms(message, sentences) if len(sentences) == 1 else []
    return any(one.is_wish and _POINTS_BACK.match(message[one.start :]) for one in forms)


def remembered(text: str, level: Level = Level.CERTAIN) -> Statement | None:
    """The statement of what the user asks to be remembered; None without words."""
    words = _TAG.sub("", " ".join(text.split()).strip(_EDGES)).strip(_EDGES)[:MAX_REMEMBERED]
    if not words:
        return None
    sentences = read_sentences(words)
    form = next((one for one in find_forms(words, sentences) if not one.is_wish), None)
    bearers = clause_bearers(sentences)
    about = form.about if form is not None else bearers[0][0].about if bearers else USER_SUBJECT
    kind = form.form.kind if form is not None else FactKind.KNOWLEDGE
    stated = _stated(words, words, kind, about, form)
    return replace(stated, level=level, importance=_VITAL, reader=REMEMBER)


def _stated(text: str, words: str, kind: FactKind, about: str, form: FoundForm | None) -> Statement:
    """A statement with what its text says of it. `words`: the clause that says it best."""
    change, former = find_change(text)
    return Statement(
        text=text,
        kind=kind,
        section=(form.form.section if form is not None else None) or section_of(text, kind, about),
        slot=form.slot if form is not None and form.slot else topic_slot(words, kind),
        is_negative=_NEGATED.search(words) is not None,
        change=change,
        former=former,
        about=about,
    )


def _remembered(read: _Message) -> list[Statement]:
    """What the message asks to be remembered: the words after the wish, else the sentence that it points back to."""
    found: list[Statement | None] = []
    for one in read.forms:
        if not one.is_wish:
            continue
        sentence = read.sentences[one.sentence]
        words = read.text[one.start : sentence.end]
        if not _POINTS_BACK.match(words):
            found.append(remembered(words))
            continue
        is_head = words.rstrip().endswith((":", "：")) and one.sentence + 1 < len(read.sentences)
        before = read.text[sentence.start : sentence.clauses[one.clause].start].strip(_EDGES)
        other = read.sentences[one.sentence + 1 if is_head else one.sentence - 1] if is_head or one.sentence else None
        if before:
            found.append(remembered(before))
        elif other is not None and other.foreign is None:
            found.append(remembered(other.text))
    return [one for one in found if one is not None]


def _unread_changes(read: _Message, chosen: Collection[int]) -> Iterator[Statement]:
    """What only says that something changed: it counts if it questions a fact that is known."""
    if names_another(read.text):
        return
    for at, (sentence, score) in enumerate(zip(read.sentences, read.scores, strict=True)):
        is_own = sentence.foreign is None and not sentence.is_question and (score is None or score.own >= _RATHER_OWN)
        if at not in chosen and is_own and len(sentence.text) <= MAX_STATEMENT_LENGTH:
            about = clause_bearers([sentence])[0][0].about
            unread = unread_change(" ".join(sentence.text.strip(_EDGES).split()), about)
            if unread is not None:
                yield replace(unread, reader=FORMS)


# --- which sentences -----------------------------------------------------------------------------------------------


def _choices(read: _Message) -> Iterator[_Choice]:
    wishes = {one.sentence for one in read.forms if one.is_wish}
    for number, sentence in enumerate(read.sentences):
        if sentence.foreign is not None:
            continue
        parts = _parts([one for one in read.forms if one.sentence == number and not one.is_wish])
        if parts:
            yield from _of_forms(read, number, parts)
        elif number not in wishes and (choice := _of_score(read, number)) is not None:
            yield choice


def _of_forms(read: _Message, number: int, parts: Sequence[FoundForm]) -> Iterator[_Choice]:
    """The statements of the forms in a sentence: it is parted where the next one begins."""
    sentence = read.sentences[number]
    is_field = sentence.form is LineForm.FIELD and not is_own_head(sentence.text.partition("：")[0])
    for place, form in enumerate(parts):
        if (level := _level_of_form(read, form)) is not None:
            first = form.clause if place else 0
            last = parts[place + 1].clause - 1 if place + 1 < len(parts) else len(sentence.clauses) - 1
            level = Level.LIKELY if is_field else level  # the name before the colon may be a speaker's
            yield _Choice(number, form.clause, first, last, level, form)


def _of_score(read: _Message, number: int) -> _Choice | None:
    """A sentence as the scorer reads it. One that names its subject, and nothing in doubt, needs less to be certain."""
    sentence, score = read.sentences[number], read.scores[number]
    heads = max((at for at, one in enumerate(sentence.clauses) if one.foreign is Foreign.INTRODUCED), default=0)
    own = [at for at, one in enumerate(sentence.clauses) if one.foreign is None and at >= heads]
    stating = [at for at in own if not sentence.clauses[at].is_question]
    if not stating or score is None:
        return None
    best, level = score.clause if score.clause in stating else stating[0], score.level
    is_plain = read.bearers[number][best].explicit not in {None, UNKNOWN_BEARER} and not read.is_mixed
    if score.keep >= _PLAIN_KEEP and is_plain and not is_guarded(read.text, sentence, best):
        level = Level.CERTAIN
    return None if level is None else _Choice(number, best, 0, len(sentence.clauses) - 1, level)


def _parts(forms: Sequence[FoundForm]) -> list[FoundForm]:
    """The forms that are statements of their own: one a sentence, but each topic beside a value that can change."""
    certain = [one for one in forms if not one.is_doubtful] or list(forms)
    by_clause = {one.clause: one for one in reversed(certain) if one.slot is not None}
    if len(by_clause) > 1 and any(one.slot in _SPLITS for one in by_clause.values()):
        return [by_clause[clause] for clause in sorted(by_clause)]
    return certain[:1]


def _level_of_form(read: _Message, form: FoundForm) -> Level | None:
    """How sure it is that a form is the user's own and lasting; None if it is not likely.

    What concerns health, in a message without words of others, is at least likely: it is asked about, not lost. Said as
    "I", it is the user's own by that alone.
    """
    score = read.scores[form.sentence]
    if score is None:
        return None if form.is_doubtful else Level.LIKELY if read.is_mixed else Level.CERTAIN
    is_vital = not read.is_mixed and form.form.form_class in _VITAL_CLASSES
    if form.is_doubtful:
        return Level.LIKELY if score.level is not None or (is_vital and score.own >= _OWN) else None
    is_plain = is_vital and read.bearers[form.sentence][form.clause].explicit == USER_SUBJECT
    if is_plain or score.own >= (_OWN_BESIDE_OTHERS if read.is_mixed else _OWN):
        return Level.CERTAIN
    return Level.LIKELY if is_vital or score.level is not None or score.own >= _RATHER_OWN else None


# --- the statement -------------------------------------------------------------------------------------------------


def _statement(read: _Message, choice: _Choice) -> Statement | None:
    sentence, bearers = read.sentences[choice.sentence], read.bearers[choice.sentence]
    form, score = choice.form, read.scores[choice.sentence]
    start, end = _span(sentence, choice, bearers)
    text = " ".join(_TAG.sub("", read.text[start:end]).strip(_EDGES).split())
    if not text:
        return None
    kind = form.form.kind if form is not None else score.kind if score is not None else FactKind.KNOWLEDGE
    importance = _IMPORTANCE.get(kind, _ORDINARY) if score is None else score.importance
    if form is not None and form.form.form_class in _VITAL_CLASSES:
        importance = max(importance, _VITAL)
    reader = FORMS if score is None else scorer.reader_name(read.text)
    about = _about(form, score, bearers[choice.clause])
    stated = _stated(text, sentence.clause_text(choice.clause), kind, about, form)
    return replace(stated, level=choice.level, importance=importance, reader=reader)


def _about(form: FoundForm | None, score: scorer.Score | None, bearer: ClauseBearer) -> str:
    """Whom a statement is about: as its form says, as its subject says, else as the scorer or the clause before."""
    if form is not None and form.about not in {USER_SUBJECT, UNKNOWN_BEARER}:
        return form.about
    if bearer.explicit is not None and bearer.explicit != UNKNOWN_BEARER:
        return bearer.explicit
    if score is not None and (score.about != _A_RELATION or bearer.about == USER_SUBJECT):
        return UNKNOWN_BEARER if score.about == _A_RELATION else score.about
    return form.about if form is not None else bearer.about


def _span(sentence: Sentence, choice: _Choice, bearers: Sequence[ClauseBearer]) -> tuple[int, int]:
    """The part of a sentence that is a statement: all of it, without questions and another's words at its edges.

    Of a longer one a run of clauses that begins at the last explicit subject.
    """
    clauses = sentence.clauses

    def is_own(at: int) -> bool:
        return clauses[at].foreign is None and not clauses[at].is_question

    first = last = choice.clause
    while first > choice.first and is_own(first - 1):
        first -= 1
    while last < choice.last and is_own(last + 1):
        last += 1
    if clauses[last].end - clauses[first].start > MAX_STATEMENT_LENGTH:
        first = next((at for at in range(choice.clause, first, -1) if bearers[at].explicit is not None), first)
        while first < choice.clause and clauses[choice.clause].end - clauses[first].start > MAX_STATEMENT_LENGTH:
            first += 1
        while last > choice.clause and clauses[last].end - clauses[first].start > MAX_STATEMENT_LENGTH:
            last -= 1
    while first < choice.clause and is_link(sentence.clause_text(first)):
        first += 1
    end = sentence.end if last == len(clauses) - 1 else clauses[last].end
    return clauses[first].start, min(end, clauses[first].start + MAX_STATEMENT_LENGTH)
