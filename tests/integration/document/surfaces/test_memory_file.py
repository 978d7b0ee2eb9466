"""The memory file on real SQLite and a real folder, without processes: reconcile, manual edits, odd files, notices."""

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sync.document.markdown.parse import MAX_BYTES
from sync.document.surfaces.notices import Notice
from sync.errors import StorageError
from sync.log.event_types import ENTRY_ADDED, ENTRY_EDITED, ENTRY_REMOVED
from sync.system.digests import sha256
from tests.integration.document.harness import DocumentHarness, open_document_harness

HABITS = "### 工作习惯"
PHONE = "13812345678"


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "home") as found:
        yield found


class TestSettling:
    async def test_nothing_is_written_while_there_is_nothing_to_say(self, harness: DocumentHarness) -> None:
        await harness.memory.reconcile()
        assert not harness.file.exists()
        assert await harness.versions() == []
        assert not (await harness.memory.view()).exists

    async def test_the_first_exchange_makes_the_file_from_the_template(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("今天几号")
        assert "### 2026/1/8\n- 用户问：今天几号\n- AI 答：好的\n" in harness.text
        assert harness.text.startswith("# AI 对话记忆\n")
        assert stat.S_IMODE(harness.file.stat().st_mode) == 0o600

    async def test_settling_again_changes_nothing(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一", "二")
        before = (harness.file.read_bytes(), harness.file.stat().st_mtime_ns, await harness.versions())
        for _ in range(3):
            harness.clock.advance(minutes=1)
            await harness.memory.reconcile()
        assert (harness.file.read_bytes(), harness.file.stat().st_mtime_ns, await harness.versions()) == before
        assert await harness.manual_edit_events() == []

    async def test_a_file_at_rest_is_looked_at_without_a_write(self, harness: DocumentHarness) -> None:
        await harness.record_exchange("你好", "好的")
        await harness.memory.reconcile()
        await harness.memory.reconcile()
        before = harness.database.change_token()
        await harness.memory.reconcile()
        assert harness.database.change_token() == before

    async def test_exchanges_of_one_moment_make_one_version(self, harness: DocumentHarness) -> None:
        for number in range(5):
            await harness.record_exchange(f"问题 {number}")
        await harness.memory.reconcile()
        assert len(await harness.versions()) == 1
        assert [line for line in harness.text.splitlines() if "用户问" in line] == [
            f"- 用户问：问题 {n}" for n in range(5)
        ]

    async def test_every_version_has_a_label_of_its_own_even_in_one_second(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile(*(f"问题 {number}" for number in range(6)))
        labels = [label for label, _ in await harness.versions()]
        assert len(labels) == len(set(labels)) == 6
        assert harness.text.rstrip().endswith(f"**最后更新**：{labels[-1]}")

    async def test_a_clock_that_goes_back_does_not_repeat_a_label(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        harness.clock.advance(days=-3)
        await harness.record_and_reconcile("二", "三")
        labels = [label for label, _ in await harness.versions()]
        assert len(set(labels)) == 3

    async def test_old_versions_go_and_the_number_that_stays_is_bounded(self, tmp_path: Path) -> None:
        async with open_document_harness(tmp_path / "few", keep_versions=20) as harness:
            await harness.record_and_reconcile(*(f"问题 {number}" for number in range(30)))
            assert len(await harness.versions()) == 20
            assert harness.text.count("用户问") == 30

    async def test_the_view_has_what_the_file_has_not_yet(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("旧的")
        await harness.record_exchange("新的")
        view = await harness.memory.view()
        assert "旧的" in view.text
        assert "新的" in view.text
        assert "新的" not in harness.text

    async def test_what_the_view_shows_is_what_settling_writes(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("旧的")
        await harness.memory.reconcile()
        view = await harness.memory.view()
        assert view.text == harness.text
        assert view.sha256 == sha256(harness.file.read_bytes())

    async def test_the_file_counts_as_unchanged_until_a_program_writes_it(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        assert harness.memory.is_unchanged
        harness.add_line_under(HABITS, "- 早起")
        assert not harness.memory.is_unchanged


class TestTextLikeOurs:
    """Lines of the user's that only look like what the program writes."""

    async def test_a_line_that_begins_like_the_footer_stays_where_it_is(self, harness: DocumentHarness) -> None:
        own = "# 我的笔记\n\n**最后更新**: 2025-01-11 由夜班填写，勿改\n\n## 厨房\n- 菜刀每月磨一次\n"
        harness.text = own
        await harness.record_and_reconcile("一")
        assert harness.text.startswith(own)
        assert any("夜班" in event.payload["text"] for event in await harness.manual_edit_events())
        assert harness.text.index("## 重要对话记录") < harness.text.index("**最后更新**：2026/1/8 ")

    @pytest.mark.parametrize("added", ["- 新的\n", "## 附录\n**最后更新**：2025-01-11 由夜班填写\n"])
    async def test_what_is_written_below_the_footer_gets_the_footer_below_it(
        self, harness: DocumentHarness, added: str
    ) -> None:
        await harness.record_and_reconcile("一")
        before, label = harness.text.split("\n**最后更新**：")
        harness.text += added
        for _ in range(2):
            await harness.memory.reconcile()
            assert harness.text.startswith(f"{before}\n{added}\n---\n\n**最后更新**：2026/1/8 ")
            assert harness.text.count("**最后更新**：2026/") == 1
        assert label.strip() not in [event.payload["text"] for event in await harness.manual_edit_events()]

    async def test_a_heading_in_a_comment_is_no_section(self, harness: DocumentHarness) -> None:
        own = "<!--\n## 重要对话记录\n-->\n我的\n"
        harness.text = own
        await harness.record_and_reconcile("一")
        assert harness.text.startswith(own)
        assert harness.text.count("\n## 重要对话记录\n") == 2

    async def test_a_line_like_a_placeholder_stays(self, harness: DocumentHarness) -> None:
        harness.text = "- 甲\n\n## 重要对话记录\n* ( to be added )\n"
        await harness.record_and_reconcile("一")
        assert "## 重要对话记录\n* ( to be added )\n\n### 2026/1/8\n" in harness.text


class TestHandEdits:
    async def test_a_typed_line_becomes_an_event_and_stays_as_typed(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        harness.add_line_under(HABITS, f"- 电话 {PHONE}")
        before = harness.text
        await harness.memory.reconcile()
        (event,) = await harness.manual_edit_events()
        assert event.type == ENTRY_ADDED
        assert event.payload["text"] == "- 电话 [手机号]"
        assert event.payload["section"] == ["用户偏好", "工作习惯"]
        assert harness.text == before

    async def test_an_edited_line_names_what_it_was(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        harness.add_line_under(HABITS, "- 喜欢早起")
        await harness.memory.reconcile()
        added = (await harness.manual_edit_events())[0]
        harness.replace("- 喜欢早起", "- 喜欢早起跑步")
        await harness.memory.reconcile()
        edited = (await harness.manual_edit_events())[1]
        assert edited.type == ENTRY_EDITED
        assert edited.payload["entry_id"] == added.payload["entry_id"]
        assert edited.payload["base_hash"] == sha256("- 喜欢早起".encode())
        assert edited.payload["text"] == "- 喜欢早起跑步"

    async def test_a_removed_line_stays_removed(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一", "二")
        harness.replace("- 用户问：二\n- AI 答：好的\n", "")
        await harness.memory.reconcile()
        assert [event.type for event in await harness.manual_edit_events()] == [ENTRY_REMOVED, ENTRY_REMOVED]
        await harness.record_and_reconcile("三")
        assert "用户问：二" not in harness.text
        assert "用户问：一" in harness.text
        assert "用户问：三" in harness.text

    async def test_the_same_edit_is_recorded_once_however_often_it_is_seen(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        harness.add_line_under(HABITS, "- 早起")
        for _ in range(4):
            await harness.memory.reconcile()
            harness.restart()
        assert len(await harness.manual_edit_events()) == 1

    async def test_an_update_that_arrives_with_an_edit_keeps_both(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        harness.add_line_under(HABITS, "- 早起")
        await harness.record_and_reconcile("二")
        assert "- 早起\n" in harness.text
        assert "用户问：二" in harness.text
        assert [event.type for event in await harness.manual_edit_events()] == [ENTRY_ADDED]

    async def test_a_stale_buffer_loses_nothing_of_five_newer_updates(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("旧的")
        buffer = harness.text
        await harness.record_and_reconcile(*(f"新的 {number}" for number in range(5)))
        harness.text = buffer.replace(f"{HABITS}\n", f"{HABITS}\n- 我打的字\n")
        await harness.memory.reconcile()
        assert all(f"用户问：新的 {number}\n" in harness.text for number in range(5))
        assert "- 我打的字\n" in harness.text
        assert [event.type for event in await harness.manual_edit_events()] == [ENTRY_ADDED]

    async def test_a_buffer_older_than_every_kept_version_deletes_nothing(self, tmp_path: Path) -> None:
        async with open_document_harness(tmp_path / "few", keep_versions=20) as harness:
            await harness.record_and_reconcile("旧的")
            buffer = harness.text
            harness.clock.advance(minutes=5)
            await harness.record_and_reconcile(*(f"新的 {number}" for number in range(30)))
            harness.text = buffer.replace(f"{HABITS}\n", f"{HABITS}\n- 我打的字\n")
            await harness.memory.reconcile()
            assert all(f"用户问：新的 {number}\n" in harness.text for number in range(30))
            assert "- 我打的字\n" in harness.text
            assert ENTRY_REMOVED not in [event.type for event in await harness.manual_edit_events()]

    async def test_a_deleted_newest_line_stays_deleted(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一", "二")
        harness.replace("- 用户问：二\n- AI 答：好的\n", "")
        await harness.memory.reconcile()
        await harness.memory.reconcile()
        harness.restart()
        await harness.memory.reconcile()
        assert "用户问：二" not in harness.text

    async def test_typing_and_undoing_deletes_what_was_typed_although_the_bytes_are_old(
        self, harness: DocumentHarness
    ) -> None:
        """An undo brings back an older version's bytes: no stale buffer, but an editor that holds its own save."""
        await harness.record_and_reconcile("一")
        buffer = harness.text
        harness.add_line_under(HABITS, "- 写错了")
        await harness.record_and_reconcile("二")  # the typed line is taken in, and a newer version written
        harness.text = buffer  # the editor, which has not reloaded, undoes and saves again
        await harness.memory.reconcile()
        assert "- 写错了" not in harness.text
        assert "用户问：二" in harness.text
        assert [event.type for event in await harness.manual_edit_events()] == [ENTRY_ADDED, ENTRY_REMOVED]

    async def test_a_line_that_names_a_missing_section_is_not_lost(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        harness.replace("## 重要对话记录", "## 我的记录")
        await harness.record_and_reconcile("二")
        assert "## 我的记录" in harness.text
        assert "用户问：一" in harness.text
        assert "用户问：二" in harness.text

    async def test_an_entry_too_large_for_an_event_stays_in_the_file(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        large = "- " + "很长的一行" * 8_000
        harness.add_line_under(HABITS, large)
        await harness.memory.reconcile()
        assert await harness.memory.warnings() == {Notice.LARGE_ENTRY}
        assert await harness.manual_edit_events() == []
        await harness.record_and_reconcile("二")
        assert large in harness.text
        assert "用户问：二" in harness.text
        harness.restart()
        assert await harness.memory.preview_notices() == {Notice.LARGE_ENTRY}  # as long as the file has it
        harness.replace(large + "\n", "")
        await harness.memory.reconcile()
        assert await harness.memory.warnings() == set()


class TestFirstContact:
    async def test_a_file_that_was_there_before_us_is_taken_in_and_kept(self, harness: DocumentHarness) -> None:
        harness.text = "# 我的笔记\n\n- 一条旧的\n\n随便写的一段\n"
        await harness.memory.reconcile()
        events = await harness.manual_edit_events()
        assert [event.payload["text"] for event in events] == ["- 一条旧的", "随便写的一段"]
        assert {event.origin for event in events} == {"imported"}
        assert harness.text == "# 我的笔记\n\n- 一条旧的\n\n随便写的一段\n"

    async def test_it_keeps_the_mode_its_owner_gave_it(self, harness: DocumentHarness) -> None:
        harness.text = "# 我的笔记\n"
        harness.file.chmod(0o640)
        await harness.record_and_reconcile("一")
        assert stat.S_IMODE(harness.file.stat().st_mode) == 0o640

    async def test_events_recorded_before_the_file_was_ever_seen_join_it(self, harness: DocumentHarness) -> None:
        await harness.record_exchange("先说的")
        harness.text = "# 我的笔记\n\n- 一条旧的\n"
        await harness.memory.reconcile()
        assert "- 一条旧的\n" in harness.text
        assert "用户问：先说的" in harness.text


class TestLosses:
    @pytest.mark.parametrize("content", ["", "\n\n  \n", "\ufeff"])
    async def test_an_emptied_file_is_not_a_deletion(self, harness: DocumentHarness, content: str) -> None:
        await harness.record_and_reconcile("一", "二")
        harness.text = content
        await harness.memory.reconcile()
        assert Notice.MASS_DELETE in harness.memory.notices
        assert await harness.manual_edit_events() == []
        assert harness.text == content  # left alone while there is nothing new to write
        assert "用户问：一" in (await harness.memory.view()).text

    async def test_an_emptied_file_is_filled_again_by_the_next_update(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一", "二")
        harness.text = ""
        await harness.memory.reconcile()
        await harness.record_and_reconcile("三")
        assert all(f"用户问：{name}" in harness.text for name in "一二三")
        assert harness.memory.notices == set()

    async def test_a_vanished_file_is_not_a_deletion(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一", "二")
        harness.file.unlink()
        await harness.memory.reconcile()
        assert harness.memory.notices == {Notice.MISSING}
        assert await harness.manual_edit_events() == []
        assert not harness.file.exists()

    async def test_a_vanished_file_is_made_again_by_the_next_update(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一", "二")
        harness.file.unlink()
        await harness.memory.reconcile()
        await harness.record_and_reconcile("三")
        assert all(f"用户问：{name}" in harness.text for name in "一二三")
        assert stat.S_IMODE(harness.file.stat().st_mode) == 0o600
        assert harness.memory.notices == set()

    async def test_a_mostly_shrunk_file_is_held_and_released_when_its_lines_come_back(
        self, harness: DocumentHarness
    ) -> None:
        await harness.record_and_reconcile(*(f"问题 {number}" for number in range(10)))
        whole = harness.text
        harness.text = whole.partition("- 用户问：问题 1\n")[0] + whole[whole.rindex("---") :]
        held = harness.text
        await harness.memory.reconcile()
        assert harness.memory.notices == {Notice.MASS_DELETE}
        await harness.record_and_reconcile("held back")
        assert harness.text == held  # not overwritten before the user answers
        assert "held back" in (await harness.memory.view()).text
        harness.text = whole
        await harness.memory.reconcile()
        assert harness.memory.notices == set()
        assert all(f"用户问：问题 {number}\n" in harness.text for number in range(10))
        assert "held back" in harness.text
        assert await harness.manual_edit_events() == []

    async def test_a_few_removed_lines_are_daily_work(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile(*(f"问题 {number}" for number in range(10)))
        harness.replace("- 用户问：问题 4\n- AI 答：好的\n", "")
        await harness.memory.reconcile()
        assert harness.memory.notices == set()
        assert len(await harness.manual_edit_events()) == 2


class TestOddFiles:
    async def test_crlf_stays_crlf_and_is_no_edit(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        harness.file.write_bytes(harness.file.read_bytes().replace(b"\n", b"\r\n"))
        await harness.memory.reconcile()
        assert await harness.manual_edit_events() == []
        await harness.record_and_reconcile("二")
        data = harness.file.read_bytes()
        assert data.count(b"\n") == data.count(b"\r\n")
        assert "用户问：二".encode() in data

    async def test_a_byte_order_mark_stays(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        harness.file.write_bytes(b"\xef\xbb\xbf" + harness.file.read_bytes())
        await harness.memory.reconcile()
        assert await harness.manual_edit_events() == []
        await harness.record_and_reconcile("二")
        assert harness.file.read_bytes().startswith(b"\xef\xbb\xbf# AI")
        assert "\ufeff" not in (await harness.memory.view()).text

    async def test_gb18030_is_read_flagged_and_written_in_its_own_encoding(self, harness: DocumentHarness) -> None:
        harness.file.write_bytes("# 我的记忆\n\n## 用户偏好\n\n- 喜欢喝茶，不喜欢咖啡\n".encode("gb18030"))
        await harness.memory.reconcile()
        assert await harness.memory.warnings() == {Notice.NOT_UTF8}
        harness.restart()
        await harness.memory.reconcile()
        assert await harness.memory.warnings() == {Notice.NOT_UTF8}
        assert [event.payload["text"] for event in await harness.manual_edit_events()] == ["- 喜欢喝茶，不喜欢咖啡"]
        await harness.record_and_reconcile("还记得吗")
        text = harness.file.read_bytes().decode("gb18030")
        assert "- 喜欢喝茶，不喜欢咖啡\n" in text
        assert "用户问：还记得吗" in text

    @pytest.mark.parametrize(
        "data",
        [b"# memo\n\0\n- line\n", "# 记忆\n- 一条\n".encode() + b"\xff\xfe broken", b"- line\n" * 700_000],
        ids=["NUL", "damaged UTF-8", "above 4 MiB"],
    )
    async def test_an_unreadable_file_is_not_touched(self, harness: DocumentHarness, data: bytes) -> None:
        await harness.record_and_reconcile("一")
        harness.file.write_bytes(data)
        await harness.record_and_reconcile("二")
        assert harness.file.read_bytes() == data
        assert harness.memory.notices == {Notice.UNTOUCHABLE}
        assert "用户问：二" in (await harness.memory.view()).text  # capture goes on
        assert await harness.manual_edit_events() == []

    async def test_a_placeholder_of_a_cloud_folder_is_neither_read_nor_written(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        icloud = harness.file.with_name(f".{harness.file.name}.icloud")
        for make in (lambda: os.truncate(harness.file, 4_096), lambda: harness.file.replace(icloud)):
            if harness.file.exists():
                harness.file.write_bytes(b"")
            make()
            await harness.record_exchange("二")
            with pytest.raises(StorageError, match="placeholder"):
                await harness.memory.reconcile()
            assert await harness.memory.warnings() == {Notice.UNREACHABLE}
        assert not harness.file.exists()

    async def test_conflict_markers_and_an_open_fence_are_named(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        harness.add_line_under(HABITS, "<<<<<<< HEAD\n- 甲\n=======\n- 乙\n>>>>>>> other")
        await harness.memory.reconcile()
        assert await harness.memory.warnings() == {Notice.MERGE_MARKERS}
        harness.replace("<<<<<<< HEAD\n", "```\n")
        await harness.memory.reconcile()
        assert await harness.memory.warnings() == {Notice.OPEN_FENCE}
        harness.replace("=======\n", "```\n")
        await harness.memory.reconcile()
        assert await harness.memory.warnings() == set()

    async def test_a_memory_that_outgrew_the_limit_goes_on_and_can_be_made_smaller(
        self, harness: DocumentHarness
    ) -> None:
        await harness.record_and_reconcile("一")
        page = "\n".join(f"- 第 {number} 页 {'字' * 3_000}" for number in range(465))
        harness.add_line_under(HABITS, page)
        await harness.memory.reconcile()
        assert await harness.memory.warnings() == set()
        for number in range(40):
            await harness.record_exchange(f"问题 {number} {'问' * 40}", "答" * 90)
        await harness.memory.reconcile()
        assert harness.file.stat().st_size > MAX_BYTES
        assert "问题 39" in harness.text
        harness.restart()
        assert await harness.memory.preview_notices() == set()
        harness.replace("\n".join(page.split("\n")[:50]) + "\n", "")
        await harness.memory.reconcile()
        await harness.record_and_reconcile("还在吗")
        assert "用户问：还在吗" in harness.text
        assert "- 第 49 页" not in harness.text
        assert "- 第 50 页" in harness.text

    async def test_a_repaired_file_gets_what_was_recorded_meanwhile(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        good = harness.file.read_bytes()
        harness.file.write_bytes(good + b"\0")
        await harness.record_and_reconcile("二")
        harness.file.write_bytes(good)
        await harness.memory.reconcile()
        assert "用户问：二" in harness.text
        assert harness.memory.notices == set()

    async def test_front_matter_stays_at_the_top_byte_for_byte(self, harness: DocumentHarness) -> None:
        harness.text = "---\ntitle: 记忆\ntags: [a, b]\n---\n# AI 对话记忆\n\n- 一条\n"
        await harness.record_and_reconcile("一")
        assert harness.text.startswith("---\ntitle: 记忆\ntags: [a, b]\n---\n# AI 对话记忆\n\n- 一条\n")

    async def test_unclosed_fences_tables_and_unknown_text_survive_an_update(self, harness: DocumentHarness) -> None:
        odd = "# 标题\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```sh\n# 没有关上\nls\n\n> 引用 <b>x</b>\n"
        harness.text = odd
        await harness.record_and_reconcile("一")
        assert harness.text.startswith(odd.rstrip("\n"))

    async def test_a_symlink_stays_a_symlink_and_its_target_is_written(
        self, harness: DocumentHarness, tmp_path: Path
    ) -> None:
        target = tmp_path / "elsewhere" / "notes.md"
        target.parent.mkdir()
        target.write_text("# 我的笔记\n\n- 一条\n", "utf-8")
        harness.file.symlink_to(target)
        await harness.record_and_reconcile("一")
        assert harness.file.is_symlink()
        assert "用户问：一" in target.read_text("utf-8")
        assert "- 一条\n" in target.read_text("utf-8")
        assert [path.name for path in harness.file.parent.glob(".*tmp")] == []

    async def test_a_dangling_symlink_gets_its_target(self, harness: DocumentHarness, tmp_path: Path) -> None:
        target = tmp_path / "elsewhere.md"
        harness.file.symlink_to(target)
        await harness.record_and_reconcile("一")
        assert harness.file.is_symlink()
        assert "用户问：一" in target.read_text("utf-8")
