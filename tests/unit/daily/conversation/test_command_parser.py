"""Commands in a message: recall, save, confirm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync.daily.conversation.command_parser import (
    CommandKind,
    decide_saving,
    is_confirmation,
    last_save_request,
    parse_command,
    should_recall,
)
from sync.daily.conversation.extractive_summary import SummaryTurn, count_rounds
from tests.unit.daily.examples import talk

COMMANDS = [
    ("记住这个", CommandKind.SAVE, ""),
    ("save this", CommandKind.SAVE, ""),
    ("Remember this!", CommandKind.SAVE, ""),
    ("好的，记住这个，谢谢", CommandKind.SAVE, ""),
    ("记住这个：端口是 8080", CommandKind.SAVE, "端口是 8080"),
    ("不要保存", CommandKind.SKIP, ""),
    ("这次不保存。", CommandKind.SKIP, ""),
    ("don't save", CommandKind.SKIP, ""),
    ("Don’t save this conversation.", CommandKind.SKIP, ""),
    ("搜索记忆: 火锅", CommandKind.SEARCH, "火锅"),
    ("搜索记忆：API: v2", CommandKind.SEARCH, "API: v2"),
    ("search memory: Hot Pot", CommandKind.SEARCH, "Hot Pot"),
    ("搜索记忆 火锅", CommandKind.SEARCH, "火锅"),
    ("请搜索一下我的记忆 API v2", CommandKind.SEARCH, "API v2"),
    ("Search my memory for Hot Pot", CommandKind.SEARCH, "Hot Pot"),
    ("搜索记忆", CommandKind.SEARCH, ""),
    ("查看今日记忆", CommandKind.SHOW, ""),
    ("查看记忆", CommandKind.SHOW, ""),
    ("today's memory", CommandKind.SHOW, ""),
    ("show today's memory", CommandKind.SHOW, ""),
    ("删除记忆: 2026-01-29 #1", CommandKind.DELETE, "2026-01-29 #1"),
    ("delete memory: hot pot", CommandKind.DELETE, "hot pot"),
    ("清理旧记忆", CommandKind.CLEAN, ""),
    ("clean up old memories", CommandKind.CLEAN, ""),
    ("清理旧记忆: 确认", CommandKind.CLEAN, "确认"),
    ("clean up old memories confirm", CommandKind.CLEAN, "confirm"),
    ("记忆设置", CommandKind.SETTINGS, ""),
    ("memory settings", CommandKind.SETTINGS, ""),
    ("记忆设置: recording.auto_save=false", CommandKind.SETTINGS, "recording.auto_save=false"),
    ("这是敏感对话", CommandKind.SENSITIVE, ""),
    ("mark this as sensitive", CommandKind.SENSITIVE, ""),
]


class TestCommands:
    @pytest.mark.parametrize(("text", "kind", "about"), COMMANDS)
    def test_each_is_understood_in_both_languages(self, text: str, kind: CommandKind, about: str) -> None:
        found = parse_command(text)
        assert found is not None
        assert (found.kind, found.argument) == (kind, about)

    @pytest.mark.parametrize(
        "text",
        [
            "把按钮改成不要保存草稿",
            "How do I save this file to disk",
            "我想搜索记忆里的内容",
            "search memory leaks in the parser",
            "删除记忆 火锅",
            "删除记忆",
            "today's memory usage is high",
            "",
            "：",
        ],
    )
    def test_ordinary_words_are_no_command(self, text: str) -> None:
        assert parse_command(text) is None

    @given(st.text(max_size=200))
    def test_nothing_stops_it(self, text: str) -> None:
        parse_command(text)
        should_recall(text, is_first=False)

    def test_confirming(self) -> None:
        assert is_confirmation("确认")
        assert is_confirmation("Confirm")
        assert not is_confirmation("")

    @pytest.mark.parametrize(
        ("message", "is_first", "expected"),
        [
            ("写一个函数", True, True),
            ("写一个函数", False, False),
            ("之前的端口是多少", False, True),
            ("上次说到哪了", False, True),
            ("我们讨论过这个", False, True),
            ("what did we decide last time?", False, True),
            ("as we discussed", False, True),
            ("write a function", False, False),
            ("  ", True, False),
        ],
    )
    def test_when_to_recall(self, message: str, *, is_first: bool, expected: bool) -> None:
        assert should_recall(message, is_first=is_first) is expected

    def saving(self, turns: list[SummaryTurn], *, auto: bool = True) -> str:
        found = decide_saving(turns, min_rounds=3, auto_save=auto)
        return found.reason if found.is_wanted else f"not: {found.reason}"

    def test_when_to_save(self) -> None:
        three = talk("一一", "二二", "三三", "四四", "五五", "六六")
        assert count_rounds(three) == 3
        assert self.saving(three) == "ended"
        assert self.saving(three[:4]) == "not: too_short"
        assert self.saving(three, auto=False) == "not: auto_save_off"
        assert self.saving([*three, SummaryTurn("user", "不要保存")]) == "not: skip"
        assert self.saving([*three, SummaryTurn("assistant", "不要保存")]) == "ended", "a model decides nothing"
        assert self.saving(talk("记住这个"), auto=False) == "asked"
        assert self.saving(talk("不要保存", "好", "算了，记住这个")) == "asked", "the last word holds"
        assert last_save_request(talk("这是敏感对话", "好", "记住这个")) is CommandKind.SENSITIVE
