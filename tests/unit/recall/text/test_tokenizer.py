"""Terms of Chinese and Latin text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync.recall.text.tokenizer import content_terms, normalise, tokenize


def texts(text: str) -> set[str]:
    return {term.text for term in tokenize(text)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("重试", {"重试", "重", "试"}),
        ("吃火鍋", {"火锅", "锅"}),
        ("ＡＢＣ１２３", {"abc123", "abc", "123"}),
        ("fetchUserById", {"fetchuserbyid", "fetch", "user", "id"}),
        ("retry_count", {"retry_count", "retri", "count"}),
        ("src/app.py", {"src/app.py", "app", "py"}),
        ("数据库是PostgreSQL16", {"postgresql16", "postgresql", "16"}),
        ("userStories", {"userstori", "user", "stori"}),
        ("HTTP E1001", {"http", "e1001"}),
        ("C++ 与 C#", {"c++", "c#", "与"}),
        ("Bart在海边", {"bart", "海边"}),
        ("ラーメン", {"ラー", "ーメ"}),
        ("пошёл домой", {"пошёл", "домой"}),
    ],
)
def test_words_identifiers_and_characters_are_terms(text: str, found: set[str]) -> None:
    assert found <= texts(text)


@given(st.text(st.sampled_from("a，！ＡｚＦ～aé\u0301\u3099か…㈱①ﾞｶ火鍋餅")))
def test_what_is_looked_for_before_it_is_folded_does_not_change_the_folding(text: str) -> None:
    plain = unicodedata.normalize("NFKC", text)
    assert normalise(text) == plain.replace("鍋", "锅").replace("餅", "饼")


@pytest.mark.parametrize(
    "forms",
    ["run runs running ran", "city cities", "study studied studying", "make makes made making", "child children"],
)
def test_the_forms_of_a_word_are_one_term(forms: str) -> None:
    assert len(texts(forms)) == 1


@pytest.mark.parametrize("pair", ["was wash", "bus busy", "sing single", "用户 用处"])
def test_different_words_stay_different(pair: str) -> None:
    one, other = pair.split()
    assert texts(one) != texts(other)


def test_function_words_drop_out_unless_there_is_nothing_else() -> None:
    assert {term.text for term in content_terms("我觉得火锅真的很好吃")} >= {"火锅", "好吃"}
    assert not {"觉得", "真的", "锅真"} & {term.text for term in content_terms("我觉得火锅真的很好吃")}
    assert [term.text for term in content_terms("when did the dog bark")] == ["dog", "bark"]
    assert [term.text for term in content_terms("the of")] == ["the", "of"]
    assert {term.text for term in content_terms("的了")} == {"的了", "的", "了"}
