"""Which profile a document in the memory file belongs to."""

import pytest

from sync.document.markdown.parse import parse
from sync.document.ownership.fingerprints import (
    OwnershipMarks,
    comparable_lines,
    is_other_by_lines,
    is_other_by_marks,
    label_is_in_both,
)

NOBODY = OwnershipMarks(frozenset(), frozenset())


def document(*lines: str, label: str | None = "2026/1/8 09:00:00") -> str:
    body = "".join(f"- {line}\n" for line in lines)
    footer = f"\n---\n\n**最后更新**：{label}\n" if label else ""
    return f"# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n\n{body}{footer}"


def marks(*texts: str) -> OwnershipMarks:
    documents = [parse(text.encode()) for text in texts]
    return OwnershipMarks(
        frozenset(found.label for found in documents if found.label), frozenset(found.sha256 for found in documents)
    )


ANN = document("安喜欢茶", "安用键盘", label="2026/1/8 09:00:00")
COMMON = [f"- 第 {number} 行两人都有" for number in range(4)]
OURS = comparable_lines(["- 本喜欢咖啡", "- 本用鼠标", "- 两人都说", "- 两人都说过", *COMMON])
THEIRS = comparable_lines(["- 安喜欢茶", "- 安用键盘", "- 两人都说", "- 两人都说过", *COMMON])
BEN = document("本喜欢咖啡", "本用鼠标", label="2026/1/8 10:00:00")


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        pytest.param(ANN, True, id="the other's very bytes"),
        pytest.param(BEN, False, id="our very bytes"),
        pytest.param(ANN.replace("安用键盘", "刚打的一行"), True, id="edited: the label names the other's version"),
        pytest.param(BEN.replace("本喜欢咖啡", "安喜欢茶"), False, id="our version into which somebody copied a line"),
        pytest.param(document("谁都没写过", label="2026/1/8 11:00:00"), None, id="a label nobody knows"),
        pytest.param(document("安喜欢茶", label=None), None, id="no label"),
    ],
)
def test_marks_of_only_one_profile_decide(text: str, strange: bool | None) -> None:
    assert is_other_by_marks(parse(text.encode()), marks(BEN), marks(ANN)) is strange


def test_a_label_of_both_profiles_does_not_decide() -> None:
    same = document("同一秒", label="2026/1/8 09:00:00")
    assert is_other_by_marks(parse(document("改过").encode()), marks(same), marks(ANN)) is None


def test_a_profile_that_has_written_nothing_owns_nothing() -> None:
    assert is_other_by_marks(parse(ANN.encode()), NOBODY, NOBODY) is None
    assert is_other_by_marks(parse(ANN.encode()), NOBODY, marks(ANN)) is True


@pytest.mark.parametrize(
    ("lines", "strange"),
    [
        pytest.param(["- 安喜欢茶", "- 安用键盘"], True, id="all the other's"),
        pytest.param(["- 安喜欢茶", "- 新的一行"], True, id="half the other's, the rest new"),
        pytest.param(["- 安喜欢茶", "- 新的一行", "- 又一行"], False, id="a third the other's"),
        pytest.param(["- 安喜欢茶", "- 本喜欢咖啡"], False, id="as much of ours"),
        pytest.param(["- 两人都说", "- 两人都说过"], False, id="what both have says nothing"),
        pytest.param(
            ["- 安喜欢茶", "- 新的一行", "- 两人都说"], True, id="half the other's, apart from what both have"
        ),
        pytest.param(["- 安喜欢茶", *COMMON[1:]], True, id="a quarter the other's, the rest what both have"),
        pytest.param(["- 安喜欢茶", *COMMON], False, id="a fifth the other's, the rest what both have"),
        pytest.param(["* 安喜欢茶", "  - 安用键盘（×2）"], True, id="list markers, spaces and counts do not matter"),
        pytest.param(["- 新的一行"], False, id="all new"),
    ],
)
def test_without_marks_most_lines_decide(lines: list[str], strange: bool) -> None:
    found = parse(("# 记\n\n" + "\n".join(lines) + "\n").encode())
    assert {entry.text for entry in found.entries} == set(lines)
    assert is_other_by_lines(found, OURS, THEIRS, is_one_of_both=False) is strange


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        pytest.param("- 安喜", True, id="the beginning of a line of the other's"),
        pytest.param("- 安喜\n", False, id="a whole line"),
        pytest.param("- 两人", False, id="the beginning of lines of both"),
        pytest.param("- ", False, id="nothing yet"),
        pytest.param("- 本用鼠标\n- 安喜", False, id="as much of ours"),
    ],
)
def test_a_last_line_that_is_cut_off_counts_as_the_line_that_it_begins(text: str, strange: bool) -> None:
    found = parse(f"# 记\n\n{text}".encode())
    assert is_other_by_lines(found, OURS, THEIRS, is_one_of_both=False) is strange


def test_if_both_wrote_the_label_in_one_second_a_single_line_decides() -> None:
    ours = document("本喜欢咖啡", "好的")
    found = parse(document("安喜欢茶", "好的", "新的一行").encode())
    assert label_is_in_both(found, marks(ours), marks(ANN))
    lines = comparable_lines(["- 本喜欢咖啡", "- 好的"]), comparable_lines(["- 安喜欢茶", "- 好的"])
    assert is_other_by_lines(found, *lines, is_one_of_both=True)
    assert not is_other_by_lines(parse(document("好的", "新的一行").encode()), *lines, is_one_of_both=True)
    assert not label_is_in_both(parse(document("安喜欢茶", label=None).encode()), marks(ours), marks(ANN))
