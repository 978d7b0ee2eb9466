"""The document's row on the server as a surface: what another program writes there is an edit of what was sent."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace

from sync.db.engine import Transaction
from sync.document.surfaces.cloud_document import CloudDocument
from sync.document.surfaces.notices import Notice
from sync.log import store as log_store
from sync.log.event_types import ENTRY_ADDED, ENTRY_EDITED, ENTRY_REMOVED
from tests.integration.document.harness import DocumentHarness, open_document_harness

HABITS = "### 工作习惯"
T = TypeVar("T")


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "home") as found:
        yield found


def copy_of(harness: DocumentHarness) -> CloudDocument:
    return CloudDocument(harness.memory, harness.redactor, may_import=True)


async def sent_contents(harness: DocumentHarness) -> str:
    """What was sent to the server."""
    copy = copy_of(harness)
    row = await copy.snapshot()
    assert row is not None
    await copy.mark_stored()
    return str(row.content)


async def test_a_sent_document_has_every_event_up_to_its_number(
    harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server would keep the next one, which has it, out: it is as of the same event."""
    await with_lines(harness, "- 喜欢早起")
    looked = harness.log.database.read

    async def spoken_after(work: Callable[[Transaction], T]) -> T:
        found = await looked(work)
        monkeypatch.undo()
        await harness.record_exchange("又一句")
        return found

    monkeypatch.setattr(harness.log.database, "read", spoken_after)
    row = await copy_of(harness).snapshot()
    assert row is not None
    assert "又一句" not in row.content
    assert row.through_replica_seq < await harness.database.read(log_store.last_own_seq)


async def test_after_a_fork_the_same_document_is_sent_with_the_new_replicas_numbers(harness: DocumentHarness) -> None:
    """Under the old, higher number the server would keep every newer document of a copied home out (seed 3341)."""
    await with_lines(harness, "- 喜欢早起", "- 爱喝茶")
    copy = copy_of(harness)
    before = await copy.snapshot()
    await harness.database.write(lambda connection: log_store.renumber_as_new_replica(connection, [], harness.clock))

    after = await copy.snapshot()

    assert before is not None
    assert after == replace(before, through_replica_seq=0)


async def ingest_foreign(harness: DocumentHarness, content: str) -> bool:
    return await copy_of(harness).import_foreign(content)


async def manual_edits(harness: DocumentHarness) -> list[tuple[str, object]]:
    return [(event.type, event.payload.get("text")) for event in await harness.manual_edit_events()]


async def with_lines(harness: DocumentHarness, *lines: str) -> None:
    await harness.memory.reconcile()
    await harness.record_and_reconcile("一")
    for line in reversed(lines):
        harness.add_line_under(HABITS, line)
    await harness.memory.reconcile()


async def test_its_new_line_reaches_the_file_and_its_removed_one_goes(harness: DocumentHarness) -> None:
    await with_lines(harness, "- 喜欢早起", "- 不喝咖啡")
    there = await sent_contents(harness)
    before = await manual_edits(harness)
    assert await ingest_foreign(
        harness, there.replace("- 不喝咖啡\n", "").replace("- 喜欢早起\n", "- 喜欢早起\n- 它写的\n")
    )
    assert sorted((await manual_edits(harness))[len(before) :], key=str) == [
        (ENTRY_ADDED, "- 它写的"),
        (ENTRY_REMOVED, None),
    ]
    assert "- 喜欢早起\n- 它写的\n" in harness.text
    assert "不喝咖啡" not in harness.text
    assert (await harness.manual_edit_events())[-1].origin == "imported"


async def test_of_a_stale_text_with_a_footer_of_its_own_nothing_newer_is_removed(harness: DocumentHarness) -> None:
    await with_lines(harness, "- 甲")
    there = await sent_contents(harness)
    await harness.record_and_reconcile("二")
    await sent_contents(harness)
    assert await ingest_foreign(
        harness, there.replace(there.rpartition("：")[2], "1/8/2026, 3:49:12 PM\n") + "- 它写的\n"
    )
    assert "用户问：二\n- AI 答：好的\n" in harness.text
    assert "- 它写的" in harness.text


