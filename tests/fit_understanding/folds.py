"""What a fit is worth on writers that it has not seen: predictions for each writer by the others, and their figures."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from tests.fit_understanding.data import VARIANTS, Example, frequent_keys, matrix
from tests.fit_understanding.network import (
    CLASSES,
    CONTENT,
    CONTENT_EPOCHS,
    Network,
    content_targets_of,
    fit,
    targets_of,
)
from tests.fit_understanding.quantise import Stored, calibrate, store

KEYS: Final = 19_000  # features of a language
CONTENT_KEYS: Final = 5_000  # those that say what is stated
ACTIVE_PRECISION: Final = 0.92
CANDIDATE_PRECISION: Final = 0.65  # .60 is wanted; it varies by .05 between writers
NEUTRAL: Final = frozenset({VARIANTS.index("request"), VARIANTS.index("chat")})
MOST_NEUTRAL: Final = 3.0  # wrong active ones per 1,000 messages that state nothing

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


class Predictions(msgspec.Struct, frozen=True):
    """What networks say of sentences whose writers they have not seen, head by head."""

    examples: Sequence[Example]
    heads: dict[str, Floats]

    @property
    def writers(self) -> NDArray[np.str_]:
        return np.array([one.writer for one in self.examples])


class Thresholds(msgspec.Struct, frozen=True):
    """The calibration of `keep`, and the probabilities from which a sentence is active and a candidate."""

    slope: float
    offset: float
    active: float
    candidate: float

    def probabilities(self, logits: Floats) -> Floats:
        part: Floats = 1 / (1 + np.exp(-(self.slope * logits + self.offset)))
        return part


class Networks(msgspec.Struct, frozen=True):
    """Both networks, with the keys of their features, and their weights as they are stored."""

    keys: list[int]
    reading: Network
    content_keys: list[int]
    content: Network
    stored: Stored


def fit_networks(examples: Sequence[Example]) -> Networks:
    """Fit both networks; their weights share one code book."""
    features, stating = [one.features for one in examples], [one for one in examples if one.keep]
    contents = [one.content for one in stating]
    keys, content_keys = frequent_keys(features, KEYS), frequent_keys(contents, CONTENT_KEYS)
    reading = fit(matrix(features, keys), targets_of(examples))
    content = fit(matrix(contents, content_keys), content_targets_of(stating), CONTENT_EPOCHS)
    stored = store(np.concatenate([reading.inputs, content.inputs]))
    reading.inputs, content.inputs = stored.weights[: len(keys)], stored.weights[len(keys) :]
    return Networks(keys, reading, content_keys, content, stored)


def predict_unseen(examples: Sequence[Example], share: float = 1.0) -> Predictions:
    """What networks say of each writer, fitted on the others. `share`: of the messages that are fitted."""
    writers = np.array([one.writer for one in examples])
    heads: dict[str, Floats] = {}
    for writer in sorted(set(writers)):
        fitted = fit_networks([one for one in examples if one.writer != writer and _is_drawn(one, share)])
        places = np.flatnonzero(writers == writer)
        unseen = [examples[int(at)] for at in places]
        logits = fitted.reading.logits(matrix([one.features for one in unseen], fitted.keys))
        contents = fitted.content.logits(matrix([one.content for one in unseen], fitted.content_keys))
        for head in ("keep", "own", "lasting", *CONTENT):
            is_content = head in CONTENT
            values = fitted.content.of(head, contents) if is_content else fitted.reading.of(head, logits)
            shape = (len(examples), CLASSES[head]) if is_content else (len(examples),)
            heads.setdefault(head, np.zeros(shape, dtype=np.float32))[places] = values
    return Predictions(examples, heads)


def _is_drawn(one: Example, share: float) -> bool:
    return one.message * 2654435761 % 1000 < 1000 * share


def choose_thresholds(predictions: Predictions, among: Flags) -> Thresholds:
    """Calibrate `keep`, and choose the lowest thresholds that are precise enough and spare neutral messages.

    A family says one clause in up to five foreign roles, of which life has one: they count as one message. The
    requests of the sets are written to look like statements, so candidates among them choose no threshold.
    """
    logits = predictions.heads["keep"]
    keep = np.array([one.keep for one in predictions.examples])
    slope, offset = calibrate(logits[among], keep[among])
    chosen = Thresholds(slope, offset, 1.0, 1.0)
    probabilities = chosen.probabilities(logits)
    active = _lowest(predictions, probabilities, among, 1.01, ACTIVE_PRECISION, MOST_NEUTRAL)
    candidate = _lowest(predictions, probabilities, among, active, CANDIDATE_PRECISION, 1000.0)
    return Thresholds(slope, offset, active, candidate)


def _lowest(
    predictions: Predictions, probabilities: Floats, among: Flags, below: float, precision: float, most: float
) -> float:
    keep = np.array([one.keep for one in predictions.examples])
    weight = np.array([one.weight for one in predictions.examples])
    neutral = _neutral(predictions.examples)
    count = len({one.message for at, one in enumerate(predictions.examples) if neutral[at] and among[at]})
    lowest = below
    for threshold in np.arange(0.98, 0.1, -0.01):
        taken = among & (probabilities >= threshold) & (probabilities < below)
        if taken.sum() < 10:
            continue
        if 1000 * (taken & neutral).sum() > most * count:
            break
        if np.average(keep[taken], weights=weight[taken]) >= precision:
            lowest = float(round(threshold, 2))
    return lowest


def _neutral(examples: Sequence[Example]) -> Flags:
    """The sentences of ordinary messages in which no clause looks like a statement."""
    stating = {one.message for one in examples if one.is_labelled}
    return np.array([one.variant in NEUTRAL and one.message not in stating for one in examples])


class Figures(msgspec.Struct):
    """Shares with their numbers."""

    right: float = 0
    count: float = 0

    def __str__(self) -> str:
        share = self.right / self.count if self.count else 0.0
        error = (share * (1 - share) / self.count) ** 0.5 if self.count else 0.0
        return f"{share:.3f} ± {error:.3f} ({self.right:.0f} of {self.count:.0f})"


def measure(predictions: Predictions, lasting_statements: int) -> Iterator[tuple[str, Figures]]:
    """The figures of all writers; thresholds of each writer are chosen on the others."""
    examples, writers = predictions.examples, predictions.writers
    keep, neutral = np.array([one.keep for one in examples]), _neutral(examples)
    level = np.zeros(len(examples), dtype=int)
    for writer in sorted(set(writers)):
        chosen = choose_thresholds(predictions, writers != writer)
        probabilities = chosen.probabilities(predictions.heads["keep"])
        mine = writers == writer
        level[mine] = (probabilities >= chosen.candidate).astype(int)[mine]
        level[mine & (probabilities >= chosen.active)] = 2
    for name, least in (("recall of active and candidates", 1), ("recall of active", 2)):
        found = {
            (one.message, held) for at, one in enumerate(examples) if level[at] >= least for held in one.statements
        }
        yield name, Figures(len(found), lasting_statements)
    yield "precision of active", _share(keep[level == 2])
    yield "precision of candidates", _share(keep[level == 1])
    messages = len({one.message for at, one in enumerate(examples) if neutral[at]})
    for name, wanted in (("active", 2), ("candidates", 1)):
        wrong = {one.message for at, one in enumerate(examples) if neutral[at] and level[at] == wanted}
        yield f"neutral messages with wrong {name}", Figures(len(wrong), messages)
    for head in ("kind", "about"):
        said = predictions.heads[head].argmax(axis=1)
        known = np.array([getattr(one, head) for one in examples])
        yield head, _share((said == known)[known >= 0])
    yield "importance of a message", _importance(predictions)


def _share(right: Flags) -> Figures:
    return Figures(float(right.sum()), len(right))


def _importance(predictions: Predictions) -> Figures:
    """The band of each message is that of its most important sentence: low if it hardly states something."""
    keep = np.array([one.keep for one in predictions.examples])
    slope, offset = calibrate(predictions.heads["keep"], keep)
    stating = slope * predictions.heads["keep"] + offset > 0
    high = predictions.heads["importance"][:, -1] > predictions.heads["importance"][:, -2]
    said: dict[int, int] = {}
    known: dict[int, int] = {}
    for one, states, is_high in zip(predictions.examples, stating, high, strict=True):
        said[one.message] = max(said.get(one.message, 0), 1 + is_high if states else 0)
        known[one.message] = max(known.get(one.message, 0), one.importance)
    return _share(np.array([said[message] == known[message] for message in known]))
