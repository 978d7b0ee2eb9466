"""How relevant an item is to a message, as a probability. Pure.

Its evidence is absolute: rare words in common, cosines of the models, and what kind of message it is; never the rank
among the hits. `calibration.json` holds the parameters; `python -m tests.bench.fit_gate` fits them. See
docs/decisions/029-relevance.md.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from sync.recall.relevance.message_signals import MessageSignals
from sync.recall.text.tokenizer import index_terms

BACKGROUND_SHARE: Final = 0.004  # of messages; a term this common weighs half as much as a rare one
LOOKUP_SHARE: Final = 0.5  # of a message's rare words: with them all an item answers a question about nobody
LOOKUP_VALUE: Final = 2.0  # of rare words in common, about a word of three characters
WHOLE_SHARE: Final = 0.95  # of a message of one or two words
WHOLE_VALUE: Final = 0.8
LOOKUP_RELEVANCE: Final = 0.9
GENERIC_TERMS: Final = frozenset(  # in messages about anything; Latin words as their stems
    "继续 接着 工作 处理 添加 帮我 写一 写个 看看 问题 事情 东西 解决 continu work write add make problem".split()
)
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
    """A logistic regression on named features. `threshold`: the least relevance that is given to a model."""

    weights: Mapping[str, float]
    bias: float
    threshold: float


class Calibration(msgspec.Struct, frozen=True):
    """A model for each set of embedding models, by their names joined with "+"; "" for words alone.

    `background`: the share of messages that contain a term, of common terms.
    """

    models: Mapping[str, LogisticModel]
    background: Mapping[str, float]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Calibration":
        models = {
            name: LogisticModel(model["weights"], model["bias"], model["threshold"])
            for name, model in value["models"].items()
        }
        messages = value["messages"]
        terms = {term: int(count) / messages for count, text in value["background"].items() for term in text.split()}
        return cls(models, terms)

    def model_for(self, cosines: Mapping[str, float]) -> LogisticModel:
        """The model for these cosines; that of words alone if there is none."""
        return self.models.get("+".join(sorted(cosines)), self.models[""])

    def relevance(self, signals: MessageSignals, evidence: ItemEvidence) -> float:
        """The probability that an item matters for a message; 0 for small talk."""
        if signals.is_small_talk:
            return 0.0
        model, values = self.model_for(evidence.cosines), features(signals, evidence)
        score = model.bias + sum(weight * values.get(name, 0.0) for name, weight in model.weights.items())
        return max(1.0 / (1.0 + math.exp(-min(max(score, -30.0), 30.0))), lookup_relevance(evidence))


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


def rare_weights(term_weights: Mapping[str, float], background: Mapping[str, float]) -> dict[str, float]:
    """The weights of a message's terms by their rarity; single characters and words of any request do not count."""
    return {
        term: weight / (1.0 + background.get(term, 0.0) / BACKGROUND_SHARE)
        for term, weight in term_weights.items()
        if len(term) > 1 and term not in GENERIC_TERMS
    }


def gather_evidence(rare: Mapping[str, float], text: str, cosines: Mapping[str, float]) -> ItemEvidence:
    """The evidence of one item. `rare`: those of `rare_weights`."""
    held = rare.keys() & set(index_terms(text))
    value = sum(rare[term] for term in held)
    return ItemEvidence(value, value / (sum(rare.values()) or 1.0), cosines)
