"""The repeat count of a line."""

from sync.document.markdown.repeat_suffix import increment_repeat_count, split_repeat_count, with_repeat_count
from sync.texts.language import EN


def test_a_count_is_appended_to_the_line_and_grows() -> None:
    assert increment_repeat_count("- 用户问：茶") == "- 用户问：茶（×2）"
    assert increment_repeat_count(increment_repeat_count("- 用户问：茶")) == "- 用户问：茶（×3）"
    assert split_repeat_count("- 用户问：茶（×3）") == ("- 用户问：茶", 3)
    assert split_repeat_count("- 用户问：茶（×x）") == ("- 用户问：茶（×x）", 1)
    assert with_repeat_count("- 茶", 1) == "- 茶"


def test_the_count_has_the_language_of_its_line() -> None:
    assert increment_repeat_count("- User asked: tea") == "- User asked: tea (×2)"
    assert increment_repeat_count("- User asked: tea (×2)") == "- User asked: tea (×3)"
    assert split_repeat_count("- User asked: tea (×3)") == ("- User asked: tea", 3)
    assert with_repeat_count("- make test", 4, EN) == "- make test (×4)"
