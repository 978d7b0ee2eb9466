"""Read the forms that are certain in a clause: lasting instructions, allergies, illness, name, home, age. Pure.

The forms are data (`rules.toml`), judged by class on labelled messages. One engine reads both languages.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final

import msgspec

from sync.understanding.model import REMEMBER, UNKNOWN_BEARER, USER_SUBJECT, FactKind, FactSection
from sync.understanding.reading import bearers
from sync.understanding.reading.introductions import asks
from sync.understanding.reading.segments import Sentence, has_chinese

# Forms that describe other people as often as the user.
BEARERS_CLASSES: Final = frozenset(
    {"allergy", "diet", "illness", "medicine", "home", "employer", "job", "age", "taste", "tool", "have"}
)
MAX_CLAUSE: Final = 160  # characters; of a longer clause only the beginning is read
_BEFORE: Final = 30  # characters of the sentence before a clause, searched for a guard
_AFTER: Final = 8  # characters behind a sentence, searched for laughter
_REQUEST: Final = re.compile(
    r"(?i)\W*(?:(?:ok(?:ay)?|hey|so),? )?(?:can|could|would|will) (?:you|u)\b|(?:你|请)?(?:能不能|可不可以|能|可以)"
)
_ANYWHERE: Final = frozenset({"joked", "fiction"})  # guards that count behind a form too
_STANDING: Final = "wish"  # the class of lasting instructions
_TAG: Final = re.compile(r"(?i)[\s,，]*(?:好吗|行吗|可以吗|好不好|行不行|ok(?:ay)?)[\s?？]*$")


class CertainForm(msgspec.Struct, frozen=True):
    """A rule: what it reads in a clause, and sentences that it takes and leaves."""

    id: str
    form_class: str = msgspec.field(name="class")
    pattern: str = ""
    kind: FactKind = FactKind.KNOWLEDGE
    section: FactSection | None = None
    slot: str | None = None
    cased: bool = False
    takes: str = ""
    leaves: str = ""


class FoundForm(msgspec.Struct, frozen=True):
    """A form in a clause. `start`: the place of its object in the message; `is_doubtful`: a guard matches beside it."""

    form: CertainForm
    sentence: int
    clause: int
    start: int
    slot: str | None
    about: str
    is_doubtful: bool

    @property
    def is_wish(self) -> bool:
        """Whether the user asks to remember what follows."""
        return self.form.form_class == REMEMBER


def find_forms(message: str, sentences: Sequence[Sentence]) -> list[FoundForm]:
    """The forms in the clauses that are the user's own, in their order; of a question only instructions."""
    found: list[FoundForm] = []
    about = bearers.clause_bearers(sentences)
    for number, sentence in enumerate(sentences):
        for place, clause in enumerate(sentence.clauses):
            if clause.foreign is None:
                forms = list(_read_clause(message, sentence, number, place, about[number][place]))
                if clause.is_question:
                    text = sentence.clause_text(place)
                    asked = {REMEMBER} if _is_wish(text) else set()
                    asked |= {_STANDING} if _is_tagged(text) else set()
                    forms = [one for one in forms if one.form.form_class in asked]
                found += forms
    return found


def _is_wish(clause: str) -> bool:
    """Whether a question is a request, and what it asks for is none: can you remember X, 能不能记一下X."""
    request = _REQUEST.match(clause)
    return request is not None and not asks(clause[request.end() :].rstrip("?？吗 "))


def _is_tagged(clause: str) -> bool:
    """Whether a question only asks for consent to what it says: 以后都用中文，好吗？"""
    rest, count = _TAG.subn("", clause)
    return count > 0 and not asks(rest)


@cache
def certain_forms() -> tuple[CertainForm, ...]:
    """All rules."""
    return tuple(msgspec.convert(_data()["rule"], type=tuple[CertainForm, ...]))


def _read_clause(
    message: str, sentence: Sentence, number: int, place: int, bearer: bearers.ClauseBearer
) -> Iterator[FoundForm]:
    clause, text = sentence.clauses[place], sentence.clause_text(place)[:MAX_CLAUSE]
    for form, pattern in _compiled(has_chinese(text))[0]:
        if (match := pattern.search(text)) is None:
            continue
        about = USER_SUBJECT
        if form.form_class in BEARERS_CLASSES:
            about = (
                bearer.explicit
                or bearers.explicit_bearer(match[0], bearer.antecedent)
                or bearers.bearer_before(text[: match.start()], bearer.carried, bearer.antecedent)
            )
        elif form.form_class == "family":
            about = bearers.relation_of(_object(match) or "") or bearer.about
        is_doubtful = about == UNKNOWN_BEARER or is_guarded(message, sentence, place)
        start = clause.start + (match.start("o") if form.form_class == REMEMBER else match.start())
        yield FoundForm(form, number, place, start, _slot(form, match), about, is_doubtful)


def is_guarded(message: str, sentence: Sentence, place: int) -> bool:
    """Whether the text before or in a clause takes its certainty: supposed, past, reported, joked and the like."""
    clause = sentence.clauses[place]
    scope = message[max(sentence.start, clause.start - _BEFORE) : clause.end]
    whole = message[sentence.start : sentence.end + _AFTER]
    return any(
        pattern.search(whole if name in _ANYWHERE else scope)
        for name, pattern in _compiled(has_chinese(scope))[1].items()
    )


def _slot(form: CertainForm, match: re.Match[str]) -> str | None:
    if form.slot is None or "{o}" not in form.slot:
        return form.slot
    thing = _object(match)
    return form.slot.format(o=thing.lower()) if thing else form.slot.removesuffix(".{o}")


def _object(match: re.Match[str]) -> str | None:
    """What a form names: its group `o`, else `p`."""
    groups = match.groupdict()
    named = groups.get("o") or groups.get("p")
    return named.strip() if named else None


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("rules.toml").read_text("utf-8"))


@cache
def _compiled(is_chinese: bool) -> tuple[list[tuple[CertainForm, re.Pattern[str]]], dict[str, re.Pattern[str]]]:
    """The rules of a language, and its guards."""
    language, relation = "zh" if is_chinese else "en", bearers.relation_pattern()
    rules = [
        (one, re.compile(("" if one.cased else "(?i)") + one.pattern.replace("{relation}", relation)))
        for one in certain_forms()
        if one.id.startswith(language)
    ]
    return rules, {name: re.compile(f"(?i){text}") for name, text in _data()["guards"][language].items()}
