"""Which messages have no subject, for the document and for recall."""

import pytest

from sync.small_talk import is_small_talk


@pytest.mark.parametrize(
    "message",
    [
        "谢谢",
        "好的，收到！",
        "继续",
        "666",
        "哈哈哈哈",
        "thanks a lot",
        "ok",
        "happy new year!",
        "👍",
        "？",
        "ＯＫ",
        " 牛 ",
    ],
)
def test_small_talk_has_no_subject(message: str) -> None:
    assert is_small_talk(message)


@pytest.mark.parametrize(
    "message",
    [
        "火锅",
        "早先",
        "我喜欢什么",
        "what do I like",
        "my idea",
        "37*48",
        "谢谢你推荐的火锅店",
        "deploy",
        "好" * 81,
        "  ",
    ],
)
def test_a_message_with_a_subject_is_no_small_talk(message: str) -> None:
    assert not is_small_talk(message)
