"""Parse a message or a search into terms, phrases and a time span. Pure.

Hits with quoted phrases come first. Relative days in a short query put what was recorded then before the rest; in a
longer message, or written as a calendar date, they are only a preference (`is_preference`). A message of pointing words
alone (继续, "do it") is replaced by the turns before it.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Final

import msgspec

from sync.clock import Clock, to_unix_ms
from sync.recall.ranking.bm25 import KIND_WEIGHTS, term_weights
from sync.recall.text.date_expressions import DateSpan, NamedDay, find_date_span, named_days
from sync.recall.text.pinyin import pinyin_words
from sync.recall.text.tokenizer import TermKind, content_terms, normalise, tokenize

MAX_QUERY_CHARS: Final = 8_000  # the last ones: a dialogue ends with its current subject
MAX_TERMS: Final = 192  # the heaviest ones
SHORT_QUERY_TERMS: Final = 24  # up to so many terms, a day is a filter
CONTEXT_TURNS: Final = 3
MAX_PINYIN_CHARS: Final = 80  # of a query that is read as pinyin too

_SENTENCE_END: Final = re.compile(r"[。！？!?\n]+|\.(?:\s|$)")
MAX_SENTENCES: Final = 8  # of a long query that are scored apart, the last ones
_QUOTED: Final = re.compile(
    r"(?<![:：] )(?<![:：])(?:\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|「([^」\n]{2,80})」|『([^』\n]{2,80})』)"
)
_DEICTIC_CHINESE: Final = re.compile(
    r"(?:继续|接着|改一?下|改改|再来(?:一[次个遍])?|重来|重做|换一?个|换一?下|好的?|可以|行|对|是的|就这样|这样|那样|这个|那个|它|他|她|呢|吧|吗|啊"
    r"|一下|刚才|上面|前面|为什么|然后|还有|说|讲|详细|具体|下去|做|点|请|帮我|的|了|把|给我|看看|再)*"
)
_DEICTIC_ENGLISH: Final = frozenset(
    """
go on continue do it again that this those these them fix change more and then why ok okay yes please next same
one try explain redo undo again keep going so what about how the a
""".split()
)
_ANYTHING_CHINESE: Final = re.compile(
    r"(?:继续|接着|我们|咱们|我|你|都|有|是|在|干|做|说|聊|谈|讲|讨论|提到|提|记|记录|发生|忙|学|吃|见|去|过|到|了|些|什么|啥|哪些|哪里|怎么样|的|吗|呢|啊"
    r"|事情|事|内容|情况|活动|对话|聊天|工作|安排|日程|总结|回顾|一下|看看|看|给|帮|请|告诉|查|当天|那天|一天|这天|早上|上午|中午|下午|晚上|里|和|跟|号|份)*"
)
_ANYTHING_ENGLISH: Final = frozenset(
    """
a about all and any anything at chat continue day did discuss discussed discussion do doing done events
everything for from happen happened have i in it list me my notes of on our out please record recorded said say
show summarise summarize summary talk talked talking tell the things to up us was we were what what's which with
work worked working you
""".split()
)


class ParsedQuery(msgspec.Struct, frozen=True):
    """Terms with their weights, preferred phrases, and a time span.

    `is_preference`: items in the span score higher, instead of coming first. `text`: for the query's vector.
    `is_about_day`: the query is about nothing but its span, such as 昨天干了什么; `named_day`: if that is one day.
    `sentences`: the terms of each sentence of a long query.
    """

    text: str
    terms: dict[str, float]
    phrases: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    is_preference: bool = False
    is_about_day: bool = False
    named_day: NamedDay | None = None
    sentences: tuple[frozenset[str], ...] = ()


def parse_query(query: str, turns: Sequence[str], clock: Clock) -> ParsedQuery:
    """`turns`: the conversation so far, oldest first. Days are in the clock's time zone."""
    text = query[-MAX_QUERY_CHARS:]
    if turns and is_context_dependent(text):
        text = "\n".join(turns[-CONTEXT_TURNS:])[-MAX_QUERY_CHARS:]
    phrases = _quoted_phrases(text)
    span = find_date_span(text, clock.now().date())
    rest = text if span is None or span.is_calendar_date else f"{text[: span.start]} {text[span.end :]}"
    weights = term_weights(content_terms(rest) if rest.strip() else list(tokenize(text)))
    terms = {term: weights[term] for term in sorted(weights, key=lambda term: -weights[term])[:MAX_TERMS]}
    if len(text) <= MAX_PINYIN_CHARS:
        terms = _sound_alikes(text) | terms
    sentences = _sentences(text)
    if span is None:
        return ParsedQuery(text, terms, phrases, sentences=sentences)
    is_filter = not span.is_calendar_date and "\n" not in text.strip() and len(terms) <= SHORT_QUERY_TERMS
    is_about_day = not phrases and _names_no_subject(f"{text[: span.start]} {text[span.end :]}")
    day = _named_day(span, text) if is_about_day and span.first == span.last else None
    return ParsedQuery(text, terms, phrases, *_time_bounds(span, clock), not is_filter, is_about_day, day, sentences)


