"""What the fit of the scorer's weights computes."""

import numpy as np

from tests.fit_understanding.data import Example, Rows, Values, frequent_keys, matrix, read_examples
from tests.fit_understanding.network import fit, targets_of
from tests.fit_understanding.quantise import calibrate, store


def values(**amounts: float) -> Values:
    return Values(np.array([int(key[1:]) for key in amounts]), np.array(list(amounts.values()), dtype=np.float32))


def dense(rows: Rows) -> np.ndarray:
    return rows.times(np.eye(rows.width, dtype=np.float32))


def test_a_matrix_holds_the_known_keys_and_a_zero_row_where_there_are_none() -> None:
    rows = matrix([values(k3=1, k7=2, k9=5), values(k8=4), values(k7=3)], [3, 7])

    assert dense(rows).tolist() == [[1, 2], [0, 0], [0, 3]]


def test_rows_can_be_taken_and_multiplied_from_both_sides() -> None:
    rows = matrix([values(k3=1, k7=2), values(k3=4), values(k7=3)], [3, 7])
    other = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)

    assert np.array_equal(rows.transposed_times(other), dense(rows).T @ other)
    assert dense(rows.take(np.array([2, 0]))).tolist() == [[0, 3], [1, 2]]


def test_the_most_frequent_keys_are_kept_in_order() -> None:
    assert frequent_keys([values(k9=1, k2=1), values(k9=1, k5=1), values(k5=1, k7=1)], 2) == [5, 9]


def test_stored_weights_are_near_and_of_sixteen_values() -> None:
    weights = np.random.default_rng(1).normal(0, 1, (200, 4)).astype(np.float32)
    stored = store(weights)

    assert len(np.unique(stored.weights)) <= 16
    assert np.abs(stored.weights - weights).mean() < 0.15


def test_calibrated_logits_are_probabilities() -> None:
    generator = np.random.default_rng(1)
    logits = generator.normal(0, 2, 4000).astype(np.float32)
    answers = generator.random(4000) < 1 / (1 + np.exp(-(0.5 * logits - 1)))
    slope, offset = calibrate(logits, answers)

    assert abs(slope - 0.5) < 0.1
    assert abs(offset + 1) < 0.15


ROWS = [
    {
        "family": "X1-001",
        "variant": "own",
        "message": "我对花生过敏。怎么办？",
        "importance": "high",
        "spans": [{"text": "我对花生过敏", "owner": "user", "lasting": True, "kind": "constraint", "about": "user"}],
    },
    {
        "family": "X1-001",
        "variant": "quoted",
        "message": "他说：我对花生过敏",
        "importance": "low",
        "spans": [{"text": "我对花生过敏", "owner": "other", "lasting": False, "about": "unknown"}],
    },
]


def read() -> list[Example]:
    return read_examples(ROWS, "zh", {"花生": "0010"})


def test_sentences_have_the_labels_of_the_spans_in_them() -> None:
    own, asked, quoted = read()

    assert (own.keep, own.is_other, own.statements, own.importance) == (True, False, (0,), 2)
    assert (asked.keep, asked.is_labelled, asked.importance) == (False, False, 0)
    assert (quoted.keep, quoted.is_other, quoted.weight) == (False, True, 1.0)


def test_the_same_examples_give_the_same_weights() -> None:
    examples = read() * 300
    keys = frequent_keys([one.features for one in examples], 100)
    rows = matrix([one.features for one in examples], keys)
    first, second = fit(rows, targets_of(examples)), fit(rows, targets_of(examples))

    assert first.inputs.tobytes() == second.inputs.tobytes()
    keep = first.of("keep", first.logits(rows))
    assert keep[0] > max(keep[1], keep[2])
