"""Text → terms, by the same rules for the index and for queries. Pure.

Scripts without spaces (Chinese, kana, Hangul, Thai) become pairs of characters and single ones: no dictionary has to
know a word. Identifiers are terms as a whole and in parts: `fetchUserById`, `retry_count`, `src/app.py`, `E1001`.
Full-width forms, case and traditional characters are folded.
"""

import re
import unicodedata
from collections.abc import Iterator
from enum import Enum
from operator import add
from typing import Final, NamedTuple

from sync.recall.text.stemming import CHINESE_STOP_WORDS, ENGLISH_STOP_WORDS, stem
from sync.recall.text.traditional_characters import SIMPLIFIED

MAX_TERM_CHARS: Final = 64
MAX_TEXT_CHARS: Final = 20_000  # of one item
MAX_UNCUT_RUN: Final = 3  # a run this short is one word: its function characters stay

_SIMPLIFIED: Final = str.maketrans(SIMPLIFIED)
_FULL_WIDTH: Final = re.compile("[\uff01-\uff5e]")  # of !..~; most texts need no more folding than this
_FULL_WIDTH_OFFSET: Final = 0xFEE0

_UNSPACED: Final = (
    "\u0e00-\u0e7f\u3005\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
_LETTER: Final = rf"[^\W{_UNSPACED}]"
_RUNS: Final = re.compile(rf"([{_UNSPACED}]+)|({_LETTER}(?:(?:{_LETTER}|[./#+@:\-])*{_LETTER})?(?:\+\+|#)?)")
_PARTS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
_NUMBERED: Final = re.compile(r"[a-zA-Z]{2,}(?=\d)")  # a name before its number: PostgreSQL16


class TermKind(Enum):
    """The form of a term, which decides its weight."""

    PAIR = "pair"
    SINGLE = "single"
    WORD = "word"
    PART = "part"  # of an identifier that is a term itself


class Term(NamedTuple):
    text: str
    kind: TermKind


def normalise(text: str) -> str:
    """Fold width, compatibility forms and traditional characters; case stays, because it divides identifiers."""
    narrow = _FULL_WIDTH.sub(lambda wide: chr(ord(wide[0]) - _FULL_WIDTH_OFFSET), text[:MAX_TEXT_CHARS])
    plain = unicodedata.normalize("NFKC", narrow)
    return plain if plain.isascii() or SIMPLIFIED.keys().isdisjoint(plain) else plain.translate(_SIMPLIFIED)


def tokenize(text: str) -> Iterator[Term]:
    """All terms of a text, in order, with repetitions."""
    for dense, word in _runs(normalise(text)):
        yield from _unspaced_terms(dense) if dense else _word_terms(word)


def index_terms(text: str) -> list[str]:
    """The texts of `tokenize` in any order, three times as fast."""
    terms: list[str] = []
    for dense, word in _runs(normalise(text)):
        if dense:
            terms += dense
            terms += map(add, dense, dense[1:])
        else:
            terms += _word_forms(word)
    return terms


def content_terms(text: str) -> list[Term]:
    """The terms of a query without stop words, unless it has no other terms."""
    terms: list[Term] = []
    for dense, word in _runs(normalise(text)):
        if dense:
            terms += _content_pieces(dense)
        elif word.lower() not in ENGLISH_STOP_WORDS:
            terms += _word_terms(word)
    return terms or list(tokenize(text))


def dense_runs(text: str) -> list[str]:
    """The runs of scripts without spaces in a text."""
    return [dense for dense, _ in _runs(normalise(text)) if dense]


def _runs(text: str) -> list[tuple[str, str]]:
    """Pairs of which one is empty: a run of a script without spaces, or a word."""
    return _RUNS.findall(text)


def _unspaced_terms(text: str) -> Iterator[Term]:
    for at, character in enumerate(text):
        if at:
            yield Term(text[at - 1 : at + 1], TermKind.PAIR)
        yield Term(character, TermKind.SINGLE)


def _content_pieces(run: str) -> Iterator[Term]:
    pieces = [piece for piece in CHINESE_STOP_WORDS.split(run) if piece]
    if len(run) <= MAX_UNCUT_RUN and pieces:
        pieces = [run]
    for piece in pieces:
        yield from _unspaced_terms(piece)


def _word_terms(run: str) -> Iterator[Term]:
    whole, *parts = _word_forms(run)
    yield Term(whole, TermKind.WORD)
    for part in parts:
        yield Term(part, TermKind.PART)


def _word_forms(run: str) -> list[str]:
    """The stem of a word, or an identifier, the stems of its parts and of the letters before its numbers."""
    whole = stem(run.lower()[:MAX_TERM_CHARS])
    parts = _PARTS.findall(run)
    if len(parts) < 2:
        return [whole]
    names = [name for name in _NUMBERED.findall(run) if name not in parts]
    return [whole, *[stem(part.lower()[:MAX_TERM_CHARS]) for part in (*names, *parts)]]
