"""History, restore, save and the answer to a mass delete: a document as a whole, and nothing of it lost."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sync.digests import sha256
from sync.document import forgetting
from sync.document.capture import ADDED, EDITED, REMOVED, RESTORED
from sync.document.model import EntryAdded
from sync.document.remarks import Notice
from sync.errors import InvalidInput
from tests.integration.document_desk import Desk, on_a_desk

HABITS = "### 工作习惯"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with on_a_desk(tmp_path / "home") as found:
        yield found


async def kinds(desk: Desk) -> list[str]:
    return [event.type for event in await desk.hand_events()]


async def hashes(desk: Desk) -> list[str]:
    return [past.sha256 for past in await desk.memory.versions.history(100)]


async def many(desk: Desk) -> str:
    """A file with twelve lines of a person's own; its text."""
    await desk.said("一")
    desk.type_under(HABITS, "\n".join(f"- 第 {number} 条" for number in range(12)))
    await desk.memory.settle()
    return desk.text


def shrunk(text: str) -> str:
    """The text with most of its lines gone."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("- 第") or "第 0 条" in line)


class TestHistory:
    async def test_it_lists_the_newest_first_with_cause_and_number_of_entries(self, desk: Desk) -> None:
        await desk.said("一")
        desk.type_under(HABITS, "- 早起")
        await desk.memory.settle()
        newest, *older = await desk.memory.versions.history(10)
        assert (newest.cause, newest.sha256) == ("hand", sha256(desk.file.read_bytes()))
        assert [past.cause for past in older] == ["log"]
        assert newest.entries == older[0].entries + 1

    async def test_it_is_as_long_as_asked(self, desk: Desk) -> None:
        await desk.said("一", "二", "三")
        assert len(await desk.memory.versions.history(2)) == 2


class TestRestore:
    async def test_an_older_version_comes_back_as_new_events(self, desk: Desk) -> None:
        text = await many(desk)
        wanted = (await hashes(desk))[0]
        desk.replace("- 第 3 条\n", "")
        desk.replace("- 第 4 条\n", "- 第 4 条，改过\n")
        await desk.memory.settle()
        before = len(await kinds(desk))
        edited = await desk.memory.restore(wanted)
        told = (await kinds(desk))[before:]
        assert told[0] == RESTORED
        assert sorted(told[1:]) == sorted([ADDED, EDITED])
        assert len(edited.operations) == 2
        assert body(desk.text) == body(text)

    async def test_what_was_current_stays_in_the_history_and_comes_back_the_same_way(self, desk: Desk) -> None:
        await many(desk)
        wanted = (await hashes(desk))[0]
        desk.type_under(HABITS, "- 之后写的")
        await desk.memory.settle()
        later = (await hashes(desk))[0]
        await desk.memory.restore(wanted)
        assert "之后写的" not in desk.text
        assert later in await hashes(desk)
        await desk.memory.restore(later)
        assert "- 之后写的\n" in desk.text

    async def test_an_edit_that_nobody_has_seen_yet_is_taken_in_first(self, desk: Desk) -> None:
        await many(desk)
        wanted = (await hashes(desk))[0]
        desk.type_under(HABITS, "- 刚刚写的")
        await desk.memory.restore(wanted)
        assert "刚刚写的" not in desk.text
        assert "- 刚刚写的" in [event.payload.get("text") for event in await desk.hand_events()]

    async def test_an_update_that_nobody_has_written_yet_stays_in_log_and_history(self, desk: Desk) -> None:
        await many(desk)
        wanted = (await hashes(desk))[0]
        await desk.say("还没写的")
        await desk.memory.restore(wanted)
        assert "还没写的" not in desk.text
        for digest in await hashes(desk):
            await desk.memory.restore(digest)
            if "用户问：还没写的" in desk.text:
                return
        pytest.fail("no version holds it")

    async def test_a_hash_that_names_nothing_is_refused_by_its_name(self, desk: Desk) -> None:
        await desk.said("一")
        with pytest.raises(InvalidInput) as refused:
            await desk.memory.restore("0" * 64)
        assert refused.value.field == "sha256"

    async def test_it_fills_a_file_that_was_left_alone_because_it_shrank(self, desk: Desk) -> None:
        text = await many(desk)
        wanted = (await hashes(desk))[0]
        desk.text = shrunk(text)
        await desk.memory.settle()
        assert desk.memory.notices == {Notice.MASS_DELETE}
        lost = sha256(desk.file.read_bytes())
        await desk.memory.restore(wanted)
        assert body(desk.text) == body(text)
        assert desk.memory.notices == set()
        assert lost in await hashes(desk)


class TestSave:
    async def test_it_is_a_hand_edit_of_what_load_showed(self, desk: Desk) -> None:
        await many(desk)
        view = await desk.memory.view()
        edited = await desk.memory.save(view.text.replace("- 第 3 条", "- 第 3 条，改过"), view.sha256, meant=False)
        assert [type(done).__name__ for done in edited.operations] == ["EntryEdited"]
        assert "- 第 3 条，改过\n" in desk.text
        assert sha256(desk.file.read_bytes()) == edited.sha256

    async def test_nothing_of_what_came_in_between_is_lost(self, desk: Desk) -> None:
        await many(desk)
        view = await desk.memory.view()
        await desk.said("后来的")
        desk.type_under(HABITS, "- 手写的")
        await desk.memory.save(view.text.replace("- 第 3 条\n", ""), view.sha256, meant=False)
        assert "用户问：后来的" in desk.text
        assert "- 手写的\n" in desk.text
        assert "- 第 3 条\n" not in desk.text

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "gb18030"])
    async def test_the_file_keeps_its_encoding_and_line_endings(self, desk: Desk, encoding: str) -> None:
        typed = "# 我的记忆\r\n\r\n## 用户偏好\r\n\r\n- 喜欢喝茶，不喜欢咖啡\r\n"
        desk.file.write_bytes(typed.encode(encoding))
        await desk.memory.settle()
        view = await desk.memory.view()
        shown = view.text.replace("\r\n", "\n")  # as a text field gives it back
        edited = await desk.memory.save(shown.replace("喝茶", "喝绿茶"), view.sha256, meant=False)
        assert len(edited.operations) == 1
        assert desk.file.read_bytes().startswith(typed.replace("喝茶", "喝绿茶").encode(encoding))

    @pytest.mark.parametrize("settled", [True, False])
    async def test_the_base_may_be_an_answer_that_held_an_update_no_version_had(
        self, desk: Desk, settled: bool
    ) -> None:
        await many(desk)
        await desk.say("还没写的")
        view = await desk.memory.view()
        assert "还没写的" in view.text
        if settled:
            await desk.memory.settle()
        await desk.memory.save(view.text.replace("- 第 3 条\n", ""), view.sha256, meant=False)
        assert desk.text.count("还没写的") == 1
        assert "- 第 3 条\n" not in desk.text
        assert (await kinds(desk))[-1] == REMOVED

    async def test_what_the_app_removed_of_an_update_no_version_had_is_gone(self, desk: Desk) -> None:
        await many(desk)
        await desk.say("不要的")
        view = await desk.memory.view()
        without = "".join(line for line in view.text.splitlines(keepends=True) if "不要的" not in line)
        await desk.memory.save(without, view.sha256, meant=False)
        assert "不要的" not in desk.text

    async def test_what_it_removed_is_gone_also_where_something_else_was_forgotten_in_between(self, desk: Desk) -> None:
        """Simulated as seed 12375."""
        await many(desk)
        to_forget = await desk.say("要忘掉的")
        await desk.say("不要的")
        view = await desk.memory.view()
        await desk.log.record(forgetting.wishes([to_forget], desk.redactor))
        without = "".join(line for line in view.text.splitlines(keepends=True) if "不要的" not in line)
        await desk.memory.save(without.replace("- 用户问：要忘掉的\n", ""), view.sha256, meant=False)
        assert "不要的" not in desk.text
        assert "要忘掉的" not in desk.text
        assert "- 第 3 条\n" in desk.text

    async def test_without_a_base_the_label_in_the_text_names_it(self, desk: Desk) -> None:
        await many(desk)
        text = (await desk.memory.view()).text
        await desk.said("后来的")
        await desk.memory.save(text.replace("- 第 3 条\n", ""), None, meant=False)
        assert "用户问：后来的" in desk.text
        assert "- 第 3 条\n" not in desk.text

    @pytest.mark.parametrize("seconds", [0, 5], ids=["within a second", "later"])
    async def test_what_was_recorded_after_a_template_was_loaded_stays_without_a_base(
        self, tmp_path: Path, seconds: int
    ) -> None:
        async with on_a_desk(tmp_path / "empty") as desk:
            template = (await desk.memory.view()).text
            desk.clock.move(seconds=seconds)
            await desk.said("一", "二")
            typed = template.replace("### 工作习惯\n", "### 工作习惯\n- 早起\n")
            edited = await desk.memory.save(typed, None, meant=False)
            assert [type(one) for one in edited.operations] == [EntryAdded]
            assert "用户问：一\n- AI 答：好的\n" in desk.text
            assert "- 早起\n" in desk.text

    async def test_a_base_that_nobody_knows_makes_nothing_a_deletion(self, desk: Desk) -> None:
        await many(desk)
        text = (await desk.memory.view()).text
        await desk.said("后来的")
        await desk.memory.save(text.replace("- 第 3 条\n", "- 新写的\n"), "0" * 64, meant=False)
        assert "用户问：后来的" in desk.text
        assert "- 第 3 条\n" in desk.text
        assert "- 新写的\n" in desk.text

    @pytest.mark.parametrize("text", ["", "# AI 对话记忆\n", "shrunk"])
    async def test_most_of_it_missing_is_refused_unless_it_is_said_to_be_meant(self, desk: Desk, text: str) -> None:
        before = await many(desk)
        view = await desk.memory.view()
        given = shrunk(before) if text == "shrunk" else text
        with pytest.raises(InvalidInput) as refused:
            await desk.memory.save(given, view.sha256, meant=False)
        assert refused.value.field == "document"
        assert "allowLoss" in refused.value.hint
        assert desk.text == before
        await desk.memory.save(given, view.sha256, meant=True)
        assert "- 第 3 条" not in desk.text
        assert (await kinds(desk)).count(REMOVED) >= 11
        assert view.sha256 in await hashes(desk)

    @pytest.mark.parametrize("text", ["a\0b", "\ud800"])
    async def test_what_is_no_text_is_refused(self, desk: Desk, text: str) -> None:
        await desk.said("一")
        with pytest.raises(InvalidInput) as refused:
            await desk.memory.save(text, None, meant=False)
        assert refused.value.field == "document"

    async def test_saved_unchanged_it_is_no_event(self, desk: Desk) -> None:
        await many(desk)
        before = await kinds(desk)
        view = await desk.memory.view()
        assert (await desk.memory.save(view.text, view.sha256, meant=False)).operations == ()
        assert await kinds(desk) == before


class TestResolve:
    @pytest.fixture(params=["emptied", "shrunk", "vanished"])
    async def lost(self, request: pytest.FixtureRequest, desk: Desk) -> str:
        """A file that lost its lines, and was asked about; the text before."""
        text = await many(desk)
        if request.param == "vanished":
            desk.file.unlink()
        else:
            desk.text = "" if request.param == "emptied" else shrunk(text)
        await desk.memory.settle()
        assert desk.memory.notices == {Notice.MISSING if request.param == "vanished" else Notice.MASS_DELETE}
        assert REMOVED not in await kinds(desk)
        return text

    async def test_accept_makes_them_removals(self, desk: Desk, lost: str) -> None:
        edited = await desk.memory.resolve("accept")
        assert edited is not None
        assert (await kinds(desk)).count(REMOVED) >= 11
        assert "第 3 条" not in (await desk.memory.view()).text
        assert desk.memory.notices == set()
        assert sha256(lost.encode()) in await hashes(desk)
        await desk.said("后来的")
        assert "用户问：后来的" in desk.text
        assert "第 3 条" not in desk.text

    async def test_restore_writes_them_again(self, desk: Desk, lost: str) -> None:
        await desk.memory.resolve("restore")
        assert body(desk.text) == body(lost)
        assert desk.memory.notices == set()
        assert REMOVED not in await kinds(desk)
        desk.restart()
        await desk.memory.settle()
        assert REMOVED not in await kinds(desk)

    async def test_what_was_typed_into_a_shrunk_file_stays_in_the_history(self, desk: Desk) -> None:
        text = await many(desk)
        desk.text = shrunk(text).replace("- 第 0 条\n", "- 第 0 条\n- 只在这里\n")
        await desk.memory.settle()
        lost = sha256(desk.file.read_bytes())
        await desk.memory.resolve("restore")
        assert "只在这里" not in desk.text
        await desk.memory.restore(lost)
        assert "- 只在这里\n" in desk.text

    @pytest.mark.parametrize("answer", ["accept", "restore"])
    async def test_where_nothing_was_asked_nothing_is_done_and_an_edit_is_kept(self, desk: Desk, answer: str) -> None:
        await many(desk)
        desk.type_under(HABITS, "- 刚刚写的")
        assert await desk.memory.resolve("accept" if answer == "accept" else "restore") is None
        assert "- 刚刚写的\n" in desk.text
        assert REMOVED not in await kinds(desk)


def body(text: str) -> str:
    """A document without the line that names its version."""
    return "".join(line for line in text.splitlines(keepends=True) if "最后更新" not in line)
