"""Which Chinese words a query in pinyin may mean."""

import pytest

from sync.recall.query import parse_query
from sync.recall.text.pinyin import pinyin_words
from tests.support import FixedClock


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("huoguo", "火锅"),
        ("huo guo", "火锅"),
        ("bushu jiekou", "部署"),
        ("bushu jiekou", "接口"),
        ("Beijing", "北京"),
    ],
)
def test_a_word_in_pinyin_is_a_chinese_word_that_sounds_so(text: str, word: str) -> None:
    assert any(word in words for words in pinyin_words(text))


@pytest.mark.parametrize("text", ["change the name", "women here", "PostgreSQL", "火锅", "a", "deploy"])
def test_english_and_names_are_no_pinyin(text: str) -> None:
    assert pinyin_words(text) == []


def test_what_sounds_alike_is_asked_for_beside_the_word_itself_and_weighs_less() -> None:
    terms = parse_query("huoguo", (), FixedClock()).terms
    assert terms["火锅"] < terms["huoguo"]
