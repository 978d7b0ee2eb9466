"""The memory file on real SQLite and a real folder, without processes: settle, hand edits, odd files, notices."""

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sync.digests import sha256
from sync.document.capture import ADDED, EDITED, REMOVED
from sync.document.parse import MAX_BYTES
from sync.document.remarks import Notice
from tests.integration.document_desk import Desk, on_a_desk

HABITS = "### 工作习惯"
PHONE = "13812345678"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with on_a_desk(tmp_path / "home") as found:
        yield found


class TestSettling:
    async def test_nothing_is_written_while_there_is_nothing_to_say(self, desk: Desk) -> None:
        await desk.memory.settle()
        assert not desk.file.exists()
        assert await desk.versions() == []
        assert not (await desk.memory.view()).exists

    async def test_the_first_exchange_makes_the_file_from_the_template(self, desk: Desk) -> None:
        await desk.said("今天几号")
        assert "### 2026/1/8\n- 用户问：今天几号\n- AI 答：好的\n" in desk.text
        assert desk.text.startswith("# AI 对话记忆\n")
        assert stat.S_IMODE(desk.file.stat().st_mode) == 0o600

    async def test_settling_again_changes_nothing(self, desk: Desk) -> None:
        await desk.said("一", "二")
        before = (desk.file.read_bytes(), desk.file.stat().st_mtime_ns, await desk.versions())
        for _ in range(3):
            desk.clock.move(minutes=1)
            await desk.memory.settle()
        assert (desk.file.read_bytes(), desk.file.stat().st_mtime_ns, await desk.versions()) == before
        assert await desk.hand_events() == []

    async def test_a_file_at_rest_is_looked_at_without_a_write(self, desk: Desk) -> None:
        await desk.say("你好", "好的")
        await desk.memory.settle()
        await desk.memory.settle()
        before = desk.database.token()
        await desk.memory.settle()
        assert desk.database.token() == before

    async def test_exchanges_of_one_moment_make_one_version(self, desk: Desk) -> None:
        for number in range(5):
            await desk.say(f"问题 {number}")
        await desk.memory.settle()
        assert len(await desk.versions()) == 1
        assert [line for line in desk.text.splitlines() if "用户问" in line] == [
            f"- 用户问：问题 {n}" for n in range(5)
        ]

    async def test_every_version_has_a_label_of_its_own_even_in_one_second(self, desk: Desk) -> None:
        await desk.said(*(f"问题 {number}" for number in range(6)))
        labels = [label for label, _ in await desk.versions()]
        assert len(labels) == len(set(labels)) == 6
        assert desk.text.rstrip().endswith(f"**最后更新**：{labels[-1]}")

    async def test_a_clock_that_goes_back_does_not_repeat_a_label(self, desk: Desk) -> None:
        await desk.said("一")
        desk.clock.move(days=-3)
        await desk.said("二", "三")
        labels = [label for label, _ in await desk.versions()]
        assert len(set(labels)) == 3

    async def test_old_versions_go_and_the_number_that_stays_is_bounded(self, tmp_path: Path) -> None:
        async with on_a_desk(tmp_path / "few", keep_versions=20) as desk:
            await desk.said(*(f"问题 {number}" for number in range(30)))
            assert len(await desk.versions()) == 20
            assert desk.text.count("用户问") == 30

    async def test_the_view_has_what_the_file_has_not_yet(self, desk: Desk) -> None:
        await desk.said("旧的")
        await desk.say("新的")
        view = await desk.memory.view()
        assert "旧的" in view.text
        assert "新的" in view.text
        assert "新的" not in desk.text

    async def test_what_the_view_shows_is_what_settling_writes(self, desk: Desk) -> None:
        await desk.said("旧的")
        await desk.memory.settle()
        view = await desk.memory.view()
        assert view.text == desk.text
        assert view.sha256 == sha256(desk.file.read_bytes())

    async def test_looking_is_known_until_somebody_writes(self, desk: Desk) -> None:
        await desk.said("一")
        assert desk.memory.looked_at
        desk.type_under(HABITS, "- 早起")
        assert not desk.memory.looked_at


