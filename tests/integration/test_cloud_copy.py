"""The document's row on the server as a surface: what another program writes there is an edit of what had left."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from sqlalchemy import Connection

from sync.document.capture import ADDED, EDITED, REMOVED
from sync.document.cloud_copy import CloudCopy
from sync.document.remarks import Notice
from sync.log import store as log_store
from tests.integration.document_desk import Desk, on_a_desk

HABITS = "### 工作习惯"
T = TypeVar("T")


@pytest.fixture(params=["device", "user"])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    """One whose document is its device's own, and one that shares it with the person's other devices."""
    async with on_a_desk(tmp_path / "home", sharing=request.param) as found:
        yield found


def copy_of(desk: Desk) -> CloudCopy:
    return CloudCopy(desk.memory, desk.redactor, may_take_in=True)


async def left(desk: Desk) -> str:
    """What has left for the server."""
    copy = copy_of(desk)
    row = await copy.snapshot()
    assert row is not None
    await copy.stored()
    return str(row.content)


async def test_a_document_never_leaves_as_of_an_event_that_it_does_not_have(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server would keep the next one, which has it, out: it is as of the same event."""
    await with_lines(desk, "- 喜欢早起")
    looked = desk.log.database.read

    async def spoken_after(work: Callable[[Connection], T]) -> T:
        found = await looked(work)
        monkeypatch.undo()
        await desk.say("又一句")
        return found

    monkeypatch.setattr(desk.log.database, "read", spoken_after)
    row = await copy_of(desk).snapshot()
    assert row is not None
    assert "又一句" not in row.content
    assert row.through_replica_seq < await desk.log.last_own_seq()


async def test_the_same_document_of_a_new_replica_leaves_under_that_one_s_numbers(desk: Desk) -> None:
    """Under the old, higher number the server would keep every newer document of a copied home out (seed 3341)."""
    await with_lines(desk, "- 喜欢早起", "- 爱喝茶")
    copy = copy_of(desk)
    before = await copy.snapshot()
    await desk.database.write(lambda connection: log_store.renumber(connection, [], desk.clock))

    after = await copy.snapshot()

    assert before is not None
    assert after == replace(before, through_replica_seq=0)


async def taken_in(desk: Desk, content: str) -> bool:
    return await copy_of(desk).take_in_foreign(content)


async def hands(desk: Desk) -> list[tuple[str, object]]:
    return [(event.type, event.payload.get("text")) for event in await desk.hand_events()]


async def with_lines(desk: Desk, *lines: str) -> None:
    await desk.memory.settle()
    await desk.said("一")
    for line in reversed(lines):
        desk.type_under(HABITS, line)
    await desk.memory.settle()


async def test_its_new_line_reaches_the_file_and_its_removed_one_goes(desk: Desk) -> None:
    await with_lines(desk, "- 喜欢早起", "- 不喝咖啡")
    there = await left(desk)
    before = await hands(desk)
    assert await taken_in(desk, there.replace("- 不喝咖啡\n", "").replace("- 喜欢早起\n", "- 喜欢早起\n- 它写的\n"))
    assert sorted((await hands(desk))[len(before) :], key=str) == [(ADDED, "- 它写的"), (REMOVED, None)]
    assert "- 喜欢早起\n- 它写的\n" in desk.text
    assert "不喝咖啡" not in desk.text
    assert (await desk.hand_events())[-1].origin == "imported"


async def test_of_a_stale_text_with_a_footer_of_its_own_nothing_newer_is_removed(desk: Desk) -> None:
    await with_lines(desk, "- 甲")
    there = await left(desk)
    await desk.said("二")
    await left(desk)
    assert await taken_in(desk, there.replace(there.rpartition("：")[2], "1/8/2026, 3:49:12 PM\n") + "- 它写的\n")
    assert "用户问：二\n- AI 答：好的\n" in desk.text
    assert "- 它写的" in desk.text


async def test_its_own_footer_and_time_are_no_obstacle(desk: Desk) -> None:
    await with_lines(desk, "- 甲", "- 乙")
    there = await left(desk)
    await desk.said("二", "三")
    label = there.rpartition("：")[2]
    edited = there.replace(label, "1/8/2026, 3:49:12 PM\n").replace("- 乙\n", "- 乙\n- 丙\n")
    assert await taken_in(desk, edited)
    assert "用户问：二" in desk.text
    assert "用户问：三" in desk.text
    assert "- 乙\n- 丙\n" in desk.text


async def test_what_we_learned_since_is_no_deletion_of_its(desk: Desk) -> None:
    await with_lines(desk, "- 甲")
    there = await left(desk)
    await desk.said("二")
    await left(desk)
    desk.type_under(HABITS, "- 手写")
    assert await taken_in(desk, there + "- 它写的\n")
    assert all(text in desk.text for text in ("用户问：二", "- 手写", "- 它写的", "- 甲"))
    assert REMOVED not in [kind for kind, _ in await hands(desk)]


async def test_every_text_that_leaves_has_a_footer_of_its_own(desk: Desk) -> None:
    await with_lines(desk, "- 甲")
    there = await left(desk)
    await desk.say("还不在文件里")
    assert (await left(desk)).rpartition("：")[2] != there.rpartition("：")[2]
    assert await taken_in(desk, there + "- 它写的\n")
    assert "用户问：还不在文件里" in desk.text
    assert "- 它写的" in desk.text


async def test_the_very_newest_line_can_be_removed_there(desk: Desk) -> None:
    await with_lines(desk, "- 甲")
    await left(desk)
    desk.type_under(HABITS, "- 最新的")
    await desk.memory.settle()
    there = await left(desk)
    assert await taken_in(desk, there.replace("- 最新的\n", ""))
    assert "最新的" not in desk.text


