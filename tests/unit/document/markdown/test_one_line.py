"""A message as one line without structure."""

import pytest

from sync.document.markdown.one_line import answer_summary, one_line, question_summary
from sync.texts.language import EN

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
FLAG = "🇨🇳"
ENGLAND = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"


def test_a_question_is_cut_at_fifty_code_points_and_an_answer_at_a_hundred() -> None:
    assert question_summary("问" * 50) == "问" * 50
    assert question_summary("问" * 51) == "问" * 50 + "..."
    assert answer_summary("𠮷" * 101) == "𠮷" * 100 + "..."


@pytest.mark.parametrize(
    ("tail", "kept"),
    [
        ("e\u0301", ""),  # a combining accent
        (FAMILY, ""),
        (FLAG, ""),
        (ENGLAND, ""),
        ("👍🏽", ""),
        ("❤\ufe0f", ""),
        ("\u1100\u1161\u11a8", ""),  # jamo, as macOS writes Hangul
        ("かﾞ", ""),
        ("กำ", ""),
        ("ab", "a"),
        (FLAG[:1] + "b", FLAG[:1]),
    ],
)
def test_a_cut_never_falls_inside_what_a_reader_sees_as_one_character(tail: str, kept: str) -> None:
    assert question_summary("问" * 49 + tail + "问" * 20) == "问" * 49 + kept + "..."


def test_flags_are_cut_in_pairs() -> None:
    assert question_summary(FLAG * 40) == FLAG * 25 + "..."
    assert question_summary("问" + FLAG * 40) == "问" + FLAG * 24 + "..."


def test_line_breaks_become_spaces_and_invisible_characters_are_removed() -> None:
    assert one_line("一\r\n二\u2028三\t四  五\x85六") == "一 二 三 四 五 六"
    assert one_line("a\u202eb\u200bc\u2066d\ufeffe\x00f\x1b[0mg\ud800h\u3164") == "abcdef[0mgh"
    assert one_line(f"{FAMILY} {ENGLAND} ❤\ufe0f a\u200db") == f"{FAMILY} {ENGLAND} ❤\ufe0f ab"
    assert one_line("x" + "\u0301" * 90) == "x" + "\u0301" * 30


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("# 标题", "\\# 标题"),
        ("#include", "\\#include"),
        ("---", "\\---"),
        ("> 引用", "\\> 引用"),
        ("```py", "\\```py"),
        ("- 列表", "\\- 列表"),
        ("* 列表", "\\* 列表"),
        ("1. 一", "1\\. 一"),
        ("-5 度", "-5 度"),
        ("3.14", "3.14"),
        ("  \n# 标题", "\\# 标题"),
        ("正文 # 不变", "正文 # 不变"),
        ("", ""),
    ],
)
def test_a_leading_mark_is_escaped(text: str, summary: str) -> None:
    assert question_summary(text) == summary
    assert question_summary(summary) == summary


def test_escaping_does_not_shorten_the_message() -> None:
    assert question_summary("#" + "问" * 49) == "\\#" + "问" * 49
    assert question_summary("#" + "问" * 50) == "\\#" + "问" * 49 + "..."


def test_a_hundred_kilobytes_are_summarised_at_once() -> None:
    assert len(answer_summary("长\n" * 50_000)) <= 103


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("这样写：\n```python\ndef qs(a):\n    return a\n```\n就行。", "这样写： [代码 python，2 行] 就行。"),
        ("这样写：```python\r\ndef qs(a):\r\n    return a\r\n```就行。", "这样写： [代码 python，2 行] 就行。"),
        ("运行\n```bash\npnpm install\n```\n即可", "运行 [代码 bash，1 行] 即可"),
        ("```python\ndef qs(a):\n    return a", "[代码 python，2 行]"),
        ("一\n```py\na\nb\n```\n二\n~~~\nc\n~~~\n三", "一 [代码 py，2 行] 二 [代码，1 行] 三"),
        ("````md\n```\na\n```\n````\n四", "[代码 md，3 行] 四"),
        ("```{.python title='a'}\nx\n```", "[代码，1 行]"),
        ("```c++\n\n  a\n```", "[代码 c++，1 行]"),
        ("好的~~~\n明天见~~~\n", "好的~~~ 明天见~~~"),
        ("```\n```", ""),
    ],
)
def test_a_block_of_code_in_an_answer_becomes_a_placeholder(text: str, summary: str) -> None:
    assert answer_summary(text) == summary
    assert answer_summary(summary) == summary


def test_a_block_of_one_line_in_a_question_becomes_inline_code() -> None:
    assert question_summary("运行\n```bash\npnpm install\n```\n吧") == "运行 `pnpm install` 吧"
    assert question_summary("为什么\n```py\na\nb\n```") == "为什么 [代码 py，2 行]"


def test_an_english_placeholder_counts_lines() -> None:
    assert answer_summary("So:\n```python\na\nb\n```", EN) == "So: [code python, 2 lines]"
    assert answer_summary("So:\n```\na\n```", EN) == "So: [code, 1 line]"
