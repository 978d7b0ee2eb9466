"""Compare statements by their words: the same statement, and the content words that two statements may share."""

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Final

from sync.understanding.model import USER_SUBJECT, Statement

_MAX_COMMON: Final = 64  # facts that may share a word that still tells them apart
_LATIN_WORD: Final = re.compile(r"[a-z0-9][a-z0-9+#.'_-]*")
_CJK_RUN: Final = re.compile(r"[\u3400-\u9fff]+")
# Characters of the form, not of the content: pronouns, particles, negations, adverbs.
_FUNCTION_CHARACTERS: Final = frozenset(
    "我你您他她它们咱俺的地得了着过是在不没也都就和与跟这那吗呢吧啊呀哦哈嘛啦把被很太最更现已"
)
_FUNCTION_WORDS: Final = frozenset(
    re.findall(
        r"\S+",
        """
        i i'm im i've i'd i'll my me we we're our us you your it it's its he she they he's she's his her their
        a an the is are am was were be been do does did don't not no never now to of in on at for from by with and or
        but so as that this these those have has had use using used get got all any more less one some can can't will
        won't would please just only also than then too very really anymore longer instead still again
        name like likes love loves prefer prefers enjoy enjoys hate hates dislike want wants
        """,
    )
)
# That something is liked is no content: "我喜欢跑步" and "我现在喜欢茶" share nothing.
_TASTE_VERBS: Final = re.compile(
    r"(?:喜欢|喜爱|热爱|偏爱|偏好|讨厌|想要|习惯)(?:([\u3400-\u9fff])(?=[了的吧啊呀]|\W|$))?"
)
# How much of a thing stands between the verb and the thing: 喝一点酒.
_AMOUNT: Final = re.compile("一点儿?|一些|[一几两半][杯口瓶根支]|(?<=[吃喝抽用])点")
_CLAUSE_END: Final = re.compile(r"[，,；;。.!！]\s*|\s+(?:and|but)\s+")
_LATIN_NAME: Final = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")
_CJK_NAME: Final = re.compile(r"叫做?([\u3400-\u9fff]{2,3})")
_MONTHS: Final = "jan|feb|mar|apr|may|ju[nl]|aug|sep|oct|nov|dec"
_VALUES: Final = {
    "date": re.compile(rf"(?i)[\d一二三四五六七八九十]\s*[月号]|\d(?:st|nd|rd|th)\b|\d (?:{_MONTHS})"),
    "day": re.compile(r"(?i)(?:周|星期)[一二三四五六日天]|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"),
    "time": re.compile(r"(?i)\d[:：]\d\d|[\d一二三四五六七八九十]点|\d ?[ap]m\b|o'clock"),
    "number": re.compile(r"\d\d"),
}
_TOPICS: Final = {"location": "home", "role": "work", "job": "work", "employer": "work"}
_LIST_MARK: Final = re.compile(r"(\s*(?:和|、|以及|还有|&|\+)\s*|\s+(?:and|plus)\s+)")
_PARTICLES: Final = re.compile(r"[我啊呀吧呢哈嘛哦了的]")


def statement_key(text: str) -> str:
    """The letters and digits of a statement in their order: spaces, punctuation and particles do not count."""
    letters = letters_of(text)
    return _PARTICLES.sub("", letters) or letters


