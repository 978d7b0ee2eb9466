"""The learned scorer: how sure it is of each sentence that it is the user's own and lasting.

Two small networks on hashed features (`sentence_features.py`), each with one hidden layer and several heads: one says
whose a sentence is and whether it lasts, the other what it states. Their weights are data (`make fit-understanding`).
Without them, or if their hash is wrong, there are no scores and the certain forms read alone.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate, repeat
from typing import Final

import msgspec

from sync.understanding.model import FactKind, Level
from sync.understanding.reading.segments import Sentence
from sync.understanding.reading.sentence_features import (
    GAINS,
    Groups,
    MessageFeatures,
    SentenceFeatures,
    clause_groups,
    content_groups,
    keys_of,
    language_of,
    read_features,
)
from sync.understanding.reading.weights import LANGUAGES, ScorerWeights, load_weights

ABOUTS: Final = ("user", "relation", "project", "unknown")
KINDS: Final = tuple(FactKind)
_CONTEXT: Final = {"h": False, "t": False, "H": True, "T": True}  # whether a group of context reads classes

Sum = tuple[int, int]  # of a group: the rows of its features, and their number


class Score(msgspec.Struct, frozen=True):
    """Calibrated probabilities of a sentence, `keep` of both, and what its best clause, number `clause`, says."""

    own: float
    lasting: float
    keep: float
    kind: FactKind = FactKind.KNOWLEDGE
    about: str = "user"
    importance: float = 0.5
    clause: int = 0
    level: Level | None = None


_MIDDLE: Final = 0.5
_WORTH_READING: Final = 0.25  # probability below which nothing asks what a sentence states
_NOTHING: Final = Score(0.0, 0.0, 0.0, importance=0.0)


def score(message: str, previous: str, sentences: Sequence[Sentence]) -> tuple[Score, ...] | None:
    """The score of each sentence; None without weights. Sentences beyond MAX_SENTENCES state nothing."""
    weights = weights_of(language_of(message))
    if weights is None:
        return None
    features = read_features(message, previous, sentences, weights.language, weights.words)
    scores = [
        _score(weights, hidden, one, sentence)
        for hidden, one, sentence in zip(hidden_units(weights, features), features.sentences, sentences, strict=False)
    ]
    return (*scores, *repeat(_NOTHING, len(sentences) - len(scores)))


def reader_name(message: str) -> str:
    """The name of the weights that read a message: `plain:` and the beginning of their hash."""
    weights = weights_of(language_of(message))
    return f"plain:{weights.name}" if weights is not None else ""


def broken_weights() -> list[str]:
    """The languages whose weights are missing or have another hash than they should, so that nothing is scored."""
    return [language for language in LANGUAGES if weights_of(language) is None]


@cache
def weights_of(language: str) -> ScorerWeights | None:
    return load_weights(language)


# --- the network ---------------------------------------------------------------------------------------------------


def hidden_units(weights: ScorerWeights, features: MessageFeatures) -> list[list[float]]:
    """The hidden units of each sentence."""
    every = features.sentences
    shared = _sums(weights, features.shared)
    before: dict[str, list[Sum]] = {}
    for group, is_of_classes in _CONTEXT.items():
        sums = [_sum(weights, group, one.context_classes if is_of_classes else one.context) for one in every]
        forward = group in "hH"
        running = list(accumulate(sums if forward else sums[::-1], _add, initial=(0, 0)))[:-1]
        before[group] = running if forward else running[::-1]
    grams: list[list[bytes]] = [[], *(one.own["g"] for one in every), []]
    found = []
    for at, one in enumerate(every):
        neighbours = {"p": grams[at], "n": grams[at + 2]}
        groups = shared | {group: sums[at] for group, sums in before.items()} | _sums(weights, one.own | neighbours)
        found.append(_units(weights, groups, weights.bias))
    return found


def _sums(weights: ScorerWeights, groups: Groups) -> dict[str, Sum]:
    return {group: _sum(weights, group, features) for group, features in groups.items()}


def _sum(weights: ScorerWeights, group: str, features: Sequence[bytes]) -> Sum:
    row = weights.rows.get
    return sum(filter(None, map(row, keys_of(group, features)))), len(features)


def _add(one: Sum, other: Sum) -> Sum:
    return one[0] + other[0], one[1] + other[1]


def _units(weights: ScorerWeights, groups: dict[str, Sum], start: Sequence[float]) -> list[float]:
    """The hidden units of the sums of groups."""
    values = list(start)
    for group, (total, count) in groups.items():
        if total:
            gain = GAINS[group] / math.sqrt(count)
            for unit, weight in enumerate(weights.unpack(total)):
                values[unit] += gain * weight
    return [math.tanh(value) for value in values]


# --- the heads -----------------------------------------------------------------------------------------------------


def _score(weights: ScorerWeights, hidden: Sequence[float], one: SentenceFeatures, sentence: Sentence) -> Score:
    keep = _probability(weights, "keep", hidden)
    level = Level.CERTAIN if keep >= weights.active else Level.LIKELY if keep >= weights.candidate else None
    own, lasting = _probability(weights, "own", hidden), _probability(weights, "lasting", hidden)
    if max(keep, lasting) < _WORTH_READING:
        return Score(own, lasting, keep, importance=_importance(keep, 0.5))
    content = _units(weights, _sums(weights, content_groups(one)), weights.content_bias)
    kinds, abouts = _shares(weights, "kind", content), _shares(weights, "about", content)
    return Score(
        own,
        lasting,
        keep,
        KINDS[kinds.index(max(kinds))],
        ABOUTS[abouts.index(max(abouts))],
        _importance(keep, _shares(weights, "importance", content)[-1]),
        _best_clause(weights, sentence),
        level,
    )


def _probability(weights: ScorerWeights, head: str, hidden: Sequence[float]) -> float:
    """The calibrated probability of a head with one answer."""
    slope, offset = weights.calibration.get(head, (1.0, 0.0))
    return 1.0 / (1.0 + math.exp(-(slope * _logits(weights, head, hidden)[0] + offset)))


def _shares(weights: ScorerWeights, head: str, hidden: Sequence[float]) -> list[float]:
    """The probabilities of a head's classes."""
    logits = _logits(weights, head, hidden)
    powers = [math.exp(value - max(logits)) for value in logits]
    return [power / sum(powers) for power in powers]


def _logits(weights: ScorerWeights, head: str, hidden: Sequence[float]) -> list[float]:
    return [offset + sum(map(float.__mul__, row, hidden)) for offset, row in weights.heads[head]]


def _importance(keep: float, high: float) -> float:
    """A number from 0 to 1: below .3 if nothing is stated, above .6 if what is stated is rather of high importance."""
    if keep < _MIDDLE:
        return 0.3 * keep / _MIDDLE
    return 0.2 + 0.8 * high if high > _MIDDLE else 0.3 + 0.6 * high


def _best_clause(weights: ScorerWeights, sentence: Sentence) -> int:
    """The clause whose words alone speak most for a statement."""
    if len(sentence.clauses) == 1:
        return 0

    def value(at: int) -> float:
        groups = clause_groups(sentence.clause_text(at), weights.language, weights.words)
        return _logits(weights, "lasting", _units(weights, _sums(weights, groups), weights.bias))[0]

    own: Iterable[int] = [
        at for at, clause in enumerate(sentence.clauses) if clause.foreign is None and not clause.is_question
    ]
    return max(own or range(len(sentence.clauses)), key=value)
