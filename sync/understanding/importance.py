"""Estimate how much an exchange matters, from 0 to 1: as much as the most important of its statements.

Above 0.6: what must still be in a memory a year later. Below 0.3: small talk, questions, a request for this once; the
more it looks like a statement, the higher.
"""

from collections.abc import Sequence
from typing import Final

from sync.small_talk import is_small_talk
from sync.understanding.model import Change, Statement
from sync.understanding.reading.reader import extract_statements
from sync.understanding.reading.scorer import score
from sync.understanding.reading.segments import read_sentences

BASE: Final = 0.2  # at most, of an exchange in which no statement was found
SMALL_TALK: Final = 0.05
STATED: Final = 0.4  # of a statement whose reader says nothing about it
CORRECTED: Final = 0.65  # what the user corrects matters
LEAST_STATED: Final = 0.3
MOST: Final = 0.95


def estimate_importance(user_message: str, statements: Sequence[Statement] | None = None) -> float:
    """The importance of an exchange. `statements`: those of the message if they are known already."""
    if is_small_talk(user_message):
        return SMALL_TALK
    read = extract_statements(user_message) if statements is None else statements
    return max(map(_importance_of, read)) if read else _unstated(user_message)


def _unstated(message: str) -> float:
    """The importance of a message in which no statement was found, below `LEAST_STATED`."""
    sentences = read_sentences(message)
    scores = score(message, "", sentences)
    if scores is None:
        return BASE
    own = (found for one, found in zip(sentences, scores, strict=True) if one.foreign is None and not one.is_question)
    return min(max((found.importance for found in own), default=SMALL_TALK), BASE)


def _importance_of(statement: Statement) -> float:
    value = STATED if statement.importance is None else statement.importance
    if statement.change is Change.CORRECTS:
        value = max(value, CORRECTED)
    return round(min(max(value, LEAST_STATED), MOST), 2)
