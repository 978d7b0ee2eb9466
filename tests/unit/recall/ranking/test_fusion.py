"""Ranks by words and by meaning become one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync.recall.ranking.bm25 import KeywordMatch
from sync.recall.ranking.fusion import PRESETS, Preset, fuse, score_factor
from tests.unit.recall.examples import DAY


def test_without_semantic_scores_keywords_decide_the_order() -> None:
    words = [KeywordMatch(1, 0.4, 0.5), KeywordMatch(2, 0.1, 0.1)]
    assert [(item.item_id, item.score, item.semantic) for item in fuse(words, None, PRESETS["default"])] == [
        (1, 1.0, None),
        (2, 0.25, None),
    ]


def test_an_item_of_both_sides_comes_before_one_of_either() -> None:
    words = [KeywordMatch(1, 0.4, 0.5), KeywordMatch(2, 0.4, 0.5)]
    found = fuse(words, {2: 0.9, 3: 0.9, 4: 0.1}, PRESETS["default"])
    assert found[0].item_id == 2


def test_words_count_more_where_one_item_holds_most_of_the_question() -> None:
    def first(cover: float) -> int:
        return fuse([KeywordMatch(1, 0.4, cover)], {2: 3.0, 1: 0.3}, Preset(0.4, 0.6, keyword_boost=1.0))[0].item_id

    assert first(0.2) == 2
    assert first(0.8) == 1


def test_a_score_below_the_mean_counts_as_the_mean() -> None:
    (item,) = fuse([KeywordMatch(1, 0.4, 0.5)], {1: -2.0}, PRESETS["seed000"])
    assert item.semantic == 0.0


@pytest.mark.parametrize("name", ["default", "seed000", "seed004"])
def test_the_presets_weigh_as_their_documents_say(name: str) -> None:
    preset = PRESETS[name]
    (item,) = [item for item in fuse([KeywordMatch(1, 0.4, 0.2)], {2: 0.9}, preset) if item.item_id == 1]
    assert item.score == pytest.approx(preset.keyword)
    assert (PRESETS["seed000"].keyword, PRESETS["seed000"].semantic, PRESETS["seed000"].decay) == (0.4, 0.6, 0.95)
    assert (PRESETS["seed004"].keyword, PRESETS["seed004"].semantic, PRESETS["seed004"].limit) == (0.3, 0.7, 2)


def test_decay_is_by_the_day() -> None:
    def aged(days: float) -> float:
        age = int(days * DAY)
        return score_factor(importance=0.5, marks=(), age_ms=age, preset=PRESETS["seed000"], is_preferred=False)

    assert aged(0) == aged(0.9) == aged(-3) == 1.0
    assert aged(2) == pytest.approx(0.95**2)


def test_marks_and_importance_multiply() -> None:
    def judged(importance: float, *marks: str) -> float:
        return score_factor(importance=importance, marks=marks, age_ms=0, preset=Preset(1, 0), is_preferred=False)

    assert judged(0.9) > judged(0.5) > judged(0.1)
    assert judged(0.5, "important") > judged(0.5) > judged(0.5, "outdated")


@given(
    st.dictionaries(st.integers(1, 30), st.floats(0.01, 1), max_size=10),
    st.dictionaries(st.integers(1, 30), st.floats(-1, 1), max_size=10),
)
def test_fusing_keeps_every_item_once_and_scores_between_nothing_and_all(
    words: dict[int, float], meaning: dict[int, float]
) -> None:
    said = [KeywordMatch(item_id, score, score) for item_id, score in words.items()]
    found = fuse(said, meaning, PRESETS["default"])
    assert {item.item_id for item in found} == words.keys() | meaning.keys()
    assert len(found) == len(words.keys() | meaning.keys())
    assert all(0.0 <= item.score <= 1.0 + 1e-9 for item in found)
    assert sorted(found, key=lambda item: -item.score) == sorted(found, key=lambda item: (-item.score, -item.item_id))
