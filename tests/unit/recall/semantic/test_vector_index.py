"""The vectors in memory: little is lost by packing, kinds of script do not hide each other, many are found as few."""

import itertools

import numpy as np
import pytest

from sync.recall.index.vector_store import VectorRow
from sync.recall.semantic import vector_index
from sync.recall.semantic.vector_index import Floats, VectorIndex, quantize


def units(count: int, dimension: int = 64, seed: int = 7) -> Floats:
    found = np.random.default_rng(seed).standard_normal((count, dimension), dtype=np.float32)
    scaled: Floats = found / np.linalg.norm(found, axis=1, keepdims=True)
    return scaled


def dequantize(row: bytes) -> Floats:
    numbers: Floats = np.frombuffer(row, np.int8, offset=4) * np.frombuffer(row, "<f4", count=1)
    return numbers


def filled(vectors: Floats, *, dense: bool = False, first: int = 1) -> VectorIndex:
    held = VectorIndex("m", 0)
    held.add([VectorRow(first + at, dense, quantize(vector.tobytes())) for at, vector in enumerate(vectors)])
    return held


def test_packing_loses_a_hundredth_of_a_cosine_at_most() -> None:
    for one, other in itertools.pairwise(units(50)):
        assert float(dequantize(quantize(one.tobytes())) @ other) == pytest.approx(float(one @ other), abs=0.01)
    assert not dequantize(quantize(bytes(64))).any()


def test_the_nearest_item_scores_best_and_an_opposite_one_is_not_proposed() -> None:
    vectors = units(40)
    vectors[5] = -vectors[3]
    best = filled(vectors).query(vectors[3].tobytes()).best(10, None)
    assert next(iter(sorted(best, key=lambda item: -best[item]))) == 4
    assert 6 not in best
    assert filled(vectors).query(vectors[3].tobytes()).scores_of([4, 99]).keys() == {4}


def test_a_vector_of_another_length_is_left_out() -> None:
    vectors = units(4)
    held = VectorIndex("m", 0)
    whole = [VectorRow(2 + at, False, quantize(vector.tobytes())) for at, vector in enumerate(vectors)]
    held.add([VectorRow(1, False, b"xy"), *whole])
    held.add([VectorRow(9, False, quantize(units(1, dimension=8)[0].tobytes()))])
    assert held.ids.tolist() == [2, 3, 4, 5]
    assert max((best := held.query(vectors[1].tobytes()).best(4, None)), key=lambda item: best[item]) == 3


def test_only_what_a_filter_lets_through_is_proposed() -> None:
    vectors = units(40)
    assert filled(vectors).query(vectors[3].tobytes()).best(10, {8, 9}).keys() <= {8, 9}


def test_one_item_alone_is_proposed() -> None:
    (vector,) = units(1)
    assert filled(vector[None]).query(vector.tobytes()).best(10, None) == {1: 1.0}


def test_notes_of_one_script_do_not_hide_the_best_of_another() -> None:
    """As with e5: for a Chinese question any Chinese note lies nearer than every English one."""
    script, question = units(2, seed=9)
    english, chinese = units(60), units(60, seed=8)
    english[7] += question
    chinese = chinese * 0.3 + script
    held = VectorIndex("m", 0)
    held.add([VectorRow(at + 1, False, quantize(vector.tobytes())) for at, vector in enumerate(english)])
    held.add([VectorRow(at + 61, True, quantize(vector.tobytes())) for at, vector in enumerate(chinese)])
    asked = question * 0.4 + script
    assert int(np.argmax(np.concatenate([english, chinese]) @ asked)) >= 60
    best = held.query(asked.tobytes()).best(10, None)
    assert max(best, key=lambda item: best[item]) == 8


def test_of_many_items_the_same_ones_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = units(3_000) + units(1, seed=3)[0]  # with a middle that is not nought, as models have it
    question = vectors[1_234] + 0.3 * units(1, seed=4)[0]
    exact = filled(vectors).query(question.tobytes()).best(5, None)
    monkeypatch.setattr(vector_index, "MAX_EXACT_ITEMS", 100)
    monkeypatch.setattr(vector_index, "MAX_CANDIDATES", 600)
    held = filled(vectors[:2_000])
    assert held.query(question.tobytes()).best(5, None)
    held.add([VectorRow(2_001 + at, False, quantize(vector.tobytes())) for at, vector in enumerate(vectors[2_000:])])
    held.retain([item for item in range(1, 3_001) if item != 2_999], 1)
    found = held.query(question.tobytes()).best(5, None)
    assert max(found, key=lambda item: found[item]) == 1_235
    assert len(found.keys() & exact.keys()) >= 4


def test_of_many_items_those_of_a_filter_are_compared_as_if_they_were_all(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = units(1_000, dimension=200)
    monkeypatch.setattr(vector_index, "MAX_EXACT_ITEMS", 100)
    monkeypatch.setattr(vector_index, "MAX_CANDIDATES", 50)
    question = vectors[700] + 0.3 * units(1, dimension=200, seed=4)[0]
    allowed = set(range(501, 1_001))
    found = filled(vectors).query(question.tobytes()).best(5, allowed)
    assert max(found, key=lambda item: found[item]) == 701
    assert found.keys() <= allowed


def test_the_signs_say_how_many_numbers_lie_on_the_same_side(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = units(300, dimension=200)
    monkeypatch.setattr(vector_index, "MAX_EXACT_ITEMS", 100)
    monkeypatch.setattr(vector_index, "MAX_CANDIDATES", 30)
    held, codes = filled(vectors), np.array([dequantize(quantize(vector.tobytes())) for vector in vectors])
    centre = codes.mean(axis=0, dtype=np.float32)
    apart = ((codes > centre) != (vectors[9] > centre)).sum(axis=1)
    chosen = held.candidates(vectors[9], None)
    assert len(chosen) == 30
    assert apart[chosen].max() <= np.sort(apart)[29]
