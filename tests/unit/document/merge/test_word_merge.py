"""Two edits of one line merged by words."""

import pytest

from sync.document.merge.word_merge import merge_words


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("我喜欢红茶", "我很喜欢红茶", "我喜欢绿茶", "我很喜欢绿茶"),
        ("我喜欢红茶", "我喜欢绿茶", "我喜欢红酒", None),
        ("use tabs here", "use spaces here", "use tabs there", "use spaces there"),
        ("use tabs", "use two spaces", "always indent", None),
        ("- x", "- x a", "- x b", None),
        ("- x", "- x a", "- x a", "- x a"),
        ("- x", "- x", "- y", "- y"),
        ("- x", "- y", "- x", "- y"),
    ],
)
def test_words_merge_unless_they_conflict(base: str, ours: str, theirs: str, merged: str | None) -> None:
    assert merge_words(base, ours, theirs) == merged
    assert merge_words(base, theirs, ours) == merged


def test_an_edit_and_a_count_are_both_kept() -> None:
    assert merge_words("- 喝茶", "- 喝茶（×2）", "- 喝绿茶") == "- 喝绿茶（×2）"
    assert merge_words("- 喝茶（×2）", "- 喝茶（×3）", "- 喝绿茶（×2）") == "- 喝绿茶（×3）"
    assert merge_words("- 喝茶（×2）", "- 喝茶（×3）", "- 喝绿茶") == "- 喝绿茶（×3）"
    assert merge_words("- 喝红茶", "- 喝绿茶（×2）", "- 喝白茶") is None
