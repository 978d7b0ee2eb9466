"""What says the same, what is counted, what gives memory back."""

import pytest

from sync.document.capture.importance import estimate_importance
from sync.document.markdown.repeat_suffix import increment_repeat_count, split_repeat_count, with_repeat_count
from sync.document.merge.text_equality import have_same_words, is_recalled_answer, line_letters
from sync.document.merge.word_merge import merge_words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("怎么优化启动速度", "请问怎么优化一下启动速度呢？"),
        ("How to sort", "how to sort?"),
        ("ＡＢＣ　测试", "abc测试"),
        ("？", "？"),
    ],
)
def test_case_width_punctuation_and_courtesy_make_no_difference(one: str, other: str) -> None:
    assert have_same_words(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("请帮我把客厅和卧室的灯全部打开，谢谢", "请帮我把客厅和卧室的灯全部关闭，谢谢"),
        ("问题 1", "问题 11"),
        ("不要写注释", "要写注释"),
        ("？", "！"),
        ("", "在吗"),
    ],
)
def test_one_word_is_enough_to_be_another_message(one: str, other: str) -> None:
    assert not have_same_words(one, other)


def test_a_count_stands_behind_the_line_and_goes_up() -> None:
    assert increment_repeat_count("- 用户问：茶") == "- 用户问：茶（×2）"
    assert increment_repeat_count(increment_repeat_count("- 用户问：茶")) == "- 用户问：茶（×3）"
    assert split_repeat_count("- 用户问：茶（×3）") == ("- 用户问：茶", 3)
    assert split_repeat_count("- 用户问：茶（×x）") == ("- 用户问：茶（×x）", 1)
    assert with_repeat_count("- 茶", 1) == "- 茶"


def test_an_edit_and_a_count_are_both_kept() -> None:
    assert merge_words("- 喝茶", "- 喝茶（×2）", "- 喝绿茶") == "- 喝绿茶（×2）"
    assert merge_words("- 喝茶（×2）", "- 喝茶（×3）", "- 喝绿茶（×2）") == "- 喝绿茶（×3）"
    assert merge_words("- 喝茶（×2）", "- 喝茶（×3）", "- 喝绿茶") == "- 喝绿茶（×3）"
    assert merge_words("- 喝红茶", "- 喝绿茶（×2）", "- 喝白茶") is None


def test_an_answer_that_repeats_the_memory_is_known_by_its_lines() -> None:
    lines = [
        "- 用户问：怎么优化启动速度",
        "- 我喜欢简洁的代码，不要写太多注释",
        "- AI 答：可以通过减少启动屏延迟来优化...",
    ]
    known = [line_letters(line) for line in lines]

    assert is_recalled_answer("你说过：我喜欢简洁的代码，不要写太多注释；还问过怎么优化启动速度", known)
    assert not is_recalled_answer("快速排序的平均时间复杂度是 O(n log n)，最坏情况下退化成平方级别", known)
    assert not is_recalled_answer("可以通过减少启动屏延迟来优化", known)
    phrase = "好的，我已经帮你处理完这个任务了，还有什么需要我做的吗"
    assert not is_recalled_answer(phrase, [line_letters(f"- AI 答：{phrase}")])


@pytest.mark.parametrize(
    ("message", "standing", "low", "high"),
    [
        ("谢谢", False, 0.0, 0.15),
        ("ok", False, 0.0, 0.15),
        ("今天天气怎么样", False, 0.3, 0.5),
        ("我们决定用 SQLite，截止 2026-03-01", False, 0.6, 0.9),
        ("记住我的车停在B2", False, 0.9, 1.0),
        ("我喜欢绿茶", True, 0.9, 1.0),
    ],
)
def test_what_matters_more_weighs_more(message: str, *, standing: bool, low: float, high: float) -> None:
    assert low <= estimate_importance(message, "好的", states_preference=standing) <= high
