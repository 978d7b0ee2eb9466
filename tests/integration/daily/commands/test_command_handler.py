"""Each spoken command, in both languages."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from sync.daily.pages.page_folders import PAGES_PATH
from sync.daily.record_service import RecordRequest
from tests.integration.daily.harness import SAMPLE_TURNS, open_daily_harness
from tests.support import START


@pytest.mark.parametrize("text", ["记住这个", "save this"])
async def test_save_records_the_conversation(tmp_path: Path, text: str) -> None:
    async with open_daily_harness(tmp_path) as harness:
        reply = await harness.send_command(text, session_id="s1", turns=SAMPLE_TURNS[:2])
        assert reply.done
        assert reply.records is not None
        assert reply.records[0].content.topic in reply.message


@pytest.mark.parametrize("text", ["不要保存", "don't save"])
async def test_skip_erases_the_conversation_and_save_resumes_it(tmp_path: Path, text: str) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await harness.append_messages("s1")
        assert (await harness.send_command(text, session_id="s1")).done
        assert (await harness.service.record_service.record_conversation(RecordRequest("s1"))).reason == "skip"
        again = await harness.send_command("记住这个")
        assert again.done, "the newest session is meant"
        assert "不会恢复" in again.message
        assert await harness.topics() == [], "what was erased does not come back"
        await harness.append_messages("s1")
        assert (await harness.send_command("记住这个", session_id="s1")).done
        assert len(await harness.topics()) == 1


@pytest.mark.parametrize("text", ["查看今日记忆", "today's memory"])
async def test_show_returns_the_page_of_today(tmp_path: Path, text: str) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await harness.record("今天的")
        await harness.record("以前的", moment=START - timedelta(days=3))
        reply = await harness.send_command(text)
        assert reply.page is not None
        assert "今天的" in reply.page
        assert "以前的" not in reply.page


@pytest.mark.parametrize("text", ["查看昨天的记忆", "What did you save yesterday?"])
async def test_show_returns_the_page_of_the_day_that_is_named(tmp_path: Path, text: str) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await harness.record("今天的")
        await harness.record("昨天的", moment=START - timedelta(days=1))
        reply = await harness.send_command(text)
        assert reply.page is not None
        assert "昨天的" in reply.page
        assert "今天的" not in reply.page


@pytest.mark.parametrize(
    "text", ["删除记忆: 火锅", "delete memory: 火锅", "删除关于火锅的记忆", "forget everything about 火锅"]
)
async def test_delete_removes_one_record_and_lists_several(tmp_path: Path, text: str) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await harness.record("吃火锅")
        await harness.record("做火锅")
        reply = await harness.send_command(text)
        assert not reply.done
        assert len(reply.records or ()) == 2, "several are shown, none goes"
        assert (await harness.send_command("删除记忆: 做火锅")).done
        assert await harness.topics() == ["吃火锅"]
        assert (await harness.send_command(text)).done
        assert await harness.topics() == []


@pytest.mark.parametrize(
    ("text", "sure"),
    [("清理旧记忆", "清理旧记忆: 确认"), ("clean up old memories", "clean up old memories: confirm")],
)
async def test_clean_expires_old_records_after_a_confirmation(tmp_path: Path, text: str, sure: str) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await harness.record("旧的", moment=START - timedelta(days=200))
        assert not (await harness.send_command(text)).done
        assert await harness.topics() == ["旧的"]
        assert (await harness.send_command(sure)).done
        assert await harness.topics() == []


@pytest.mark.parametrize(("read", "write"), [("记忆设置", "记忆设置: "), ("memory settings", "memory settings: ")])
async def test_settings_are_shown_and_written(tmp_path: Path, read: str, write: str) -> None:
    async with open_daily_harness(tmp_path) as harness:
        assert (await harness.send_command(f"{write}recording.auto_save=false")).done
        reply = await harness.send_command(read)
        assert reply.options is not None
        assert not reply.options.value.recording.auto_save
        assert json.loads((harness.home / PAGES_PATH / "config.json").read_text("utf-8")) == {
            "recording": {"auto_save": False}
        }