class TestHandEdits:
    async def test_a_typed_line_becomes_an_event_and_stays_as_typed(self, desk: Desk) -> None:
        await desk.said("一")
        desk.type_under(HABITS, f"- 电话 {PHONE}")
        before = desk.text
        await desk.memory.settle()
        (event,) = await desk.hand_events()
        assert event.type == ADDED
        assert event.payload["text"] == "- 电话 [手机号]"
        assert event.payload["section"] == ["用户偏好", "工作习惯"]
        assert desk.text == before

    async def test_an_edited_line_names_what_it_was(self, desk: Desk) -> None:
        await desk.said("一")
        desk.type_under(HABITS, "- 喜欢早起")
        await desk.memory.settle()
        added = (await desk.hand_events())[0]
        desk.replace("- 喜欢早起", "- 喜欢早起跑步")
        await desk.memory.settle()
        edited = (await desk.hand_events())[1]
        assert edited.type == EDITED
        assert edited.payload["entry_id"] == added.payload["entry_id"]
        assert edited.payload["base_hash"] == sha256("- 喜欢早起".encode())
        assert edited.payload["text"] == "- 喜欢早起跑步"

    async def test_a_removed_line_stays_removed(self, desk: Desk) -> None:
        await desk.said("一", "二")
        desk.replace("- 用户问：二\n- AI 答：好的\n", "")
        await desk.memory.settle()
        assert [event.type for event in await desk.hand_events()] == [REMOVED, REMOVED]
        await desk.said("三")
        assert "用户问：二" not in desk.text
        assert "用户问：一" in desk.text
        assert "用户问：三" in desk.text

    async def test_the_same_edit_is_recorded_once_however_often_it_is_seen(self, desk: Desk) -> None:
        await desk.said("一")
        desk.type_under(HABITS, "- 早起")
        for _ in range(4):
            await desk.memory.settle()
            desk.restart()
        assert len(await desk.hand_events()) == 1

    async def test_an_update_that_arrives_with_an_edit_keeps_both(self, desk: Desk) -> None:
        await desk.said("一")
        desk.type_under(HABITS, "- 早起")
        await desk.said("二")
        assert "- 早起\n" in desk.text
        assert "用户问：二" in desk.text
        assert [event.type for event in await desk.hand_events()] == [ADDED]

    async def test_a_stale_buffer_loses_nothing_of_five_newer_updates(self, desk: Desk) -> None:
        await desk.said("旧的")
        buffer = desk.text
        await desk.said(*(f"新的 {number}" for number in range(5)))
        desk.text = buffer.replace(f"{HABITS}\n", f"{HABITS}\n- 我打的字\n")
        await desk.memory.settle()
        assert all(f"用户问：新的 {number}\n" in desk.text for number in range(5))
        assert "- 我打的字\n" in desk.text
        assert [event.type for event in await desk.hand_events()] == [ADDED]

    async def test_a_buffer_older_than_every_kept_version_deletes_nothing(self, tmp_path: Path) -> None:
        async with on_a_desk(tmp_path / "few", keep_versions=20) as desk:
            await desk.said("旧的")
            buffer = desk.text
            desk.clock.move(minutes=5)
            await desk.said(*(f"新的 {number}" for number in range(30)))
            desk.text = buffer.replace(f"{HABITS}\n", f"{HABITS}\n- 我打的字\n")
            await desk.memory.settle()
            assert all(f"用户问：新的 {number}\n" in desk.text for number in range(30))
            assert "- 我打的字\n" in desk.text
            assert REMOVED not in [event.type for event in await desk.hand_events()]

    async def test_a_deleted_newest_line_stays_deleted(self, desk: Desk) -> None:
        await desk.said("一", "二")
        desk.replace("- 用户问：二\n- AI 答：好的\n", "")
        await desk.memory.settle()
        await desk.memory.settle()
        desk.restart()
        await desk.memory.settle()
        assert "用户问：二" not in desk.text

    async def test_typing_and_undoing_deletes_what_was_typed_although_the_bytes_are_old(self, desk: Desk) -> None:
        """An undo brings back an older version's bytes: no stale buffer, but an editor that holds its own save."""
        await desk.said("一")
        buffer = desk.text
        desk.type_under(HABITS, "- 写错了")
        await desk.said("二")  # the typed line is taken in, and a newer version written
        desk.text = buffer  # the editor, which has not reloaded, undoes and saves again
        await desk.memory.settle()
        assert "- 写错了" not in desk.text
        assert "用户问：二" in desk.text
        assert [event.type for event in await desk.hand_events()] == [ADDED, REMOVED]

    async def test_a_line_that_names_a_missing_section_is_not_lost(self, desk: Desk) -> None:
        await desk.said("一")
        desk.replace("## 重要对话记录", "## 我的记录")
        await desk.said("二")
        assert "## 我的记录" in desk.text
        assert "用户问：一" in desk.text
        assert "用户问：二" in desk.text

    async def test_an_entry_too_large_for_an_event_stays_in_the_file(self, desk: Desk) -> None:
        await desk.said("一")
        large = "- " + "很长的一行" * 8_000
        desk.type_under(HABITS, large)
        await desk.memory.settle()
        assert await desk.memory.warnings() == {Notice.LARGE_ENTRY}
        assert await desk.hand_events() == []
        await desk.said("二")
        assert large in desk.text
        assert "用户问：二" in desk.text
        desk.restart()
        assert await desk.memory.doubts() == {Notice.LARGE_ENTRY}  # for as long as it stands there
        desk.replace(large + "\n", "")
        await desk.memory.settle()
        assert await desk.memory.warnings() == set()


