"""The estimated importance of an exchange, and its parts."""

import pytest

from sync.understanding.importance import estimate_importance, explain_importance

SETTING = 0.15  # RECORD__MIN_IMPORTANCE: above small talk, below any question


@pytest.mark.parametrize(
    ("message", "low", "high"),
    [
        ("谢谢", 0.0, SETTING),
        ("ok", 0.0, SETTING),
        ("晚安", 0.0, SETTING),
        ("今天天气怎么样", SETTING, 0.3),
        ("长江和黄河哪个长？", SETTING, 0.3),
        ("把列表按拼音排序", SETTING, 0.3),
        ("构建报错：No space left on device", 0.3, 0.6),
        ("我喜欢绿茶", 0.3, 0.6),
        ("我养了一只猫", 0.3, 0.6),
        ("我每天早上跑步", 0.3, 0.6),
        ("I use Vim for everything.", 0.3, 0.6),
        ("我们决定用 SQLite，截止 2026-03-01", 0.6, 1.0),
        ("记住我的车停在B2", 0.55, 1.0),
        ("我对花生过敏", 0.6, 1.0),
        ("更正：截止日期是 4 月 15 号。", 0.6, 1.0),
        ("原来打包失败是因为磁盘满了，清掉缓存就好了。", 0.6, 1.0),
        ("We decided to move to PostgreSQL.", 0.6, 1.0),
        ("我女儿下个月做手术，12 月 3 号。", 0.6, 1.0),
    ],
)
def test_a_more_important_exchange_has_a_higher_score(message: str, low: float, high: float) -> None:
    assert low <= estimate_importance(message, "好的") <= high, explain_importance(message, "好的")


def test_the_parts_explain_the_estimate() -> None:
    parts = explain_importance("我们决定数据库用 PostgreSQL。")
    assert {part.name for part in parts} >= {"exchange", "states: decision", "decision"}
    assert estimate_importance("我们决定数据库用 PostgreSQL。") == pytest.approx(
        min(0.95, sum(part.weight for part in parts))
    )


def test_a_question_about_an_illness_is_no_more_than_a_question() -> None:
    assert estimate_importance("对花生过敏会有什么症状？") < estimate_importance("我对花生过敏。")
