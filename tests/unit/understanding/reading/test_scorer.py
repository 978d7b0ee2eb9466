"""The learned scorer, with the committed weights."""

import json
import math
from pathlib import Path

import pytest

from sync.understanding.model import Level
from sync.understanding.reading import scorer
from sync.understanding.reading.segments import read_sentences
from sync.understanding.reading.sentence_features import GAINS, keys_of, read_features
from sync.understanding.reading.weights import load_weights
from tests.fit_understanding.data import compose

ROWS = Path(__file__).parents[3] / "data" / "statements"


def read(message: str, previous: str = "") -> tuple[scorer.Score, ...]:
    scores = scorer.score(message, previous, read_sentences(message))
    assert scores is not None
    return scores


@pytest.mark.parametrize(
    "message", ["我对花生过敏，以后推荐零食别带坚果", "I'm allergic to peanuts, so no nuts please"]
)
def test_what_the_user_says_of_themselves_is_likely_at_least(message: str) -> None:
    (one,) = read(message)

    assert one.level in set(Level)
    assert one.own > 0.5
    assert one.importance >= 0.3


@pytest.mark.parametrize("message", ["今天天气怎么样？", "hello", "write a poem about the sea", "谢谢", "12*13"])
def test_what_states_nothing_has_no_level(message: str) -> None:
    assert [one.level for one in read(message)] == [None]


def test_the_same_clause_is_less_the_users_own_in_the_words_of_another() -> None:
    own, quoted = read("我对花生过敏"), read("群里有人说我对花生过敏，怎么回")

    assert quoted[0].own < own[0].own
    assert quoted[0].level is None


def test_each_sentence_has_a_score_however_many_there_are() -> None:
    message = "好的。" * 200

    assert len(read(message)) == len(read_sentences(message))


def test_the_best_clause_is_the_one_that_states_something() -> None:
    (one,) = read("帮我订个餐厅，我对花生过敏")

    assert one.clause == 1


@pytest.mark.parametrize("language", ["zh", "en"])
def test_hidden_units_are_those_of_the_plain_sum_over_all_features(language: str) -> None:
    weights = load_weights(language)
    assert weights is not None
    for line in (ROWS / f"{language}.jsonl").read_text("utf-8").splitlines()[:40]:
        message, previous = (row := json.loads(line))["message"], row.get("previous") or ""
        features = read_features(message, previous, read_sentences(message), language, weights.words)
        for units, groups in zip(scorer.hidden_units(weights, features), compose(features), strict=True):
            values = list(weights.bias)
            for group, of in groups.items():
                for key in keys_of(group, of):
                    if key in weights.rows:
                        row_values = weights.unpack(weights.rows[key])
                        values = [
                            value + GAINS[group] / math.sqrt(len(of)) * one
                            for value, one in zip(values, row_values, strict=True)
                        ]
            assert units == pytest.approx([math.tanh(value) for value in values], abs=1e-9)


def test_without_weights_there_are_no_scores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scorer.weights_of.cache_clear()
    monkeypatch.setattr(scorer, "load_weights", lambda language: load_weights(language, tmp_path))
    try:
        assert scorer.score("我对花生过敏", "", read_sentences("我对花生过敏")) is None
        assert scorer.broken_weights() == ["zh", "en"]
        assert scorer.reader_name("我对花生过敏") == ""
    finally:
        scorer.weights_of.cache_clear()