class TestFirstContact:
    async def test_a_file_that_was_there_before_us_is_taken_in_and_kept(self, desk: Desk) -> None:
        desk.text = "# 我的笔记\n\n- 一条旧的\n\n随便写的一段\n"
        await desk.memory.settle()
        events = await desk.hand_events()
        assert [event.payload["text"] for event in events] == ["- 一条旧的", "随便写的一段"]
        assert {event.origin for event in events} == {"imported"}
        assert desk.text == "# 我的笔记\n\n- 一条旧的\n\n随便写的一段\n"

    async def test_it_keeps_the_mode_its_owner_gave_it(self, desk: Desk) -> None:
        desk.text = "# 我的笔记\n"
        desk.file.chmod(0o640)
        await desk.said("一")
        assert stat.S_IMODE(desk.file.stat().st_mode) == 0o640

    async def test_events_recorded_before_the_file_was_ever_seen_join_it(self, desk: Desk) -> None:
        await desk.say("先说的")
        desk.text = "# 我的笔记\n\n- 一条旧的\n"
        await desk.memory.settle()
        assert "- 一条旧的\n" in desk.text
        assert "用户问：先说的" in desk.text


class TestLosses:
    @pytest.mark.parametrize("content", ["", "\n\n  \n", "\ufeff"])
    async def test_an_emptied_file_is_not_a_deletion(self, desk: Desk, content: str) -> None:
        await desk.said("一", "二")
        desk.text = content
        await desk.memory.settle()
        assert Notice.MASS_DELETE in desk.memory.notices
        assert await desk.hand_events() == []
        assert desk.text == content  # left alone while there is nothing new to say
        assert "用户问：一" in (await desk.memory.view()).text

    async def test_an_emptied_file_is_filled_again_by_the_next_update(self, desk: Desk) -> None:
        await desk.said("一", "二")
        desk.text = ""
        await desk.memory.settle()
        await desk.said("三")
        assert all(f"用户问：{name}" in desk.text for name in "一二三")
        assert desk.memory.notices == set()

    async def test_a_vanished_file_is_not_a_deletion(self, desk: Desk) -> None:
        await desk.said("一", "二")
        desk.file.unlink()
        await desk.memory.settle()
        assert desk.memory.notices == {Notice.MISSING}
        assert await desk.hand_events() == []
        assert not desk.file.exists()

    async def test_a_vanished_file_is_made_again_by_the_next_update(self, desk: Desk) -> None:
        await desk.said("一", "二")
        desk.file.unlink()
        await desk.memory.settle()
        await desk.said("三")
        assert all(f"用户问：{name}" in desk.text for name in "一二三")
        assert stat.S_IMODE(desk.file.stat().st_mode) == 0o600
        assert desk.memory.notices == set()

    async def test_a_mostly_shrunk_file_is_held_and_released_when_its_lines_come_back(self, desk: Desk) -> None:
        await desk.said(*(f"问题 {number}" for number in range(10)))
        whole = desk.text
        desk.text = whole.partition("- 用户问：问题 1\n")[0] + whole[whole.rindex("---") :]
        held = desk.text
        await desk.memory.settle()
        assert desk.memory.notices == {Notice.MASS_DELETE}
        await desk.said("held back")
        assert desk.text == held  # nobody writes over what has to be explained
        assert "held back" in (await desk.memory.view()).text
        desk.text = whole
        await desk.memory.settle()
        assert desk.memory.notices == set()
        assert all(f"用户问：问题 {number}\n" in desk.text for number in range(10))
        assert "held back" in desk.text
        assert await desk.hand_events() == []

    async def test_a_few_removed_lines_are_daily_work(self, desk: Desk) -> None:
        await desk.said(*(f"问题 {number}" for number in range(10)))
        desk.replace("- 用户问：问题 4\n- AI 答：好的\n", "")
        await desk.memory.settle()
        assert desk.memory.notices == set()
        assert len(await desk.hand_events()) == 2