async def test_its_own_footer_and_time_are_no_obstacle(harness: DocumentHarness) -> None:
    await with_lines(harness, "- 甲", "- 乙")
    there = await sent_contents(harness)
    await harness.record_and_reconcile("二", "三")
    label = there.rpartition("：")[2]
    edited = there.replace(label, "1/8/2026, 3:49:12 PM\n").replace("- 乙\n", "- 乙\n- 丙\n")
    assert await ingest_foreign(harness, edited)
    assert "用户问：二" in harness.text
    assert "用户问：三" in harness.text
    assert "- 乙\n- 丙\n" in harness.text


async def test_lines_recorded_since_are_not_removed_by_its_edit(harness: DocumentHarness) -> None:
    await with_lines(harness, "- 甲")
    there = await sent_contents(harness)
    await harness.record_and_reconcile("二")
    await sent_contents(harness)
    harness.add_line_under(HABITS, "- 手写")
    assert await ingest_foreign(harness, there + "- 它写的\n")
    assert all(text in harness.text for text in ("用户问：二", "- 手写", "- 它写的", "- 甲"))
    assert ENTRY_REMOVED not in [kind for kind, _ in await manual_edits(harness)]


async def test_every_text_that_leaves_has_a_footer_of_its_own(harness: DocumentHarness) -> None:
    await with_lines(harness, "- 甲")
    there = await sent_contents(harness)
    await harness.record_exchange("还不在文件里")
    assert (await sent_contents(harness)).rpartition("：")[2] != there.rpartition("：")[2]
    assert await ingest_foreign(harness, there + "- 它写的\n")
    assert "用户问：还不在文件里" in harness.text
    assert "- 它写的" in harness.text


async def test_the_very_newest_line_can_be_removed_there(harness: DocumentHarness) -> None:
    await with_lines(harness, "- 甲")
    await sent_contents(harness)
    harness.add_line_under(HABITS, "- 最新的")
    await harness.memory.reconcile()
    there = await sent_contents(harness)
    assert await ingest_foreign(harness, there.replace("- 最新的\n", ""))
    assert "最新的" not in harness.text


async def test_a_version_that_was_never_sent_is_no_base(harness: DocumentHarness) -> None:
    await with_lines(harness, "- 甲")
    there = await sent_contents(harness)
    await harness.record_and_reconcile("离线")
    assert await copy_of(harness).snapshot() is not None
    assert await ingest_foreign(harness, there.replace("- 甲\n", "- 甲\n- 它写的\n"))
    assert "用户问：离线" in harness.text


async def test_a_placeholder_never_takes_the_place_of_what_was_typed(harness: DocumentHarness) -> None:
    await with_lines(harness, "- 电话 13812345678，喜欢茶", "- 备用 13900000001")
    there = await sent_contents(harness)
    assert "13812345678" not in there
    before = await manual_edits(harness)
    assert await ingest_foreign(harness, there + "- 新的\n")
    assert (await manual_edits(harness))[len(before) :] == [(ENTRY_ADDED, "- 新的")]
    assert "- 电话 13812345678，喜欢茶\n- 备用 13900000001\n" in harness.text
    there = await sent_contents(harness)
    assert await ingest_foreign(harness, there.replace("喜欢茶", "喜欢咖啡").replace("- 备用 [手机号]\n", ""))
    assert "- 电话 13812345678，喜欢咖啡\n" in harness.text
    assert "备用" not in harness.text
    assert "[手机号]" not in harness.text
    assert (await manual_edits(harness))[-2:] == [(ENTRY_EDITED, "- 电话 [手机号]，喜欢咖啡"), (ENTRY_REMOVED, None)]


async def test_taken_in_twice_as_after_a_crash_it_is_there_once(harness: DocumentHarness) -> None:
    await with_lines(harness, "- 甲")
    foreign = (await sent_contents(harness)) + "- 它写的\n"
    assert await ingest_foreign(harness, foreign)
    before = await manual_edits(harness)
    harness.restart()
    assert await ingest_foreign(harness, foreign)
    assert await manual_edits(harness) == before
    assert harness.text.count("- 它写的") == 1


