"""The estimated importance of an exchange."""

import pytest

from sync.document.capture.importance import estimate_importance


@pytest.mark.parametrize(
    ("message", "states_preference", "low", "high"),
    [
        ("谢谢", False, 0.0, 0.15),
        ("ok", False, 0.0, 0.15),
        ("今天天气怎么样", False, 0.3, 0.5),
        ("我们决定用 SQLite，截止 2026-03-01", False, 0.6, 0.9),
        ("记住我的车停在B2", False, 0.9, 1.0),
        ("我喜欢绿茶", True, 0.9, 1.0),
    ],
)
def test_a_more_important_exchange_has_a_higher_score(
    message: str, *, states_preference: bool, low: float, high: float
) -> None:
    assert low <= estimate_importance(message, "好的", states_preference=states_preference) <= high
