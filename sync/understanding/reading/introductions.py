"""Find the beginning of another's words in a sentence, and whether it asks. By forms and word lists. Pure."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any, Final, Literal

Reason = Literal["introduced", "worked on"]

_DATA: Final[Mapping[str, Any]] = tomllib.loads(
    resources.files(__package__).joinpath("introductions.toml").read_text("utf-8")
)
_PATTERNS: Final = {name: re.compile(text) for name, text in _DATA["patterns"].items()}
_COLON: Final = re.compile(r"[:：](?!//|\d|[)(DPpo/\\-])|(?<=\s)[-–—→👉]{1,2}(?=\s)|→|👉|——")
_FIRST_PERSON: Final = re.compile(r"(?i)我|咱|俺|本人|\b(?:i|i'm|im|i've|i'd|my|we|we're|our)\b")
_DIRECT_SPEECH: Final = re.compile(r"^[^我咱]{1,24}(?:说|写道|表示|回|讲)[，,]\s*(?=我|咱|俺)")
_SAID_FOR: Final = re.compile(r"(?:就说|就写|你就回|回他说|回她说)(?!明)")
_ENGLISH_WORD: Final = re.compile(r"[a-z][a-z'.-]*", re.IGNORECASE)
_LONGEST_HEAD: Final = 160  # characters; what comes later in a sentence introduces nothing
_SHORT_HEAD: Final = 12  # characters of Chinese, and twice as many of English, before a colon: a name


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(_DATA[name].split())


@cache
def _any_of(name: str) -> re.Pattern[str]:
    text = "|".join(sorted(map(re.escape, _words(name)), key=len, reverse=True))
    return re.compile(rf"(?i)\b(?:{text})\b" if name.endswith("_en") else text)


def asks(text: str) -> bool:
    """Whether a sentence or clause is a question."""
    return _PATTERNS["asks"].search(text) is not None


def asks_about_a_statement(text: str) -> bool:
    """Whether a sentence asks if what was said is right or safe, or what it means."""
    return _PATTERNS["asks_about"].search(text) is not None


def speaks_as_an_agent(message: str) -> bool:
    """Whether a message speaks to or of an assistant as programs and prompts do."""
    return _PATTERNS["agent"].search(message) is not None


def introduction(sentence: str) -> tuple[int, Reason] | None:
    """Where the words of another begin in a sentence, and why; at its end if they follow it. None if none are named."""
    for colon in islice(_COLON.finditer(sentence, 0, _LONGEST_HEAD), 3):
        if (reason := _reason_of_head(sentence[: colon.start()], sentence[colon.end() :], colon[0])) is not None:
            return colon.end(), reason
    if (said := _DIRECT_SPEECH.match(sentence)) is not None:
        return said.end(), "introduced"
    if (carried := _carried(sentence)) is not None:
        return carried, "introduced"
    if (said_for := _SAID_FOR.search(sentence)) is not None:
        return said_for.start(), "introduced"
    work = _working(sentence)
    if work is not None:
        return (len(sentence) if _PATTERNS["next_text"].search(sentence) else work), "worked on"
    return None


def _reason_of_head(head: str, rest: str, mark: str) -> Reason | None:
    """What the words before a colon say of those after it."""
    if _working(head) is not None:
        return "worked on"
    if mark not in ":：":
        return "introduced" if _named(head) and _FIRST_PERSON.search(rest) else None
    last = re.split(r"[，,。;；]", head)[-1]
    if is_own_head(last):
        return None
    if _named(last) or _says(last):
        return "introduced"
    is_short = len(head) <= (_SHORT_HEAD if not head.isascii() else 2 * _SHORT_HEAD)
    return "introduced" if is_short and _FIRST_PERSON.search(rest) else None


def is_own_head(head: str) -> bool:
    """Whether the words before a colon are those of a note of the sender."""
    words = {word.lower() for word in _ENGLISH_WORD.findall(head)}
    chinese = _any_of("own_heads_zh").search(head) is not None and not _says(head) and not _named(head)
    return (bool(words & _words("own_heads_en")) and not _says(head)) or chinese


def _named(head: str) -> bool:
    return any(_any_of(f"carriers_{language}").search(head) for language in ("zh", "en"))


def _says(head: str) -> bool:
    """Whether a head ends with a verb of saying whose subject is another."""
    text = head.strip()
    if re.search(
        r"(?i)(?:^|[\s，,])(?:我|我们|i|we)(?:[想再先来也只]|just|will|'d)?\s?(?:说|讲|问|say|said|ask)\S{0,2}$", text
    ):
        return False
    words = _ENGLISH_WORD.findall(text)
    return text.endswith(tuple(_words("saying_zh"))) or (bool(words) and words[-1].lower() in _words("saying_en"))


def _carried(sentence: str) -> int | None:
    """Where the words begin that a carrier at the beginning says: 置顶写着…, the lyrics go …."""
    if (adjacent := _adjacent().match(sentence)) is not None:
        return adjacent.end()
    for language in ("zh", "en"):
        carriers, verbs = _any_of(f"carriers_{language}"), _any_of(f"saying_{language}")
        carrier = carriers.search(sentence, 0, _LONGEST_HEAD)
        if carrier is None or _FIRST_PERSON.search(sentence[: carrier.start()]):
            continue
        verb = verbs.search(sentence, carrier.end(), min(carrier.end() + 16, len(sentence)))
        if verb is not None and not _FIRST_PERSON.search(sentence[carrier.end() : verb.start()]):
            return verb.end()
        if language == "zh" and (gap := re.match(r"\S{0,4}\s+(?=我|咱|俺)", sentence[carrier.end() :])) is not None:
            return carrier.end() + gap.end()
    return None


@cache
def _adjacent() -> re.Pattern[str]:
    """A carrier and its words without a verb between them: podcast transcript I moved …."""
    return re.compile(
        r"(?i)\W*(?!(?:the|my|our|this|that|a|an|your|in|on|for|if)\b)(?:[\w'-]+ ){0,2}"
        rf"{_any_of('carriers_en').pattern.removeprefix('(?i)')} (?=(?:i|i'm|i've|we)\b)"
    )


def _working(text: str) -> int | None:
    """Where the words begin that a request to work on a text takes."""
    begin = _PATTERNS["request"].match(text)
    start = begin.end() if begin is not None else 0
    for language, most in (("zh", 8), ("en", 0)):
        verb = _any_of(f"working_{language}").search(text, start)
        if verb is not None and verb.start() <= start + most and not _FIRST_PERSON.search(text[start : verb.start()]):
            return verb.end()
    return None


def speaks_of_self(text: str) -> bool:
    """Whether a text has a first person."""
    return _FIRST_PERSON.search(text) is not None


def points_at_a_text(line: str) -> bool:
    """Whether a line asks, or asks for, something about a text that follows it."""
    is_request = asks(line) or _PATTERNS["asks_for"].search(line) is not None
    points = _PATTERNS["points_at"].search(line) is not None
    return is_request and points and not speaks_of_self(line.replace("帮我", ""))


def names_another(message: str) -> bool:
    """Whether a message names a text of others, or a work on one, anywhere."""
    return any(
        _any_of(f"{table}_{language}").search(message) for table in ("carriers", "working") for language in ("zh", "en")
    )
