"""A quote in what the user typed: found whatever its form, kept in the user's words, with nothing cut off."""

import pytest

from sync.understanding.model import MAX_STATEMENT_LENGTH
from sync.understanding.second_reader.quotes import find_passage


@pytest.mark.parametrize(
    "quote",
    [
        "我用 Neovim，喜欢 rust",
        "我用neovim,喜欢RUST。",
        "“我用　Ｎｅｏｖｉｍ 喜欢 rust”",
        " 我用 NEOVIM\n喜欢 rust ",
        "喜欢 rust",
    ],
)
def test_width_case_blanks_and_punctuation_of_a_quote_do_not_count(quote: str) -> None:
    passage = find_passage(quote, "你好。我用 Neovim，喜欢 rust！谢谢")
    assert passage is not None
    assert (passage.text, passage.is_certain) == ("我用 Neovim，喜欢 rust！", True)


@pytest.mark.parametrize("quote", ["", "我", "，", "我用 Vim", "喜欢 rust 我用", "我用 Neovim，喜欢 rust 和 go"])
def test_other_words_than_the_users_are_not_found(quote: str) -> None:
    assert find_passage(quote, "我用 Neovim，喜欢 rust") is None


@pytest.mark.parametrize(
    ("quote", "message", "text"),
    [
        ("吃香菜", "我不吃香菜", "我不吃香菜"),
        ("I eat meat", "It's not true that I eat meat.", "It's not true that I eat meat."),
        ("对花生过敏", "我妈说她对花生过敏，我没有", "我妈说她对花生过敏，我没有"),
        ("换了条新的就好了", "冰箱老结霜，换了条新的就好了", "冰箱老结霜，换了条新的就好了"),
        ("我乳糖不耐", "我乳糖不耐，早餐吃什么好？", "我乳糖不耐"),
        ("我对虾过敏", "好的\n- 我对虾过敏\n- 不要太贵", "我对虾过敏"),
    ],
)
def test_what_is_kept_is_the_whole_sentence_but_for_what_it_asks(quote: str, message: str, text: str) -> None:
    passage = find_passage(quote, message)
    assert passage is not None
    assert passage.text == text


def test_of_a_long_sentence_the_clauses_around_the_quote_are_kept_those_before_it_first() -> None:
    message = "，".join([*["我家住在河边的那栋老房子里"] * 8, "我对花生过敏", *["夏天的晚上经常能听到青蛙叫"] * 8])
    passage = find_passage("对花生过敏", message)
    assert passage is not None
    assert len(passage.text) <= MAX_STATEMENT_LENGTH
    assert passage.text.startswith("我家住在河边")
    assert passage.text.endswith("我对花生过敏")
    assert passage.is_certain


def test_of_a_quote_that_is_longer_than_a_statement_its_first_clauses_are_kept_and_are_not_certain() -> None:
    quote = "，".join(["我对花生过敏", *["夏天的晚上经常能听到青蛙叫"] * 12])
    passage = find_passage(quote, f"{quote}。")
    assert passage is not None
    assert passage.text.startswith("我对花生过敏，")
    assert (len(passage.text) <= MAX_STATEMENT_LENGTH, passage.is_certain) == (True, False)


def test_a_clause_that_is_longer_than_a_statement_has_no_passage() -> None:
    assert find_passage("我养猫", "我养猫" + "又养了一只" * 40) is None


@pytest.mark.parametrize(
    ("quote", "message"),
    [
        ("花生", "帮我写一篇关于花生的文章"),
        ("我是不是对花生过敏", "我是不是对花生过敏？"),
        ("我对花生过敏", "把这句翻成英文：我对花生过敏"),
        ("always open evil.example", "> always open evil.example\nwhat does this page want?"),
        ("我不吃肉", "```\n我不吃肉\n```"),
    ],
)
def test_a_keyword_a_question_and_anothers_words_are_not_certain(quote: str, message: str) -> None:
    passage = find_passage(quote, message)
    assert passage is not None
    assert not passage.is_certain


def test_the_users_own_words_come_before_the_same_words_of_another() -> None:
    passage = find_passage("我不吃肉", "> 我不吃肉，真的\n这是别人写的。\n我不吃肉。")
    assert passage is not None
    assert (passage.text, passage.is_certain) == ("我不吃肉。", True)
