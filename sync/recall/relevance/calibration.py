"""How relevant an item is to a message, as a probability. Pure.

Its evidence is absolute: rare words in common, cosines of the models, and what kind of message it is; never the rank
among the hits. `calibration.json` holds the parameters; `python -m tests.bench.fit_gate` fits them. How common a word
is says a general list: docs/decisions/048-gate-on-word-frequency.md.
"""

import math
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from itertools import groupby, pairwise
from typing import Final

import msgspec

from sync.recall.ranking.bm25 import KIND_WEIGHTS
from sync.recall.relevance.message_signals import MessageSignals
from sync.recall.text.stemming import CHINESE_STOP_WORDS
from sync.recall.text.tokenizer import TermKind, content_terms, dense_runs, index_terms, normalise
from sync.recall.text.word_frequencies import chinese_segments, chinese_words, english_stems

MAX_EVIDENCE_CHARS: Final = 2_000  # of a message, its last ones
MIN_DIGITS: Final = 3  # of a number that is evidence
HALF_WEIGHT: Final = 4e-4  # of all words; one this common weighs half as much as a rare one
LOOKUP_SHARE: Final = 0.5  # of a message's rare words: with them all an item answers a question about nobody
LOOKUP_VALUE: Final = 2.0  # of rare words in common, about a word of three characters
WHOLE_SHARE: Final = 0.95  # of a message of one or two words
WHOLE_VALUE: Final = 0.8
LOOKUP_RELEVANCE: Final = 0.9
DENSE_SUFFIX: Final = "_dense"  # the same feature in a message of a script without spaces


class ItemEvidence(msgspec.Struct, frozen=True):
    """What an item and a message have in common. `rare_value`: the weight of rare terms in both.

    `rare_share`: that value's share of the message's. `cosines`: by name of the model.
    """

    rare_value: float
    rare_share: float
    cosines: Mapping[str, float]


NO_EVIDENCE: Final = ItemEvidence(0.0, 0.0, {})


class LogisticModel(msgspec.Struct, frozen=True):
    """A logistic regression on named features.

    `thresholds`: the least relevance that is given to a model, for messages in scripts with spaces, and without.
    """

    weights: Mapping[str, float]
    bias: float
    thresholds: tuple[float, float]


class Calibration(msgspec.Struct, frozen=True):
    """A model for each set of embedding models, by their names joined with "+"; "" for words alone."""

    models: Mapping[str, LogisticModel]

    def model_for(self, cosines: Mapping[str, float]) -> LogisticModel:
        """The model for these cosines; that of words alone if there is none."""
        return self.models.get("+".join(sorted(cosines)), self.models[""])

    def threshold(self, signals: MessageSignals, evidence: ItemEvidence) -> float:
        """The relevance that an item needs to be given to a model."""
        return self.model_for(evidence.cosines).thresholds[signals.is_dense]

    def relevance(self, signals: MessageSignals, evidence: ItemEvidence) -> float:
        """The probability that an item matters for a message; 0 for small talk."""
        if signals.is_small_talk:
            return 0.0
        model, values = self.model_for(evidence.cosines), features(signals, evidence)
        score = model.bias + sum(weight * values.get(name, 0.0) for name, weight in model.weights.items())
        return max(1.0 / (1.0 + math.exp(-min(max(score, -30.0), 30.0))), lookup_relevance(evidence))


@cache
def load_calibration() -> Calibration:
    return msgspec.json.decode(files(__package__).joinpath("calibration.json").read_bytes(), type=Calibration)


def features(signals: MessageSignals, evidence: ItemEvidence) -> dict[str, float]:
    """The features of the regression, each also as `…_dense`, which is 0 in scripts with spaces."""
    plain = {
        "about_self": float(signals.self_mentions > 0),
        "self_mentions": math.log1p(signals.self_mentions),
        "rare_value": math.log1p(evidence.rare_value),
        "rare_share": evidence.rare_share,
        **evidence.cosines,
    }
    dense = {f"{name}{DENSE_SUFFIX}": value * signals.is_dense for name, value in plain.items()}
    return {**plain, **dense, "dense": float(signals.is_dense)}


def lookup_relevance(evidence: ItemEvidence) -> float:
    """The relevance by words alone of an item that holds most of a message's rare words."""
    holds_most = evidence.rare_share >= LOOKUP_SHARE and evidence.rare_value >= LOOKUP_VALUE
    holds_all = evidence.rare_share >= WHOLE_SHARE and evidence.rare_value >= WHOLE_VALUE
    return LOOKUP_RELEVANCE if holds_most or holds_all else 0.0


@lru_cache(maxsize=8)
def rare_weights(message: str) -> Mapping[str, float]:
    """The terms of a message that are evidence, with their weights: the rarer in general, the heavier.

    Of Chinese those of its words; characters in a row that are no word of the list are a word that it lacks.
    """
    text = message[-MAX_EVIDENCE_CHARS:]
    weights: dict[str, float] = {}
    for run in dense_runs(text):
        for is_word, segments in groupby(chinese_segments(run), lambda segment: len(segment) > 1):
            words = [segment for segment in segments if CHINESE_STOP_WORDS.fullmatch(segment) is None]
            for word in words:
                terms = (word,) if len(word) <= 2 else map("".join, pairwise(word))
                weights |= dict.fromkeys(terms, _rarity(chinese_words().get(word, 0.0)))
            if not is_word:
                unknown = ((one, other) for one, other in pairwise(words) if one + other in run)
                weights |= {one + other: weights[one] * weights[other] for one, other in unknown}
    for term in content_terms(text):
        if term.kind in {TermKind.WORD, TermKind.PART} and not (term.text.isdigit() and len(term.text) < MIN_DIGITS):
            weights[term.text] = KIND_WEIGHTS[term.kind] * _rarity(english_stems().get(term.text, 0.0))
    return weights


def gather_evidence(rare: Mapping[str, float], text: str, cosines: Mapping[str, float]) -> ItemEvidence:
    """The evidence of one item. `rare`: those of `rare_weights`."""
    held = [term for term in rare.keys() & set(index_terms(text)) if len(term) > 1 or _is_word_in(term, text)]
    value = sum(rare[term] for term in held)
    return ItemEvidence(value, value / (sum(rare.values()) or 1.0), cosines)


def _rarity(frequency: float) -> float:
    return 1.0 / (1.0 + frequency / HALF_WEIGHT)


def _is_word_in(character: str, text: str) -> bool:
    """Whether a text has a Chinese character that is a word, such as 猫 in 我的猫, not in 熊猫."""
    words, folded = chinese_words(), f" {normalise(text)}"
    places = (match.start() for match in re.finditer(re.escape(character), folded))
    return any(folded[at - 1 : at + 1] not in words and folded[at : at + 2] not in words for at in places)