class TestOddFiles:
    async def test_crlf_stays_crlf_and_is_no_edit(self, desk: Desk) -> None:
        await desk.said("一")
        desk.file.write_bytes(desk.file.read_bytes().replace(b"\n", b"\r\n"))
        await desk.memory.settle()
        assert await desk.hand_events() == []
        await desk.said("二")
        data = desk.file.read_bytes()
        assert data.count(b"\n") == data.count(b"\r\n")
        assert "用户问：二".encode() in data

    async def test_a_byte_order_mark_stays(self, desk: Desk) -> None:
        await desk.said("一")
        desk.file.write_bytes(b"\xef\xbb\xbf" + desk.file.read_bytes())
        await desk.memory.settle()
        assert await desk.hand_events() == []
        await desk.said("二")
        assert desk.file.read_bytes().startswith(b"\xef\xbb\xbf# AI")
        assert "\ufeff" not in (await desk.memory.view()).text

    async def test_gb18030_is_read_flagged_and_written_in_its_own_encoding(self, desk: Desk) -> None:
        desk.file.write_bytes("# 我的记忆\n\n## 用户偏好\n\n- 喜欢喝茶，不喜欢咖啡\n".encode("gb18030"))
        await desk.memory.settle()
        assert await desk.memory.warnings() == {Notice.NOT_UTF8}
        desk.restart()
        await desk.memory.settle()
        assert await desk.memory.warnings() == {Notice.NOT_UTF8}
        assert [event.payload["text"] for event in await desk.hand_events()] == ["- 喜欢喝茶，不喜欢咖啡"]
        await desk.said("还记得吗")
        text = desk.file.read_bytes().decode("gb18030")
        assert "- 喜欢喝茶，不喜欢咖啡\n" in text
        assert "用户问：还记得吗" in text

    @pytest.mark.parametrize(
        "data",
        [b"# memo\n\0\n- line\n", "# 记忆\n- 一条\n".encode() + b"\xff\xfe broken", b"- line\n" * 700_000],
        ids=["NUL", "damaged UTF-8", "above 4 MiB"],
    )
    async def test_what_is_not_understood_is_not_touched(self, desk: Desk, data: bytes) -> None:
        await desk.said("一")
        desk.file.write_bytes(data)
        await desk.said("二")
        assert desk.file.read_bytes() == data
        assert desk.memory.notices == {Notice.UNTOUCHABLE}
        assert "用户问：二" in (await desk.memory.view()).text  # capture goes on
        assert await desk.hand_events() == []

    async def test_a_memory_that_outgrew_the_limit_goes_on_and_can_be_made_smaller(self, desk: Desk) -> None:
        await desk.said("一")
        page = "\n".join(f"- 第 {number} 页 {'字' * 3_000}" for number in range(465))
        desk.type_under(HABITS, page)
        await desk.memory.settle()
        assert await desk.memory.warnings() == set()
        for number in range(40):
            await desk.say(f"问题 {number} {'问' * 40}", "答" * 90)
        await desk.memory.settle()
        assert desk.file.stat().st_size > MAX_BYTES
        assert "问题 39" in desk.text
        desk.restart()
        assert await desk.memory.doubts() == set()
        desk.replace("\n".join(page.split("\n")[:50]) + "\n", "")
        await desk.memory.settle()
        await desk.said("还在吗")
        assert "用户问：还在吗" in desk.text
        assert "- 第 49 页" not in desk.text
        assert "- 第 50 页" in desk.text

    async def test_an_untouchable_file_that_is_mended_gets_what_it_missed(self, desk: Desk) -> None:
        await desk.said("一")
        good = desk.file.read_bytes()
        desk.file.write_bytes(good + b"\0")
        await desk.said("二")
        desk.file.write_bytes(good)
        await desk.memory.settle()
        assert "用户问：二" in desk.text
        assert desk.memory.notices == set()

    async def test_front_matter_stays_at_the_top_byte_for_byte(self, desk: Desk) -> None:
        desk.text = "---\ntitle: 记忆\ntags: [a, b]\n---\n# AI 对话记忆\n\n- 一条\n"
        await desk.said("一")
        assert desk.text.startswith("---\ntitle: 记忆\ntags: [a, b]\n---\n# AI 对话记忆\n\n- 一条\n")

    async def test_unclosed_fences_tables_and_unknown_text_survive_an_update(self, desk: Desk) -> None:
        odd = "# 标题\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```sh\n# 没有关上\nls\n\n> 引用 <b>x</b>\n"
        desk.text = odd
        await desk.said("一")
        assert desk.text.startswith(odd.rstrip("\n"))

    async def test_a_symlink_stays_a_symlink_and_its_target_is_written(self, desk: Desk, tmp_path: Path) -> None:
        target = tmp_path / "elsewhere" / "notes.md"
        target.parent.mkdir()
        target.write_text("# 我的笔记\n\n- 一条\n", "utf-8")
        desk.file.symlink_to(target)
        await desk.said("一")
        assert desk.file.is_symlink()
        assert "用户问：一" in target.read_text("utf-8")
        assert "- 一条\n" in target.read_text("utf-8")
        assert [path.name for path in desk.file.parent.glob(".*tmp")] == []

    async def test_a_dangling_symlink_gets_its_target(self, desk: Desk, tmp_path: Path) -> None:
        target = tmp_path / "elsewhere.md"
        desk.file.symlink_to(target)
        await desk.said("一")
        assert desk.file.is_symlink()
        assert "用户问：一" in target.read_text("utf-8")