async def test_what_was_made_ready_and_never_left_is_no_deletion_of_its(desk: Desk) -> None:
    await with_lines(desk, "- 甲")
    there = await left(desk)
    await desk.said("离线")
    assert await copy_of(desk).snapshot() is not None
    assert await taken_in(desk, there.replace("- 甲\n", "- 甲\n- 它写的\n"))
    assert "用户问：离线" in desk.text


async def test_a_placeholder_never_takes_the_place_of_what_was_typed(desk: Desk) -> None:
    await with_lines(desk, "- 电话 13812345678，喜欢茶", "- 备用 13900000001")
    there = await left(desk)
    assert "13812345678" not in there
    before = await hands(desk)
    assert await taken_in(desk, there + "- 新的\n")
    assert (await hands(desk))[len(before) :] == [(ADDED, "- 新的")]
    assert "- 电话 13812345678，喜欢茶\n- 备用 13900000001\n" in desk.text
    there = await left(desk)
    assert await taken_in(desk, there.replace("喜欢茶", "喜欢咖啡").replace("- 备用 [手机号]\n", ""))
    assert "- 电话 13812345678，喜欢咖啡\n" in desk.text
    assert "备用" not in desk.text
    assert "[手机号]" not in desk.text
    assert (await hands(desk))[-2:] == [(EDITED, "- 电话 [手机号]，喜欢咖啡"), (REMOVED, None)]


async def test_taken_in_twice_as_after_a_crash_it_is_there_once(desk: Desk) -> None:
    await with_lines(desk, "- 甲")
    foreign = (await left(desk)) + "- 它写的\n"
    assert await taken_in(desk, foreign)
    before = await hands(desk)
    desk.restart()
    assert await taken_in(desk, foreign)
    assert await hands(desk) == before
    assert desk.text.count("- 它写的") == 1


async def test_a_line_removed_here_since_does_not_come_back_with_the_same_text(desk: Desk) -> None:
    await with_lines(desk, "- 甲", "- 乙")
    foreign = (await left(desk)) + "- 它写的\n"
    assert await taken_in(desk, foreign)
    desk.replace("- 它写的\n", "")
    await desk.memory.settle()
    assert await taken_in(desk, foreign)
    assert "- 它写的" not in desk.text


async def test_where_nothing_has_left_yet_nothing_is_a_deletion(desk: Desk) -> None:
    await with_lines(desk, "- 甲")
    assert await taken_in(desk, "# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 甲\n- 从前的\n")
    assert "- 从前的\n" in desk.text
    assert desk.text.count("- 甲\n") == 1
    assert "用户问：一" in desk.text
    assert REMOVED not in [kind for kind, _ in await hands(desk)]


async def test_on_a_new_machine_it_becomes_the_document(desk: Desk) -> None:
    assert await copy_of(desk).snapshot() is None
    assert await taken_in(desk, "# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 从前的\n")
    assert "### 工作习惯\n- 从前的\n" in desk.text


@pytest.mark.parametrize("content", ["", " \n\n"])
async def test_an_emptied_row_deletes_nothing_and_may_be_written_over(desk: Desk, content: str) -> None:
    await with_lines(desk, *(f"- 第{number}条" for number in "甲乙丙丁戊己"))
    await left(desk)
    before, events = desk.text, await hands(desk)
    assert await taken_in(desk, content)
    assert (desk.text, await hands(desk)) == (before, events)


async def test_one_that_cannot_be_read_is_told_and_left(desk: Desk) -> None:
    await with_lines(desk, "- 甲")
    there = await left(desk)
    before = desk.text
    assert not await taken_in(desk, "# 记忆\n\0")
    assert desk.memory.notices == {Notice.CLOUD_UNREADABLE}
    assert desk.text == before
    assert await taken_in(desk, there + "- 它写的\n")
    assert desk.memory.notices == set()


class TestMassDelete:
    @pytest.fixture
    async def foreign(self, desk: Desk) -> str:
        await with_lines(desk, *(f"- 第{number}条" for number in "甲乙丙丁戊己庚辛"))
        await left(desk)
        return "# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 第甲条\n- 它写的\n"

    async def test_it_is_asked_about_and_not_applied(self, desk: Desk, foreign: str) -> None:
        before = desk.text
        for _ in range(2):
            assert not await taken_in(desk, foreign)
        assert desk.memory.notices == {Notice.CLOUD_MASS_DELETE}
        assert desk.text == before

    async def test_accepted_it_becomes_removals(self, desk: Desk, foreign: str) -> None:
        assert not await taken_in(desk, foreign)
        edited = await desk.memory.resolve("accept")
        assert edited is not None
        assert len(edited.operations) > 7
        assert "第乙条" not in desk.text
        assert "- 它写的\n" in desk.text
        assert await taken_in(desk, foreign)
        assert desk.memory.notices == set()

    async def test_refused_ours_may_go_over_it_and_its_text_is_in_the_history(self, desk: Desk, foreign: str) -> None:
        assert not await taken_in(desk, foreign)
        events = await hands(desk)
        assert await desk.memory.resolve("restore") is None
        assert await taken_in(desk, foreign)
        assert await hands(desk) == events
        assert all(f"- 第{number}条\n" in desk.text for number in "甲乙丙丁戊己庚辛")
        assert "- 它写的" not in desk.text
        assert any(past.entries == 2 for past in await desk.memory.versions.history(10))
        assert desk.memory.notices == set()


async def test_whoever_is_not_the_sidecar_leaves_it(desk: Desk) -> None:
    await with_lines(desk, "- 甲")
    guest = CloudCopy(desk.memory, desk.redactor, may_take_in=False)
    assert not await guest.take_in_foreign("# AI 对话记忆\n- 它写的\n")
    assert "它写的" not in desk.text
