"""A message that asks to remember its words."""

import pytest

from sync.daily.commands.fact_commands import read_wish


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Remember that the shed key hangs behind the door.", "the shed key hangs behind the door"),
        ("记住：钥匙在门后。备用的在车里。", "钥匙在门后。备用的在车里。"),
        ("The shed key hangs behind the door. Remember this.", "The shed key hangs behind the door"),
        ("Remember that I ski. Remember that I skate.", "I ski\nI skate"),
        ("能不能记一下我的车位在三楼？", "我的车位在三楼"),
    ],
)
def test_its_words_are_all_that_it_says(message: str, words: str) -> None:
    wish = read_wish(message)
    assert wish is not None
    assert wish.argument == words


@pytest.mark.parametrize(
    "message",
    [
        "Remember that I ski. Which resort is best?",
        "I moved in May. Remember that the rent is 900.",
        "老师说：记住三角形内角和是一百八十度",
        "remember the milk",
        "你还记得我吗",
        "",
    ],
)
def test_a_message_that_says_or_asks_more_is_for_the_model(message: str) -> None:
    assert read_wish(message) is None