async def test_a_line_removed_here_since_does_not_come_back_with_the_same_text(harness: DocumentHarness) -> None:
    await with_lines(harness, "- 甲", "- 乙")
    foreign = (await sent_contents(harness)) + "- 它写的\n"
    assert await ingest_foreign(harness, foreign)
    harness.replace("- 它写的\n", "")
    await harness.memory.reconcile()
    assert await ingest_foreign(harness, foreign)
    assert "- 它写的" not in harness.text


async def test_where_nothing_has_left_yet_nothing_is_a_deletion(harness: DocumentHarness) -> None:
    await with_lines(harness, "- 甲")
    assert await ingest_foreign(harness, "# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 甲\n- 从前的\n")
    assert "- 从前的\n" in harness.text
    assert harness.text.count("- 甲\n") == 1
    assert "用户问：一" in harness.text
    assert ENTRY_REMOVED not in [kind for kind, _ in await manual_edits(harness)]


async def test_on_a_new_machine_it_becomes_the_document(harness: DocumentHarness) -> None:
    assert await copy_of(harness).snapshot() is None
    assert await ingest_foreign(harness, "# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 从前的\n")
    assert "### 工作习惯\n- 从前的\n" in harness.text


@pytest.mark.parametrize("content", ["", " \n\n"])
async def test_an_emptied_row_deletes_nothing_and_may_be_written_over(harness: DocumentHarness, content: str) -> None:
    await with_lines(harness, *(f"- 第{number}条" for number in "甲乙丙丁戊己"))
    await sent_contents(harness)
    before, events = harness.text, await manual_edits(harness)
    assert await ingest_foreign(harness, content)
    assert (harness.text, await manual_edits(harness)) == (before, events)


async def test_an_unreadable_row_is_reported_and_left_alone(harness: DocumentHarness) -> None:
    await with_lines(harness, "- 甲")
    there = await sent_contents(harness)
    before = harness.text
    assert not await ingest_foreign(harness, "# 记忆\n\0")
    assert harness.memory.notices == {Notice.CLOUD_UNREADABLE}
    assert harness.text == before
    assert await ingest_foreign(harness, there + "- 它写的\n")
    assert harness.memory.notices == set()


class TestMassDelete:
    @pytest.fixture
    async def foreign(self, harness: DocumentHarness) -> str:
        await with_lines(harness, *(f"- 第{number}条" for number in "甲乙丙丁戊己庚辛"))
        await sent_contents(harness)
        return "# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 第甲条\n- 它写的\n"

    async def test_it_is_asked_about_and_not_applied(self, harness: DocumentHarness, foreign: str) -> None:
        before = harness.text
        for _ in range(2):
            assert not await ingest_foreign(harness, foreign)
        assert harness.memory.notices == {Notice.CLOUD_MASS_DELETE}
        assert harness.text == before

    async def test_accepted_it_becomes_removals(self, harness: DocumentHarness, foreign: str) -> None:
        assert not await ingest_foreign(harness, foreign)
        edited = await harness.memory.resolve("accept")
        assert edited is not None
        assert len(edited.operations) > 7
        assert "第乙条" not in harness.text
        assert "- 它写的\n" in harness.text
        assert await ingest_foreign(harness, foreign)
        assert harness.memory.notices == set()

    async def test_refused_ours_may_go_over_it_and_its_text_is_in_the_history(
        self, harness: DocumentHarness, foreign: str
    ) -> None:
        assert not await ingest_foreign(harness, foreign)
        events = await manual_edits(harness)
        edited = await harness.memory.resolve("restore")
        assert edited is not None
        assert edited.operations == ()
        assert await ingest_foreign(harness, foreign)
        assert await manual_edits(harness) == events
        assert all(f"- 第{number}条\n" in harness.text for number in "甲乙丙丁戊己庚辛")
        assert "- 它写的" not in harness.text
        assert any(past.entries == 2 for past in await harness.memory.versions.history(10))
        assert harness.memory.notices == set()


async def test_a_process_that_is_not_the_sidecar_leaves_the_row_alone(harness: DocumentHarness) -> None:
    await with_lines(harness, "- 甲")
    guest = CloudDocument(harness.memory, harness.redactor, may_import=False)
    assert not await guest.import_foreign("# AI 对话记忆\n- 它写的\n")
    assert "它写的" not in harness.text
