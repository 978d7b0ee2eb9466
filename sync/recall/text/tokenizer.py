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

MAX_TERM_CHARS: Final = 64  # characters of one term; what is longer is a blob that nobody types again
MAX_TEXT_CHARS: Final = 20_000  # characters of one item that are indexed
MAX_UNCUT_RUN: Final = 3  # a run this short is a word that somebody typed: its function words stay

_SIMPLIFIED: Final = str.maketrans(SIMPLIFIED)
_FULL_WIDTH: Final = re.compile("[\uff01-\uff5e]")  # the full-width forms of !..~, most of what NFKC changes in Chinese
_FULL_WIDTH_OFFSET: Final = 0xFEE0

_UNSPACED: Final = (
    "\u0e00-\u0e7f\u3005\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
_LETTER: Final = rf"[^\W{_UNSPACED}]"
_RUNS: Final = re.compile(rf"([{_UNSPACED}]+)|({_LETTER}(?:(?:{_LETTER}|[./#+@:\-])*{_LETTER})?(?:\+\+|#)?)")
_PARTS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")


class TermKind(Enum):
    """What a term is made of."""

    PAIR = "pair"
    SINGLE = "single"
    WORD = "word"
    PART = "part"  # of an identifier that is a term itself


class Term(NamedTuple):
    text: str
    kind: TermKind


def normalise(text: str) -> str:
    """One spelling for what a person takes for the same text; case stays, because it divides identifiers."""
    narrow = _FULL_WIDTH.sub(lambda wide: chr(ord(wide[0]) - _FULL_WIDTH_OFFSET), text[:MAX_TEXT_CHARS])
    plain = unicodedata.normalize("NFKC", narrow)
    return plain if plain.isascii() or SIMPLIFIED.keys().isdisjoint(plain) else plain.translate(_SIMPLIFIED)


def tokenize(text: str) -> Iterator[Term]:
    """Every term of a text, in order, with repetitions: what the index holds."""
    for dense, word in _runs(normalise(text)):
        yield from _unspaced_terms(dense) if dense else _word_terms(word)


def index_terms(text: str) -> list[str]:
    """The texts of `terms` in any order: what is indexed, thrice as fast as with a `Term` for each."""
    found: list[str] = []
    for dense, word in _runs(normalise(text)):
        if dense:
            found += dense
            found += map(add, dense, dense[1:])
        else:
            found += _word_forms(word)
    return found


def content_terms(text: str) -> list[Term]:
    """The terms of a query without its function words; all of them where it has no others."""
    found: list[Term] = []
    for dense, word in _runs(normalise(text)):
        if dense:
            found += _content_pieces(dense)
        elif word.lower() not in ENGLISH_STOP_WORDS:
            found += _word_terms(word)
    return found or list(tokenize(text))


def _runs(text: str) -> list[tuple[str, str]]:
    """What stands together, each a run of a script without spaces or a word; the other of the two is empty."""
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
    """A word, or an identifier and its parts, as they are kept."""
    whole = run.lower()[:MAX_TERM_CHARS]
    parts = _PARTS.findall(run)
    if len(parts) < 2:
        return [stem(whole)]
    return [whole, *[stem(part.lower()[:MAX_TERM_CHARS]) for part in parts]]
