"""Text that recall has handed out is left out."""

import pytest

from sync.recall.text.echo_filter import LINE_PREFIXES, strip_recalled_context


@pytest.mark.parametrize("prefix", LINE_PREFIXES.values())
def test_what_recall_has_handed_out_is_recognised(prefix: str) -> None:
    line = f"- {prefix}2026-02-03 用户说】爱吃火锅"
    assert strip_recalled_context(f"你好\n{line}\n再见") == "你好\n再见"
    assert strip_recalled_context("前<memory-a1b2c3d4e5f6>\n什么都行\n</memory-a1b2c3d4e5f6>后") == "前后"
    assert strip_recalled_context("<memory-a1b2c3d4e5f6>\n没有关上") == ""
    assert strip_recalled_context("【忆苦思甜】是栏目名") == "【忆苦思甜】是栏目名"
