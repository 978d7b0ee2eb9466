"""Find a model's quote in what the user typed, and the user's own words that stand whole around it. Pure.

A model copies with small faults: another width or case, other blanks and punctuation. Only letters and digits are
compared, and what is kept is the user's text, never the model's.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sync.understanding.model import MAX_STATEMENT_LENGTH as _LONGEST
from sync.understanding.reading.segments import Clause, Sentence, read_sentences

MIN_LETTERS: Final = 2  # of a quote
MIN_SHARE: Final = 0.3  # of the letters of its clauses that a quote has, so that it is no mere keyword


@dataclass(frozen=True, slots=True)
class Passage:
    """The sentences of a quote, on one line, from their beginning on: nothing that holds for the quote is cut off.

    `is_certain`: the quote is the user's own words by their form, asks nothing, and is most of its clauses.
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


def _placed_letters(text: str) -> tuple[str, list[int]]:
    placed = [(letter, at) for at, char in enumerate(text) for letter in _folded(char)]
    return "".join(letter for letter, _ in placed), [at for _, at in placed]


def _folded(char: str) -> Iterator[str]:
    return (letter for letter in unicodedata.normalize("NFKD", char).casefold() if letter.isalnum())


def _passage_at(message: str, sentences: Sequence[Sentence], start: int, end: int, letter_count: int) -> Passage | None:
    touched = [one for one in sentences if one.start < end and start < one.end]
    clauses = [clause for one in touched for clause in one.clauses]
    quoted = [number for number, clause in enumerate(clauses) if clause.start < end and start < clause.end]
    if not quoted:
        return None
    first, last = quoted[0], quoted[-1]
    after = (number for number in range(last + 1, len(clauses)) if clauses[number].is_question)
    kept = clauses[: next(after, len(clauses))]  # not what is asked beside the statement
    text = _text(message, touched[0].start, touched[-1].end if len(kept) == len(clauses) else kept[-1].end)
    if len(text) > _LONGEST:
        text = _bounded(message, kept, first, last)
    own = clauses[first : last + 1]
    size = sum(len(letters_of(message[one.start : one.end])) for one in own)
    is_statement = not any(one.foreign or one.is_question for one in own)
    return Passage(text, is_statement and letter_count >= MIN_SHARE * size) if text else None


def _bounded(message: str, clauses: Sequence[Clause], first: int, last: int) -> str:
    """The quoted clauses with as many before them, then after them, as may stand in a statement."""
    text = _text(message, clauses[first].start, clauses[last].end)
    if len(text) > _LONGEST:
        return ""
    while first > 0 and len(wider := _text(message, clauses[first - 1].start, clauses[last].end)) <= _LONGEST:
        first, text = first - 1, wider
    while last + 1 < len(clauses):
        wider = _text(message, clauses[first].start, clauses[last + 1].end)
        if len(wider) > _LONGEST:
            break
        last, text = last + 1, wider
    return text


def _text(message: str, start: int, end: int) -> str:
    return " ".join(message[start:end].split())
