"""The lines that the block of a system prompt may have: facts, the user's own sections, recent exchanges. Pure.

Folded days summarise exchanges, and are not shown instead of them.
"""

import re
from collections.abc import Sequence
from datetime import date
from typing import Final

import msgspec

from sync.context.known_facts import KnownFacts
from sync.context.model import Importance
from sync.document.markdown.entry_ids import fact_entry_id
from sync.document.markdown.one_line import ELLIPSIS, unescape_markdown
from sync.document.markdown.template import (
    ANSWER_PREFIXES,
    EARLIER,
    PREFERENCES,
    QUESTION_PREFIXES,
    RECORDS,
    heading_title,
)
from sync.document.markdown.version_labels import parse_day
from sync.document.read.results import LoadResult
from sync.small_talk import is_small_talk
from sync.texts.language import Language
from sync.texts.prompts import PROMPTS
from sync.understanding.model import USER_SUBJECT, Fact, FactOrigin, FactStatus

LATE_ENTRIES: Final = 80  # the newest dated lines, among which the important ones are found
FACTS, OWN, LIKELY, LATE = 0, 1, 2, 3  # parts of the block, in order
NO_BEARER: Final = frozenset({USER_SUBJECT, "project", "unknown"})  # of a fact: no other person has to be named
_BULLET: Final = re.compile(r"^[ \t]*[-*+][ \t]+")


class BlockLine(msgspec.Struct, frozen=True):
    """A line that the block may have. `author`: None for the user here; `ids`: the events and entries that it shows."""

    part: int
    heading: str
    text: str
    ids: frozenset[str] = frozenset()
    author: str | None = None
    is_vital: bool = False
    is_questioned: bool = False
    weight: float = 0.0
    fact_id: str | None = None


class _Dated(msgspec.Struct, frozen=True):
    """A line below the heading of a day. `raw`: as in the document; `text`: with its author, without bullet."""

    entry_id: str
    day: date
    raw: str
    text: str
    author: str | None


def block_lines(loaded: LoadResult, facts: KnownFacts, importance: Importance) -> list[BlockLine]:
    """All lines that may be shown, those of each part in the order in which they are preferred."""
    lines: list[BlockLine] = []
    dated: list[_Dated] = []
    by_entry = {fact_entry_id(name): fact for fact in facts.facts for name in fact.statement_ids}
    own, shown = loaded.snapshot.document.entries, loaded.labelled.entries
    for at, entry_id in enumerate(loaded.snapshot.ids):
        section, text = own[at].section, " ".join(_plain(shown[at].text).split())
        author = loaded.authors[at] if loaded.authors else None
        day = next((found for title in reversed(section) if (found := parse_day(title))), None)
        if day is not None:
            dated.append(_Dated(entry_id, day, own[at].text, text, author))
        elif section[:1] == (PREFERENCES,):
            lines.append(_fact_line(entry_id, text, author, by_entry.get(entry_id), facts, loaded.language))
        elif section[:2] != EARLIER:
            lines.append(BlockLine(OWN, shown[at].section[-1] if section else "", text, frozenset((entry_id,)), author))
    dated.sort(key=lambda one: one.day, reverse=True)
    late = _late_lines(dated[:LATE_ENTRIES], facts, importance, loaded.language)
    return [*lines, *_candidate_lines(facts, loaded.language), *late]


def _plain(text: str) -> str:
    return unescape_markdown(_BULLET.sub("", text, count=1))


