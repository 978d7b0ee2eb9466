"""What kind of message this is."""

import pytest

from sync.recall.relevance.message_signals import asks_for_memory, read_signals


def test_in_a_request_the_user_is_no_subject() -> None:
    assert read_signals("帮我翻译这句话").self_mentions == 0
    assert read_signals("tell me a joke").self_mentions == 0
    assert read_signals("for (int i = 0; i < 5; i++)").self_mentions == 0
    assert read_signals("我喜欢什么，帮我想想").self_mentions == 1


@pytest.mark.parametrize(
    "message", ["继续昨天的 API 重构工作", "上次说到哪了", "where did we leave off", "接着写那个接口"]
)
def test_a_continuation_is_recognised(message: str) -> None:
    assert read_signals(message).continues


@pytest.mark.parametrize(("message", "refers"), [("之前那个方案", True), ("what did I say", True), ("今天几号", False)])
def test_a_reference_to_the_past_is_recognised(message: str, *, refers: bool) -> None:
    assert read_signals(message).refers_to_past is refers


@pytest.mark.parametrize(
    ("message", "is_first", "expected"),
    [
        ("写一个函数", True, True),
        ("写一个函数", False, False),
        ("之前的端口是多少", False, True),
        ("上次说到哪了", False, True),
        ("我们讨论过这个", False, True),
        ("接着写那个接口", False, True),
        ("what did we decide last time?", False, True),
        ("as we discussed", False, True),
        ("write a function", False, False),
        ("  ", True, False),
    ],
)
def test_the_first_message_of_a_session_and_one_about_the_past_ask_for_the_memory(
    message: str, *, is_first: bool, expected: bool
) -> None:
    assert asks_for_memory(message, is_first=is_first) is expected
