"""An exchange matters as much as the most important thing that it states."""

import pytest
from msgspec.structs import replace

from sync.understanding.importance import BASE, CORRECTED, SMALL_TALK, estimate_importance
from sync.understanding.model import Change, FactKind, FactSection, Statement

TEA = Statement("我喜欢绿茶", FactKind.PREFERENCE, FactSection.PERSONAL, importance=0.4)


@pytest.mark.parametrize(
    ("message", "low", "high"),
    [
        ("谢谢", SMALL_TALK, SMALL_TALK),
        ("ok", SMALL_TALK, SMALL_TALK),
        ("今天天气怎么样", SMALL_TALK, BASE),
        ("对花生过敏会有什么症状？", SMALL_TALK, BASE),
        ("记住我的车停在B2", 0.6, 1.0),
        ("我对花生过敏", 0.6, 1.0),
        ("I'm allergic to peanuts", 0.6, 1.0),
    ],
)
def test_a_more_important_exchange_has_a_higher_score(message: str, low: float, high: float) -> None:
    assert low <= estimate_importance(message) <= high


def test_what_looks_like_a_statement_matters_more_than_a_question() -> None:
    assert estimate_importance("店里的豆子是云南的") > estimate_importance("豆子怎么保存才香") >= SMALL_TALK


def test_the_most_important_statement_counts_and_a_correction_matters() -> None:
    assert estimate_importance("茶", [TEA, replace(TEA, importance=0.7)]) == 0.7
    assert estimate_importance("茶", [replace(TEA, change=Change.CORRECTS)]) == CORRECTED
    assert estimate_importance("茶", [replace(TEA, importance=None)]) == 0.4
    assert estimate_importance("茶", [replace(TEA, importance=0.1)]) > BASE