def is_context_dependent(text: str) -> bool:
    """Whether a message has no content of its own."""
    folded = normalise(text).lower()
    words = re.findall(r"[a-z']+", folded)
    rest = re.sub(r"[a-z'\W\d_]+", "", folded)
    return _DEICTIC_CHINESE.fullmatch(rest) is not None and all(word in _DEICTIC_ENGLISH for word in words)


def _names_no_subject(text: str) -> bool:
    """Whether a question without its date asks for everything: 我干了什么, "what did we talk about on"."""
    folded = normalise(text).lower()
    words = re.findall(r"[a-z']+", folded)
    rest = re.sub(r"[a-z'\W_]+", "", folded)
    return _ANYTHING_CHINESE.fullmatch(rest) is not None and all(word in _ANYTHING_ENGLISH for word in words)


def _sentences(text: str) -> tuple[frozenset[str], ...]:
    """The terms of each of a long query's last sentences; () of a query of one."""
    parts = [part for part in _SENTENCE_END.split(text) if part.strip()][-MAX_SENTENCES:]
    found = [frozenset(term.text for term in content_terms(part)) for part in parts] if len(parts) > 1 else []
    return tuple(sentence for sentence in found if sentence)


def _sound_alikes(text: str) -> dict[str, float]:
    """The terms of the Chinese words that a query in pinyin may mean, which share the weight of a part."""
    return {
        term.text: KIND_WEIGHTS[TermKind.PART] / len(words)
        for words in pinyin_words(text)
        for word in words
        for term in tokenize(word)
        if term.kind is TermKind.PAIR
    }


def _named_day(span: DateSpan, text: str) -> NamedDay:
    """The day of a span, without a year if the text names none."""
    day = NamedDay(span.first.year, span.first.month, span.first.day)
    yearless = day._replace(year=None)
    return yearless if yearless in named_days(text) else day


def matches_phrases(text: str, phrases: Sequence[str]) -> bool:
    if not phrases:
        return True
    folded = normalise(text).lower()
    return all(phrase in folded for phrase in phrases)


def _quoted_phrases(text: str) -> tuple[str, ...]:
    """The quoted phrases of a query. In a dialogue, or after a colon, quotation marks are those of speech."""
    if "\n" in text.strip():
        return ()
    phrases = (next(filter(None, groups)) for groups in _QUOTED.findall(text))
    return tuple(normalise(phrase).lower().strip() for phrase in phrases if phrase.strip())


def _time_bounds(span: DateSpan, clock: Clock) -> tuple[int | None, int | None]:
    """From midnight of the first day to midnight after the last; None beyond the calendar."""
    after = None if span.last == date.max else _midnight(span.last + timedelta(1), clock)
    return _midnight(span.first, clock), after


def _midnight(day: date, clock: Clock) -> int | None:
    try:
        return to_unix_ms(clock.local(datetime.combine(day, time())))
    except OverflowError:
        return None
