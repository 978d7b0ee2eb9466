"""A network with sparse inputs, one hidden layer and several heads, fitted with Adam and dropped inputs."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from sync.understanding.reading.scorer import ABOUTS, KINDS
from tests.fit_understanding.data import BANDS, VARIANTS, Example, Rows

UNITS: Final = 8
EPOCHS: Final = 8
CONTENT_EPOCHS: Final = 30
BATCH: Final = 128
RATE: Final = 0.01
DROPPED: Final = 0.6  # of the inputs
DECAY: Final = 1e-4
CLASSES: Final = {"variant": len(VARIANTS), "kind": len(KINDS), "about": len(ABOUTS), "importance": len(BANDS)}
CONTENT: Final = ("kind", "about", "importance")  # heads of the network that says what is stated
SHARES: Final = {  # of a head in what is made small; `variant` only teaches the hidden layer
    "keep": 1.0, "own": 0.5, "lasting": 0.3, "labelled": 0.2, "variant": 0.3, "kind": 0.5, "about": 0.3,
    "importance": 0.5,
}  # fmt: skip

Floats = NDArray[np.float32]


class Targets(msgspec.Struct, frozen=True):
    """What the heads should say: yes or no with a weight of 0 or 1, or the number of a class, -1 for none."""

    answers: Mapping[str, tuple[Floats, Floats]]
    classes: Mapping[str, NDArray[np.int64]]

    def take(self, rows: NDArray[np.int64]) -> "Targets":
        """Those of some rows."""
        return Targets(
            {head: (answer[rows], weight[rows]) for head, (answer, weight) in self.answers.items()},
            {head: number[rows] for head, number in self.classes.items()},
        )


class Network(msgspec.Struct):
    """The weights of a network: into the hidden layer, and from it to each head."""

    inputs: Floats
    bias: Floats
    outputs: Floats
    offsets: Floats
    places: dict[str, slice]

    def logits(self, rows: Rows) -> Floats:
        """What all heads say of rows."""
        logits: Floats = np.tanh(rows.times(self.inputs) + self.bias) @ self.outputs + self.offsets
        return logits

    def of(self, head: str, logits: Floats) -> Floats:
        """What one head says."""
        part: Floats = logits[:, self.places[head]]
        return part[:, 0] if head not in CLASSES else part


def targets_of(examples: Sequence[Example]) -> Targets:
    """What the heads should say of examples."""
    keep = np.array([one.keep for one in examples])
    other = np.array([one.is_other for one in examples])
    labelled = np.array([one.is_labelled for one in examples])
    every = np.ones(len(examples), dtype=np.float32)

    def answer(of: NDArray[np.bool_]) -> Floats:
        return of.astype(np.float32)

    return Targets(
        {
            "keep": (answer(keep), every),
            "own": (answer(keep | ~other), answer(labelled)),
            "lasting": (answer(keep | other), every),
            "labelled": (answer(labelled), every),
        },
        {head: np.array([getattr(one, head) for one in examples]) for head in CLASSES},
    )


def content_targets_of(examples: Sequence[Example]) -> Targets:
    """What the heads should say of what is stated."""
    return Targets({}, {head: np.array([getattr(one, head) for one in examples]) for head in CONTENT})


def fit(rows: Rows, targets: Targets, epochs: int = EPOCHS) -> Network:
    """Fit a network. The same rows give the same weights."""
    generator = np.random.default_rng(0)
    network = _start(generator, rows.width, targets)
    weights = [network.inputs, network.bias, network.outputs, network.offsets]
    means, squares = [[np.zeros_like(one) for one in weights] for _ in range(2)]
    step = 0
    for epoch in range(epochs):
        order, rate = generator.permutation(len(rows)), RATE * (1 - 0.9 * epoch / epochs)
        for at in range(0, len(order), BATCH):
            some = order[at : at + BATCH]
            step += 1
            slopes = _slopes(network, _dropped(rows.take(some), generator), targets.take(some))
            size = rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            for one, slope, mean, square in zip(weights, slopes, means, squares, strict=True):
                mean[...] += 0.1 * (slope - mean)
                square[...] += 0.001 * (slope**2 - square)
                one[...] -= (size * mean / (np.sqrt(square) + 1e-7)).astype(np.float32)
    return network


def _start(generator: np.random.Generator, width: int, targets: Targets) -> Network:
    places, at = {}, 0
    for head in (*targets.answers, *targets.classes):
        places[head] = slice(at, at := at + CLASSES.get(head, 1))
    offsets = np.zeros(at, dtype=np.float32)
    if "keep" in places:
        offsets[places["keep"]] = -1.3
    return Network(
        generator.normal(0, 0.1, (width, UNITS)).astype(np.float32),
        np.zeros(UNITS, dtype=np.float32),
        generator.normal(0, 0.5, (UNITS, at)).astype(np.float32),
        offsets,
        places,
    )


def _dropped(rows: Rows, generator: np.random.Generator) -> Rows:
    kept = (generator.random(len(rows.values)) > DROPPED) / (1 - DROPPED)
    return Rows(rows.columns, (rows.values * kept).astype(np.float32), rows.starts, rows.width)


def _slopes(network: Network, rows: Rows, targets: Targets) -> list[Floats]:
    """How what is made small changes with each weight."""
    hidden = np.tanh(rows.times(network.inputs) + network.bias)
    logits = hidden @ network.outputs + network.offsets
    errors = np.zeros_like(logits)
    for head, (answer, weight) in targets.answers.items():
        part = 1 / (1 + np.exp(-logits[:, network.places[head]][:, 0]))
        errors[:, network.places[head]] = (SHARES[head] * weight * (part - answer))[:, None]
    for head, number in targets.classes.items():
        part = logits[:, network.places[head]]
        part = np.exp(part - part.max(axis=1, keepdims=True))
        part /= part.sum(axis=1, keepdims=True)
        known = np.flatnonzero(number >= 0)
        part[known, number[known]] -= 1
        part[number < 0] = 0
        errors[:, network.places[head]] = SHARES[head] * part
    errors /= len(rows)
    back = (errors @ network.outputs.T) * (1 - hidden**2)
    return [
        rows.transposed_times(back) + DECAY * network.inputs,
        back.sum(axis=0),
        hidden.T @ errors + DECAY * network.outputs,
        errors.sum(axis=0),
    ]