def _fact_line(
    entry_id: str, text: str, author: str | None, fact: Fact | None, facts: KnownFacts, language: Language
) -> BlockLine:
    """A preference; of a fact with its month, whom it is about, and what questions it."""
    heading = heading_title((PREFERENCES,), language)
    if fact is None:
        return BlockLine(FACTS, heading, text, frozenset((entry_id,)), author)
    notes = [fact.valid_from[:7]]
    notes += [PROMPTS[language].until.format(fact.valid_until[:10])] if fact.valid_until is not None else []
    notes += [fact.about] if fact.about not in NO_BEARER and fact.about not in text else []
    notes += [PROMPTS[language].outdated_part.format(fact.outdated_part)] if fact.outdated_part is not None else []
    newer = facts.newer(fact)
    notes += [PROMPTS[language].doubt.format(newer.valid_from[:10], newer.statement)] if newer is not None else []
    dated = PROMPTS[language].beside.format(text, PROMPTS[language].comma.join(notes))
    ids = frozenset((entry_id, *fact.statement_ids))
    weight, waits = fact.importance or 0.0, fact.waits
    return BlockLine(FACTS, heading, dated, ids, author, fact.is_vital, waits, weight, fact.fact_id)


def _candidate_lines(facts: KnownFacts, language: Language) -> list[BlockLine]:
    """What the user said here that may be a fact: quoted with its day, the important first, then the newest."""
    waiting = [
        fact for fact in facts.facts if fact.status is FactStatus.CANDIDATE and fact.origin is FactOrigin.USER_STATED
    ]
    shown = {fact.questioned_by for fact in facts.facts if fact.waits and fact.status is not FactStatus.RETRACTED}
    waiting = [fact for fact in waiting if fact.fact_id not in shown]  # it stands beside what it questions
    waiting.sort(key=lambda fact: (fact.importance or 0.0, fact.valid_from), reverse=True)
    heading, texts = heading_title((RECORDS,), language), PROMPTS[language]

    def quoted(fact: Fact) -> str:
        newer = facts.newer(fact)
        doubt = "" if newer is None else texts.questioned.format(day=newer.valid_from[:10], text=newer.statement)
        return f"{fact.valid_from[:10]} {texts.authors['user']}{texts.candidate}{texts.colon}“{fact.statement}”{doubt}"

    return [
        BlockLine(LIKELY, heading, quoted(fact), frozenset(fact.statement_ids), fact_id=fact.fact_id)
        for fact in waiting
    ]


def _late_lines(
    dated: Sequence[_Dated], facts: KnownFacts, importance: Importance, language: Language
) -> list[BlockLine]:
    """Recent exchanges, the more important first, then the newest. An answer keeps its question."""
    lines: list[BlockLine] = []
    for at, one in enumerate(dated):
        if one.raw.startswith(ANSWER_PREFIXES) and at and _is_pair(dated[at - 1], one):
            continue
        after = dated[at + 1] if at + 1 < len(dated) else one
        answer = _side(after.raw) if _is_pair(one, after) else ""
        answer = "" if is_small_talk(answer) else answer
        question, event_id = _side(one.raw), one.entry_id.removesuffix(".q")
        if is_small_talk(question) or facts.only_states_facts(event_id, question) or event_id in facts.outdated_texts:
            continue
        text = f"{one.day.isoformat()} {one.text}" + (PROMPTS[language].answered + answer if answer else "")
        ids = frozenset() if ELLIPSIS in text else frozenset((event_id, one.entry_id))  # a longer form may be given
        heading, weight = heading_title((RECORDS,), language), importance(question)
        lines.append(BlockLine(LATE, heading, text, ids, one.author, weight=weight))
    return sorted(lines, key=lambda line: -round(line.weight, 1))


def _is_pair(asked: _Dated, answer: _Dated) -> bool:
    """Whether a line is the answer to the line before it."""
    is_answer = asked.raw.startswith(QUESTION_PREFIXES) and answer.raw.startswith(ANSWER_PREFIXES)
    return is_answer and (asked.day, asked.author) == (answer.day, answer.author)


def _side(raw: str) -> str:
    """A side of an exchange, without bullet and speaker."""
    prefixes = (*QUESTION_PREFIXES, *ANSWER_PREFIXES)
    text = next((raw[len(prefix) :] for prefix in prefixes if raw.startswith(prefix)), _plain(raw))
    return " ".join(text.split())
