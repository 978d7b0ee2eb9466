"""A message or a search → what is looked for. Pure.

Decisions
    A quoted phrase must stand in the answer. Days in words become a filter where the question is short; in a longer
    message they are part of a story, and a date written out may stand in the text itself: these only prefer
    (`Wanted.is_preference`). A filter that leaves nothing is dropped by the search: what was yesterday is often written
    down today.
    A message of nothing but pointing words (继续, 改一下, "do it") is answered from the turns before it.
    What is said last counts most only by being said again: nothing is guessed about the order of a dialogue.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final

from sync.clock import Clock, to_unix_ms
from sync.recall.ranking.bm25 import term_weights
from sync.recall.text.date_expressions import DateSpan, find_date_span
from sync.recall.text.tokenizer import content_terms, normalise, tokenize

MAX_QUERY_CHARS: Final = 8_000  # characters that are looked at, the last ones: a dialogue ends with what it is about
MAX_TERMS: Final = 192  # different terms of one query, those that weigh most
SHORT_QUERY_TERMS: Final = 24  # telling terms of a query whose day in words is a filter
CONTEXT_TURNS: Final = 3

_QUOTED: Final = re.compile(
    r"(?<![:：] )(?<![:：])(?:\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|「([^」\n]{2,80})」|『([^』\n]{2,80})』)"
)
_DEICTIC_CHINESE: Final = re.compile(
    r"(?:继续|接着|改一?下|改改|再来(?:一[次个遍])?|重来|重做|换一?个|换一?下|好的?|可以|行|对|是的|就这样|这样|那样|这个|那个|它|他|她|呢|吧|吗|啊"
    r"|一下|刚才|上面|前面|为什么|然后|还有|说|讲|详细|具体|下去|做|点|请|帮我|的|了|把|给我|看看|再)*",
)
_DEICTIC_ENGLISH: Final = frozenset(
    """
go on continue do it again that this those these them fix change more and then why ok okay yes please next same
one try explain redo undo again keep going so what about how the a
""".split()
)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """What a query looks for: terms with their weights, phrases that must stand there, a span of time.

    `prefers`: items of that span count more, others count too. `text` is what a vector is made of.
    """

    text: str
    terms: dict[str, float]
    phrases: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    is_preference: bool = False


def parse_query(query: str, turns: Sequence[str], clock: Clock) -> ParsedQuery:
    """`turns`: what was said before, oldest first. Days are those of the clock's zone."""
    text = query[-MAX_QUERY_CHARS:]
    if turns and is_context_dependent(text):
        text = "\n".join(turns[-CONTEXT_TURNS:])[-MAX_QUERY_CHARS:]
    phrases = _quoted_phrases(text)
    span = find_date_span(text, clock.now().date())
    rest = text if span is None or span.is_calendar_date else f"{text[: span.start]} {text[span.end :]}"
    asked = content_terms(rest) if rest.strip() else list(tokenize(text))
    weighed = term_weights(asked)
    heaviest = sorted(weighed, key=lambda term: -weighed[term])[:MAX_TERMS]
    kept = {term: weighed[term] for term in heaviest}
    if span is None:
        return ParsedQuery(text, kept, phrases)
    filters = not span.is_calendar_date and "\n" not in text.strip() and len(kept) <= SHORT_QUERY_TERMS
    return ParsedQuery(text, kept, phrases, *_time_bounds(span, clock), not filters)


def is_context_dependent(text: str) -> bool:
    """Whether a message says nothing by itself."""
    said = normalise(text).lower()
    words = re.findall(r"[a-z']+", said)
    rest = re.sub(r"[a-z'\W\d_]+", "", said)
    return _DEICTIC_CHINESE.fullmatch(rest) is not None and all(word in _DEICTIC_ENGLISH for word in words)


def matches_phrases(text: str, phrases: Sequence[str]) -> bool:
    if not phrases:
        return True
    said = normalise(text).lower()
    return all(phrase in said for phrase in phrases)


def _quoted_phrases(text: str) -> tuple[str, ...]:
    """What a question puts in quotation marks; in a dialogue, and after a colon, they are those of speech."""
    if "\n" in text.strip():
        return ()
    found = (next(filter(None, groups)) for groups in _QUOTED.findall(text))
    return tuple(normalise(phrase).lower().strip() for phrase in found if phrase.strip())


def _time_bounds(span: DateSpan, clock: Clock) -> tuple[int | None, int | None]:
    """From the first midnight up to the one behind the last day; without one that the calendar does not have."""
    after = None if span.last == date.max else _midnight(span.last + timedelta(1), clock)
    return _midnight(span.first, clock), after


def _midnight(day: date, clock: Clock) -> int | None:
    try:
        return to_unix_ms(clock.local(datetime.combine(day, time())))
    except OverflowError:
        return None
