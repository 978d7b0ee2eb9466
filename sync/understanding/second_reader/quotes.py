"""Find a model's quote in what the user typed, and the user's own words that stand whole around it. Pure.

A model copies with small faults: another width or case, other blanks and punctuation. Only letters and digits are
compared, and what is kept is the user's text, never the model's.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from sync.understanding.model import MAX_STATEMENT_LENGTH
from sync.understanding.reading.segments import Clause, Sentence, read_sentences

MIN_LETTERS: Final = 2  # of a quote
MIN_SHARE: Final = 0.3  # of the letters of its clauses that a quote has, so that it is no keyword


@dataclass(frozen=True, slots=True)
class Passage:
    """The sentences of a quote, on one line: nothing that holds for it is cut off, only what is asked or another's.

    `is_certain`: the quote is the user's own words by their form, asks nothing, and is no mere keyword of its clauses.
    """

    text: str
    is_certain: bool


def find_passage(quote: str, message: str) -> Passage | None:
    """The passage of a quote; the user's own before another's. None if the message does not have these words."""
    needle, (letters, places) = letters_of(quote), _placed_letters(message)
    if len(needle) < MIN_LETTERS:
        return None
    sentences = read_sentences(message)
    found: list[Passage] = []
    at = letters.find(needle)
    while at >= 0:
        start, end = places[at], places[at + len(needle) - 1] + 1
        if (passage := _passage_at(message, sentences, start, end, len(needle))) is not None:
            found.append(passage)
        at = letters.find(needle, at + len(needle))
    return max(found, key=lambda one: one.is_certain, default=None)


def letters_of(text: str) -> str:
    """The letters and digits of a text, without width, case and accents."""
    return _placed_letters(text)[0]


@lru_cache(maxsize=256)
def _placed_letters(text: str) -> tuple[str, tuple[int, ...]]:
    folded = ((at, unicodedata.normalize("NFKD", char).casefold()) for at, char in enumerate(text))
    placed = [(letter, at) for at, letters in folded for letter in letters if letter.isalnum()]
    return "".join(letter for letter, _ in placed), tuple(at for _, at in placed)


def _passage_at(message: str, sentences: Sequence[Sentence], start: int, end: int, letter_count: int) -> Passage | None:
    touched = [one for one in sentences if one.start < end and start < one.end]
    clauses = [clause for one in touched for clause in (*one.clauses[:-1], replace(one.clauses[-1], end=one.end))]
    quoted = [number for number, clause in enumerate(clauses) if clause.start < end and start < clause.end]
    if not quoted or len(_text(message, clauses[quoted[0]], clauses[quoted[0]])) > MAX_STATEMENT_LENGTH:
        return None
    first = last = quoted[0]
    while last < quoted[-1] and len(_text(message, clauses[first], clauses[last + 1])) <= MAX_STATEMENT_LENGTH:
        last += 1
    is_own = not any(one.foreign or one.is_question for one in clauses[first : last + 1])
    size = sum(len(letters_of(_text(message, clauses[at], clauses[at]))) for at in quoted)
    is_certain = is_own and last == quoted[-1] and letter_count >= MIN_SHARE * size

    def is_wider(left: int, right: int, added: int) -> bool:
        if not 0 <= added < len(clauses) or (is_own and (clauses[added].foreign or clauses[added].is_question)):
            return False
        return len(_text(message, clauses[left], clauses[right])) <= MAX_STATEMENT_LENGTH

    while is_wider(first - 1, last, first - 1):
        first -= 1
    while is_wider(first, last + 1, last + 1):
        last += 1
    return Passage(_text(message, clauses[first], clauses[last]), is_certain)


def _text(message: str, first: Clause, last: Clause) -> str:
    return " ".join(message[first.start : last.end].split())
