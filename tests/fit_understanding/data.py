"""The labelled messages as rows to fit: features of each sentence, and what the heads should say of it."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from sync.understanding.reading.scorer import ABOUTS, KINDS
from sync.understanding.reading.segments import read_sentences
from sync.understanding.reading.sentence_features import (
    GAINS,
    Groups,
    MessageFeatures,
    content_groups,
    keys_of,
    read_features,
)

DATA: Final = Path(__file__).parents[1] / "data" / "statements"
BANDS: Final = ("low", "middle", "high")
VARIANTS: Final = (
    "own", "request", "quoted", "chat", "past", "supposed", "task", "asked", "other", "joked", "passing",
)  # fmt: skip
ROLES: Final = frozenset(VARIANTS) - {"own", "request", "chat"}  # of the same clause, in a contrast family

Row = dict[str, Any]


class Values(msgspec.Struct, frozen=True):
    """The features of a sentence: keys in order, and how much there is of each."""

    keys: NDArray[np.int64]
    amounts: NDArray[np.float32]


class Example(msgspec.Struct, frozen=True):
    """A sentence of a labelled message. Of a class head -1 stands for none."""

    message: int
    writer: str
    features: Values
    content: Values
    keep: bool
    is_other: bool
    is_labelled: bool
    kind: int
    about: int
    importance: int
    variant: int
    weight: float  # in what chooses thresholds: the foreign roles of a family count as one message
    statements: tuple[int, ...]  # which of the message's lasting statements the sentence holds most of


class Rows(msgspec.Struct, frozen=True):
    """A sparse matrix by rows: columns and values of row n are from starts[n] to starts[n + 1]."""

    columns: NDArray[np.int64]
    values: NDArray[np.float32]
    starts: NDArray[np.int64]
    width: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, rows: NDArray[np.int64]) -> "Rows":
        """Some of the rows."""
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        at = np.repeat(self.starts[rows] - starts[:-1], lengths) + np.arange(starts[-1])
        return Rows(self.columns[at], self.values[at], starts, self.width)

    def times(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """The product with a matrix. No row is empty."""
        product: NDArray[np.float32] = np.add.reduceat(weights[self.columns] * self.values[:, None], self.starts[:-1])
        return product

    def transposed_times(self, other: NDArray[np.float32]) -> NDArray[np.float32]:
        """The product of the transpose with a matrix."""
        of_row = np.repeat(np.arange(len(self)), np.diff(self.starts))
        parts = [np.bincount(self.columns, self.values * column[of_row], minlength=self.width) for column in other.T]
        return np.stack(parts, axis=1).astype(np.float32)


def read_rows(language: str) -> list[Row]:
    """The labelled messages of a language."""
    paths = DATA / f"{language}.jsonl", DATA / f"neutral-{language}.jsonl"
    return [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]


def read_word_classes(language: str) -> dict[str, str]:
    """The class of each word of the frequency list."""
    lines = (Path(__file__).parent / f"word-classes-{language}.txt").read_text("utf-8").splitlines()
    return dict(line.split(" ") for line in lines)


def compose(features: MessageFeatures) -> Iterator[Groups]:
    """The groups of each sentence, with those of its context."""
    every = features.sentences
    for at, one in enumerate(every):
        before, after = every[:at], every[at + 1 :]
        yield {
            **one.own,
            "h": [run for other in before for run in other.context],
            "t": [run for other in after for run in other.context],
            "H": [run for other in before for run in other.context_classes],
            "T": [run for other in after for run in other.context_classes],
            "p": before[-1].own["g"] if before else [],
            "n": after[0].own["g"] if after else [],
            **features.shared,
        }


def read_examples(rows: Sequence[Row], language: str, classes: dict[str, str]) -> list[Example]:
    """The sentences of labelled messages."""
    found: list[Example] = []
    roles = Counter(row["family"] for row in rows if row["variant"] in ROLES)
    for number, row in enumerate(rows):
        message, previous = row["message"], row.get("previous") or ""
        sentences = read_sentences(message)
        features = read_features(message, previous, sentences, language, classes)
        spans = [(message.find(span["text"]), span) for span in row["spans"]]
        lasting = [one for one in spans if one[1]["owner"] == "user" and one[1]["lasting"]]
        for sentence, one, groups in zip(sentences, features.sentences, compose(features), strict=False):
            inside = [span for at, span in spans if min(sentence.end, at + len(span["text"])) > max(sentence.start, at)]
            kept = [span for span in inside if span["owner"] == "user" and span["lasting"]]
            held = tuple(
                place
                for place, (at, span) in enumerate(lasting)
                if min(sentence.end, at + len(span["text"])) - max(sentence.start, at) > len(span["text"]) / 2
            )
            found.append(
                Example(
                    number,
                    row["family"][:2],
                    _values(groups),
                    _values(content_groups(one)),
                    bool(kept),
                    any(span["owner"] == "other" for span in inside),
                    bool(inside),
                    KINDS.index(kept[0]["kind"]) if kept else -1,
                    _about(kept[0]["about"]) if kept else -1,
                    BANDS.index(row["importance"]) if kept else 0,
                    VARIANTS.index(row["variant"]),
                    1 / roles[row["family"]] if row["variant"] in ROLES else 1.0,
                    held,
                )
            )
    return found


def _values(groups: dict[str, list[bytes]]) -> Values:
    """The amount of each key: how often it occurs, by the gain and the length of its group."""
    values: dict[int, float] = defaultdict(float)
    for group, features in groups.items():
        gain = GAINS[group] / max(1, len(features)) ** 0.5
        for key in keys_of(group, features):
            values[key] += gain
    keys = np.array(sorted(values), dtype=np.int64)
    return Values(keys, np.array([values[key] for key in keys.tolist()], dtype=np.float32))


def _about(name: str) -> int:
    return ABOUTS.index(name) if name in ABOUTS else ABOUTS.index("relation")


def matrix(values: Sequence[Values], keys: Sequence[int]) -> Rows:
    """The amounts of some keys, which are in order, and 0 for the first key in a row without any."""
    known = np.array(keys, dtype=np.int64)
    columns, amounts, starts = [], [], [0]
    for one in values:
        at = np.minimum(np.searchsorted(known, one.keys), len(known) - 1)
        here = known[at] == one.keys
        columns.append(at[here] if here.any() else np.zeros(1, dtype=np.int64))
        amounts.append(one.amounts[here] if here.any() else np.zeros(1, dtype=np.float32))
        starts.append(starts[-1] + len(columns[-1]))
    return Rows(np.concatenate(columns), np.concatenate(amounts), np.array(starts), len(keys))


def frequent_keys(values: Iterable[Values], count: int) -> list[int]:
    """The keys that most sentences have, in order."""
    number = np.bincount(np.concatenate([one.keys for one in values]))
    most = np.argsort(-number, kind="stable")[:count]
    found: list[int] = sorted(most[number[most] > 0].tolist())
    return found
