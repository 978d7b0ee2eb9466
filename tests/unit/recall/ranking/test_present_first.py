"""Of two answers to a question about the present the newer one comes first."""

from msgspec.structs import replace

from sync.recall.model import Hit
from sync.recall.query import ParsedQuery
from sync.recall.ranking.present_first import present_first
from sync.recall.relevance.calibration import ItemEvidence
from tests.unit.recall.examples import hit


def scored(item_id: int, score: float, share: float, **changes: object) -> Hit:
    return replace(hit(item_id, "住在", **changes), score=score, evidence=ItemEvidence(share * 3, share, {}))


def test_the_newer_of_two_equal_answers_comes_first() -> None:
    old, new, other = scored(1, 1.0, 0.5), scored(9, 0.8, 0.5), scored(5, 0.7, 0.1)
    order = present_first([old, new, other], ParsedQuery("我现在住在哪里", {}))
    assert [one.item.item_id for one in order] == [9, 1, 5]
    assert [one.score for one in order] == [1.0, 0.8, 0.7]


def test_a_question_about_the_past_or_a_day_keeps_the_order() -> None:
    hits = [scored(1, 1.0, 0.5), scored(9, 0.8, 0.5)]
    assert present_first(hits, ParsedQuery("我以前住在哪里", {})) == hits
    assert present_first(hits, ParsedQuery("我住在哪里", {}, since_ms=1)) == hits
    daily = [hits[0], scored(9, 0.8, 0.5, kind="daily")]
    assert present_first(daily, ParsedQuery("我住在哪里", {})) == daily
