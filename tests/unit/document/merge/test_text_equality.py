"""Which messages are the same, and which answers only repeat the memory."""

import pytest

from sync.document.merge.text_equality import have_same_words, is_recalled_answer, line_letters


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


def test_an_answer_that_repeats_the_memory_is_recognised_by_its_lines() -> None:
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
