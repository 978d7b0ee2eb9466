"""用户偏好 and 常用操作 with a real sidecar: facts and frequent commands are lines, and a manual edit answers them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.environment import events_of, wait_for_lines, wait_until_reconciled
from tests.sidecar import Home, Sidecar, wait_until


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


@pytest.fixture
def sidecar(home: Home) -> Iterator[Sidecar]:
    with Sidecar(home) as sidecar:
        yield sidecar


def lines_of(text: str, heading: str) -> list[str]:
    lines = text.partition(f"### {heading}\n")[2].partition("\n#")[0].splitlines()
    return [line for line in lines if line.startswith("- ")]


def preferences_of(text: str) -> str:
    return text.partition("## 用户偏好")[2].partition("## 重要对话记录")[0]


def edit(home: Home, old: str, new: str) -> None:
    text = home.file.read_text("utf-8")
    assert old in text
    home.file.write_text(text.replace(old, new, 1), "utf-8")


def status_of(sidecar: Sidecar, statement: str) -> str:
    facts: list[dict[str, Any]] = sidecar.call("understanding/facts", status="all")["facts"]
    return next((str(fact["status"]) for fact in facts if fact["statement"] == statement), "")


def test_what_the_user_says_of_themselves_is_shown_at_once_and_a_change_replaces_it(
    home: Home, sidecar: Sidecar
) -> None:
    sidecar.update("我对花生过敏", "记住了")
    assert "- 我对花生过敏" in lines_of(sidecar.load()["document"], "个人情况")
    sidecar.update("我更喜欢深色主题", "好")
    wait_for_lines(home, "- 我更喜欢深色主题")
    sidecar.update("我不再喜欢深色主题了，改用浅色", "好的，换成浅色")
    wait_until(lambda: "浅色" in preferences_of(home.file.read_text("utf-8")))
    wait_until_reconciled(sidecar)
    shown = preferences_of(home.file.read_text("utf-8"))
    assert "- 我更喜欢深色主题\n" not in shown
    assert shown.count("浅色") == 1
    assert "facts" in {version["cause"] for version in sidecar.call("memory/history")["versions"]}


def test_a_line_deleted_by_hand_retracts_its_fact_and_an_edited_one_edits_it(home: Home, sidecar: Sidecar) -> None:
    sidecar.update("我对花生过敏", "记住了")
    sidecar.update("我住在宁波", "好")
    wait_for_lines(home, "- 我对花生过敏", "- 我住在宁波")
    edit(home, "- 我对花生过敏\n", "")
    wait_until_reconciled(sidecar)
    edit(home, "- 我住在宁波", "- 我住在温州")
    wait_until_reconciled(sidecar)
    assert status_of(sidecar, "我对花生过敏") == "retracted"
    assert status_of(sidecar, "我住在温州") == "active"
    sidecar.update("我对花生过敏", "我知道")
    wait_for_lines(home, "我知道")
    wait_until_reconciled(sidecar)
    shown = preferences_of(home.file.read_text("utf-8"))
    assert "花生" not in shown
    assert "- 我住在温州\n" in shown


def test_a_line_that_is_written_again_or_restored_confirms_its_fact(home: Home, sidecar: Sidecar) -> None:
    def newest_version() -> str:
        wait_until_reconciled(sidecar)
        return str(sidecar.call("memory/history")["versions"][0]["sha256"])

    sidecar.update("接口前缀是什么", "是 /api/v2")
    wait_for_lines(home, "接口前缀是什么")
    before = newest_version()
    sidecar.update("我对花生过敏", "记住了")
    wait_for_lines(home, "- 我对花生过敏")
    with_line = newest_version()
    shown = home.file.read_text("utf-8")
    edit(home, "- 我对花生过敏\n", "")
    wait_until_reconciled(sidecar)
    assert status_of(sidecar, "我对花生过敏") == "retracted"
    home.file.write_text(shown, "utf-8")  # as the editor's undo does
    wait_until_reconciled(sidecar)
    assert status_of(sidecar, "我对花生过敏") == "active"
    for sha256, status in ((before, "retracted"), (with_line, "active")):
        sidecar.call("memory/restore", sha256=sha256)
        assert status_of(sidecar, "我对花生过敏") == status
    assert lines_of(sidecar.load()["document"], "个人情况") == ["- 我对花生过敏"]


def test_a_document_from_before_keeps_its_lines_and_gets_the_subsection(home: Home) -> None:
    home.file.write_text(
        "# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 早上先看日志\n\n### 技术偏好\n- 用 Mac\n\n"
        "## 重要对话记录\n\n### 2026/1/8\n- 用户问：去哪\n- AI 答：去山里\n- 我自己写的\n\n"
        "**最后更新**：2026/1/8 15:49:12\n",
        "utf-8",
    )
    with Sidecar(home) as sidecar:
        wait_until_reconciled(sidecar)
        sidecar.update("我对花生过敏", "记住了")
        wait_for_lines(home, "- 我对花生过敏")
        text = home.file.read_text("utf-8")
        assert lines_of(text, "工作习惯") == ["- 早上先看日志"]
        assert lines_of(text, "技术偏好") == ["- 用 Mac"]
        assert lines_of(text, "个人情况") == ["- 我对花生过敏"]
        assert "- 我自己写的\n" in text


def test_small_talk_stays_in_the_log_and_code_is_a_placeholder(home: Home, sidecar: Sidecar) -> None:
    assert sidecar.update("谢谢！", "不客气")["reason"] == "below_min_importance"
    code = "\n".join(f"line{number} = {number}" for number in range(12))
    sidecar.update("写一个快速排序", f"这样：\n```python\n{code}\n```\n完成。")
    wait_for_lines(home, "- AI 答：这样： [代码 python，12 行] 完成。")
    text = home.file.read_text("utf-8")
    assert "谢谢" not in text
    assert "```" not in text
    assert len(events_of(sidecar, "exchange_recorded")) == 2


def test_commands_of_three_days_are_listed_with_their_count_until_they_are_deleted(
    home: Home, sidecar: Sidecar
) -> None:
    for day in (3, 4, 4, 5):
        call = {"tool": "Shell", "details": {"command": "pnpm vitest"}}
        event = {"ts": f"2026-06-0{day}T04:00:00.000Z", "type": "tool_call", "session_id": "s", "payload": call}
        sidecar.call("events/append", event=event)
    sidecar.update("接口前缀是什么", "是 /api/v2")
    wait_for_lines(home, "- `pnpm vitest`（×4）")
    assert lines_of(home.file.read_text("utf-8"), "常用命令") == ["- `pnpm vitest`（×4）"]
    edit(home, "- `pnpm vitest`（×4）\n", "")
    wait_until_reconciled(sidecar)
    sidecar.stop()
    with Sidecar(home) as again:
        again.update("数据库是什么", "PostgreSQL")
        wait_for_lines(home, "数据库是什么")
        wait_until_reconciled(again)
    assert "pnpm" not in home.file.read_text("utf-8")


def test_an_english_document_shows_facts_and_commands_in_english(home: Home) -> None:
    home.settings["DOCUMENT__LANGUAGE"] = "en"
    with Sidecar(home) as sidecar:
        sidecar.update("I am allergic to peanuts", "Noted")
        wait_for_lines(home, "- I am allergic to peanuts")
        assert lines_of(home.file.read_text("utf-8"), "About me") == ["- I am allergic to peanuts"]
