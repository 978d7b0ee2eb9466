"""The block of a system prompt, and how long a session keeps it."""

import pytest

from sync.context.stable_block import StableBlock, framed

CONTENT = """\
# AI 对话记忆

## 用户偏好

### 工作习惯
- 早上先看日志
- （待补充）

### 2026/1/8
- 用户问：打开自动更新

**最后更新**：2026/1/8 23:40:59
"""


def test_the_memory_stands_between_its_marks_and_the_rules_come_after_it() -> None:
    prompt = framed(CONTENT, "k3v9")
    before, _, rest = prompt.partition("<memory-k3v9>\n")
    memory, _, after = rest.partition("\n</memory-k3v9>\n")
    assert "## 📝 用户记忆（自动加载）" in before
    assert "- 早上先看日志" in memory
    assert "## 🤖 记忆使用规则" in after
    assert "get_ai_memory" in after


@pytest.mark.parametrize(
    ("change", "is_kept"),
    [
        (("", ""), True),
        (("\n### 2026/1/8", "\n### 2026/1/9\n- 用户问：换壁纸\n\n### 2026/1/8"), True),  # added
        (("（待补充）", "喝绿茶"), True),  # a placeholder is replaced
        (("23:40:59", "23:41:00"), True),  # written again
        (("早上先看日志", "晚上先看日志"), False),  # corrected
        (("- 用户问：打开自动更新\n", ""), False),  # removed or erased
    ],
)
def test_a_session_keeps_its_block_while_every_line_of_it_holds(change: tuple[str, str], *, is_kept: bool) -> None:
    assert StableBlock(CONTENT, 6_000).holds(CONTENT.replace(*change), 6_000) is is_kept
    assert not StableBlock(CONTENT, 6_000).holds(CONTENT, 2_000), "another limit is another block"


def test_texts_that_the_block_shows_are_recognised_also_where_it_shortens_them() -> None:
    shown = StableBlock(
        "- 用户问：帮我把这台电脑上的自动更新打开并且...\n- 【书房 2026/1/8】换了壁纸\n", 6_000
    ).shown_texts()
    assert shown.has("帮我把这台电脑上的自动更新打开并且告诉我结果")
    assert shown.has("换了壁纸。")
    assert not shown.has("换了窗帘")
    assert not StableBlock("", 6_000).shown_texts().has("换了壁纸")