@lru_cache(maxsize=16_384)
def content_of(text: str) -> frozenset[str]:
    """The content words of Latin text, the pairs of neighbouring content characters of Chinese."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    found = {_stem(word.rstrip(".'-_")) for word in _LATIN_WORD.findall(folded) if word not in _FUNCTION_WORDS}
    found |= set(_TASTE_VERBS.findall(folded)) - {""}  # 我喜欢茶: a word of one character
    for run in _CJK_RUN.findall(_AMOUNT.sub("", _TASTE_VERBS.sub(" ", folded))):
        found |= {run[at : at + 2] for at in range(len(run) - 1) if not _FUNCTION_CHARACTERS & set(run[at : at + 2])}
    return frozenset(found)


@lru_cache(maxsize=16_384)
def names_in(text: str) -> frozenset[str]:
    """The names that a text introduces: 他叫沈昊, my son Kabir."""
    found = {_stem(word.casefold()) for word in _LATIN_NAME.findall(text)} - _FUNCTION_WORDS
    return frozenset(found | {name[at : at + 2] for name in _CJK_NAME.findall(text) for at in range(len(name) - 1)})


@lru_cache(maxsize=16_384)
def values_in(text: str) -> frozenset[str]:
    """The kinds of values that a text gives: a date, a number."""
    return frozenset(kind for kind, pattern in _VALUES.items() if pattern.search(text))


def _stem(word: str) -> str:
    """A Latin word without the mark of a plural or an owner."""
    word = word.removesuffix("'s")
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def bearer_of(statement: Statement) -> str:
    """Whom or what a statement is about; of one without a reader, the relative whom its text begins with."""
    if statement.reader or statement.about != USER_SUBJECT:
        return statement.about
    return _relative_in(statement.text)


@lru_cache(maxsize=16_384)
def _relative_in(text: str) -> str:
    from sync.understanding.reading.bearers import explicit_bearer  # noqa: PLC0415 - only events of before need it

    return explicit_bearer(text) or USER_SUBJECT


def topic_of(statement: Statement) -> str | None:
    """The topic of a statement: its slot, where slots of one topic have one name."""
    return _TOPICS.get(statement.slot or "", statement.slot)


def is_contained(older: Statement, newer: Statement) -> bool:
    """Whether a newer statement says all that an older one says, and the topics do not differ."""
    if older.is_negative != newer.is_negative or (older.slot is not None and newer.slot not in (None, older.slot)):
        return False
    content, letters, newer_letters = content_of(older.text), letters_of(older.text), letters_of(newer.text)
    if letters == newer_letters:
        return True
    if not content <= content_of(newer.text) or len(letters) >= len(newer_letters):
        return False
    return len(content) > 1 or (len(content) == 1 and letters in newer_letters)


def has_other_clauses(older: str, newer: str) -> bool:
    """Whether a sentence says something beside the clause that a newer one is about, and which that does not say."""
    said = content_of(newer)
    clauses = [content for clause in _CLAUSE_END.split(older) if (content := content_of(clause))]
    if clauses:
        clauses.remove(max(clauses, key=lambda content: len(content & said)))
    return any(not content <= said for content in clauses)


def without_part(text: str, part: str) -> str | None:
    """What a statement that lists several things says without one of them; None if it does not list it.

    用 Mac 和 VS Code without VS Code is 用 Mac.
    """
    items = _LIST_MARK.split(text)
    wanted = part.strip().casefold()
    at = [number for number, item in enumerate(items[::2]) if wanted and item.strip().casefold().endswith(wanted)]
    if len(items) < 3 or len(at) != 1:
        return None
    number = 2 * at[0]
    head = items[number].rstrip()[: len(items[number].rstrip()) - len(wanted)]
    if number and head.strip():
        return None  # more than the thing itself
    rest = [head, *items[2:]] if number == 0 else [*items[: number - 1], *items[number + 1 :]]
    return "".join(rest).strip()


def letters_of(text: str) -> str:
    """The letters and digits of a text."""
    return "".join(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum())


class CurrentFacts:
    """Facts by what a new statement asks of them: their slot, and the content words that they have.

    Thousands of statements are applied one by one, so none of them may look at all others.
    """

    def __init__(self) -> None:
        self._keys: dict[str, list[tuple[str, str, str]]] = {}
        self._by_key: dict[tuple[str, str, str], set[str]] = {}

    def add(self, fact_id: str, subject: str, statement: Statement) -> None:
        """Add a fact, or replace its statement."""
        self.remove(fact_id)
        self._keys[fact_id] = _keys(subject, statement)
        for key in self._keys[fact_id]:
            self._by_key.setdefault(key, set()).add(fact_id)

    def remove(self, fact_id: str) -> None:
        """Remove a fact, if it is there."""
        for key in self._keys.pop(fact_id, ()):
            self._by_key[key].discard(fact_id)

    def sharing(self, subject: str, statement: Statement) -> Counter[str]:
        """The facts that share content or a slot with a statement, and how much.

        What more than `_MAX_COMMON` of these facts have tells none of them apart, and is not looked up.
        """
        having = (self._by_key.get(key, set()) for key in _keys(subject, statement, statement.former or ""))
        return Counter(name for names in having if len(names) <= _MAX_COMMON for name in names)


def _keys(subject: str, statement: Statement, former: str = "") -> list[tuple[str, str, str]]:
    words = [(subject, "word", word) for word in content_of(statement.text) | content_of(former)]
    words += [(subject, "value", kind) for kind in values_in(statement.text)]
    topic = topic_of(statement)
    return words if topic is None else [*words, (subject, "topic", topic)]
