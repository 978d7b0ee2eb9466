"""The learned scorer: how sure it is of each sentence that it is the user's own and lasting. Pure.

Without weights there are no scores, and the certain forms read alone.
"""

from collections.abc import Sequence

import msgspec

from sync.understanding.model import FactKind, Level
from sync.understanding.reading.segments import Sentence


class Score(msgspec.Struct, frozen=True):
    """Calibrated probabilities of a sentence, `keep` of both, and what its best clause, number `clause`, says."""

    own: float
    lasting: float
    keep: float
    kind: FactKind = FactKind.KNOWLEDGE
    about: str = "user"
    importance: float = 0.5
    clause: int = 0


def score(_message: str, _previous: str, _sentences: Sequence[Sentence]) -> tuple[Score, ...] | None:
    """The score of each sentence; None without weights."""
    return None


def level_of(_score: Score) -> Level | None:
    """Whether a sentence is certain, likely, or neither."""
    return None


def reader_name(_message: str) -> str:
    """The name of the weights: `plain:` and the beginning of their hash."""
    return "plain:"
