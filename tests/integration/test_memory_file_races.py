"""Everything that can happen between two looks at the file: crashes, editors that save meanwhile, failing disks."""

import asyncio
import errno
import os
import stat
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from sync import files
from sync.document import memory_file, remarks, store
from sync.document.capture import ADDED, EDITED
from sync.document.memory_file import ATTEMPTS
from sync.document.remarks import Notice
from sync.document.slow_write import LONGEST_WRITE, WRITER_PATIENCE
from sync.errors import DocumentChanged, StorageError, StorageFull, StorageReadOnly
from tests.integration.document_desk import Desk, on_a_desk

HABITS = "### 工作习惯"
COMMANDS = "### 常用命令"


class Killed(BaseException):
    """The process ended here."""


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with on_a_desk(tmp_path / "home") as found:
        yield found


def die(*_: object) -> NoReturn:
    raise Killed


@pytest.fixture
def before_each_write(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Hand in what somebody else does between our look at the file and our write."""

    def arm(act: Callable[[], object]) -> None:
        def acting(path: Path, expected: str | None, data: bytes) -> files.Stamp:
            act()
            return files.compare_and_swap(path, expected, data)

        monkeypatch.setattr(memory_file, "compare_and_swap", acting)

    return arm


class TestCrashes:
    async def test_between_version_and_file_the_next_start_writes_the_version(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await desk.said("一")
        before = desk.text
        with monkeypatch.context() as process:
            process.setattr(memory_file, "compare_and_swap", die)
            await desk.say("二")
            with pytest.raises(Killed):
                await desk.memory.settle()
        assert desk.text == before
        desk.restart()
        await desk.memory.settle()
        assert desk.text.count("用户问：二") == 1
        assert await desk.hand_events() == []
        assert [cause for _, cause in await desk.versions()] == ["log", "log"]

    async def test_before_the_first_file_was_ever_written(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as process:
            process.setattr(memory_file, "compare_and_swap", die)
            await desk.say("一")
            with pytest.raises(Killed):
                await desk.memory.settle()
        desk.restart()
        await desk.memory.settle()
        assert desk.text.count("用户问：一") == 1

    async def test_after_the_rename_and_before_it_was_noted(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        def write_and_die(path: Path, expected: str | None, data: bytes) -> None:
            files.compare_and_swap(path, expected, data)
            raise Killed

        await desk.said("一")
        with monkeypatch.context() as process:
            process.setattr(memory_file, "compare_and_swap", write_and_die)
            await desk.say("二")
            with pytest.raises(Killed):
                await desk.memory.settle()
        desk.restart()
        await desk.memory.settle()
        assert desk.text.count("用户问：二") == 1
        assert await desk.hand_events() == []
        desk.file.unlink()  # it was on disk, so its loss is no news that fills the file again
        await desk.memory.settle()
        assert not desk.file.exists()

    async def test_a_file_cut_off_before_it_was_noted_that_it_was_written_is_asked_about(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def write_and_die(path: Path, expected: str | None, data: bytes) -> None:
            files.compare_and_swap(path, expected, data)
            raise Killed

        await desk.said("一")
        desk.type_under(COMMANDS, "- 跑测试用 make test")
        await desk.memory.settle()
        with monkeypatch.context() as process:
            process.setattr(memory_file, "compare_and_swap", write_and_die)
            await desk.say("二")
            with pytest.raises(Killed):
                await desk.memory.settle()
        desk.text = desk.text[: desk.text.index("make test")]
        desk.restart()
        assert await desk.memory.doubts() == {remarks.Notice.MASS_DELETE}
        await desk.memory.settle()
        assert desk.memory.notices == {remarks.Notice.MASS_DELETE}
        assert len(await desk.hand_events()) == 1, "what was typed, and nothing else"

    async def test_with_a_hand_edit_recorded_and_its_merge_unwritten(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await desk.said("一")
        buffer = desk.text
        await desk.said("二")
        desk.text = buffer.replace(f"{HABITS}\n", f"{HABITS}\n- 我打的字\n")
        with monkeypatch.context() as process:
            process.setattr(memory_file, "compare_and_swap", die)
            with pytest.raises(Killed):
                await desk.memory.settle()
        assert len(await desk.hand_events()) == 1
        desk.restart()
        await desk.memory.settle()
        assert "- 我打的字\n" in desk.text
        assert desk.text.count("用户问：二") == 1
        assert len(await desk.hand_events()) == 1

    async def test_a_power_cut_that_takes_the_file_back_to_an_older_version_deletes_nothing(self, desk: Desk) -> None:
        await desk.said("一")
        older = desk.file.read_bytes()
        await desk.said("二", "三")
        desk.file.write_bytes(older)
        desk.restart()
        await desk.memory.settle()
        assert "用户问：二" in desk.text
        assert "用户问：三" in desk.text
        assert await desk.hand_events() == []


class TestOthersWriteMeanwhile:
    async def test_a_save_between_our_look_and_our_write_is_not_written_over(
        self, desk: Desk, before_each_write: Callable[[Callable[[], object]], None]
    ) -> None:
        await desk.said("一")
        edits = ["- 甲", "- 乙"]

        def somebody() -> None:
            if edits:
                desk.type_under(HABITS, edits.pop())

        before_each_write(somebody)
        await desk.said("二")
        assert "- 甲\n" in desk.text
        assert "- 乙\n" in desk.text
        assert "用户问：二" in desk.text
        assert [event.type for event in await desk.hand_events()] == [ADDED, ADDED]

    async def test_an_editor_that_never_stops_is_left_alone_and_served_later(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await desk.said("一")
        saves = 0

        def save_first(*_: object) -> NoReturn:
            nonlocal saves
            saves += 1
            desk.type_under(HABITS, f"- 第 {saves} 次")
            raise DocumentChanged("the file changed")

        with monkeypatch.context() as storm:
            storm.setattr(memory_file, "compare_and_swap", save_first)
            await desk.said("二")
        assert saves == ATTEMPTS
        assert "用户问：二" not in desk.text
        await desk.memory.settle()
        assert "用户问：二" in desk.text
        assert all(f"- 第 {number} 次\n" in desk.text for number in range(1, ATTEMPTS + 1))

    async def test_the_file_vanishes_between_our_look_and_our_write(
        self, desk: Desk, before_each_write: Callable[[Callable[[], object]], None]
    ) -> None:
        await desk.said("一")
        once = [desk.file.unlink]
        before_each_write(lambda: once and once.pop()())
        await desk.said("二")
        assert "用户问：一" in desk.text
        assert "用户问：二" in desk.text
        assert await desk.hand_events() == []

    async def test_a_file_appears_between_our_look_and_our_write(
        self, desk: Desk, before_each_write: Callable[[Callable[[], object]], None]
    ) -> None:
        once = [lambda: desk.file.write_text("# 我的\n\n- 抢先一步\n", "utf-8")]
        before_each_write(lambda: once and once.pop()())
        await desk.said("一")
        assert "- 抢先一步\n" in desk.text
        assert "用户问：一" in desk.text

    async def test_half_a_file_is_waited_for(self, desk: Desk) -> None:
        await desk.said(*(f"问题 {number}" for number in range(10)))
        whole = desk.text.replace(f"{HABITS}\n", f"{HABITS}\n- 早起\n")
        cut = len(whole) // 2
        desk.text = whole[:cut]
        desk.meanwhile = [lambda: setattr(desk, "text", whole[: cut + 60]), lambda: setattr(desk, "text", whole)]
        await desk.memory.settle()
        assert desk.text == whole
        assert desk.memory.notices == set()
        assert [event.payload["text"] for event in await desk.hand_events()] == ["- 早起"]

    @pytest.mark.parametrize("pause", [0.02, 0.12, 1.0, 2.5, 3.0, 30.0])
    @pytest.mark.parametrize("news", [False, True], ids=["nothing else", "and news meanwhile"])
    async def test_a_writer_that_empties_the_file_and_pauses_loses_no_line(
        self, desk: Desk, pause: float, *, news: bool
    ) -> None:
        await desk.said(*(f"问题 {number}" for number in range(8)))
        whole = desk.text.replace(f"{HABITS}\n", f"{HABITS}\n- 早起\n").encode()
        inode = desk.file.stat().st_ino
        with desk.file.open("wb", buffering=0) as file:
            for number in range(5):
                file.write(whole[(number - 1) * len(whole) // 4 : number * len(whole) // 4] if number else b"")
                os.utime(desk.file, (desk.clock.time.timestamp(),) * 2)
                desk.clock.move(seconds=pause)
                if news and number and pause < WRITER_PATIENCE:
                    await desk.say(f"后来 {number}")
                await desk.memory.settle()
                assert number == 4 or desk.file.stat().st_ino == inode, "its path is taken from no writer"
        await desk.memory.settle()
        assert [event.payload["text"] for event in await desk.hand_events()] == ["- 早起"]
        assert all(f"用户问：问题 {number}\n- AI 答：好的\n" in desk.text for number in range(8))
        assert f"{HABITS}\n- 早起\n" in desk.text
        assert not news or pause >= WRITER_PATIENCE or "用户问：后来 3\n" in desk.text
        assert desk.memory.notices == set()

    async def test_lines_at_the_end_that_a_person_deletes_go_at_once_where_the_footer_stays(self, desk: Desk) -> None:
        await desk.said("一", "二")
        end = desk.text[desk.text.index("## 常用操作") : desk.text.index("**最后更新**")]
        os.utime(desk.file, (desk.clock.time.timestamp(),) * 2)
        desk.replace(end, "")
        await desk.memory.settle()
        assert "## 常用操作" not in desk.text
        assert desk.memory.notices == set()

    async def test_a_footer_that_a_person_deletes_is_waited_for_and_written_again(self, desk: Desk) -> None:
        await desk.said("一", "二")
        desk.text = desk.text[: desk.text.index("**最后更新**")].replace("用户问：一", "用户问：一啊")
        os.utime(desk.file, (desk.clock.time.timestamp(),) * 2)
        await desk.memory.settle()
        assert await desk.hand_events() == []
        assert not desk.memory.looked_at
        desk.clock.move(seconds=WRITER_PATIENCE)
        await desk.memory.settle()
        assert [event.type for event in await desk.hand_events()] == [EDITED]
        await desk.said("三")
        assert "**最后更新**" in desk.text

    async def test_a_file_without_its_end_that_changes_all_the_time_is_taken_as_it_is_after_a_while(
        self, desk: Desk
    ) -> None:
        await desk.said("一")
        desk.text = desk.text[: desk.text.index("**最后更新**")]
        await desk.say("二")
        for _ in range(int(LONGEST_WRITE)):
            desk.clock.move(seconds=1)
            os.utime(desk.file, (desk.clock.time.timestamp(),) * 2)
            await desk.memory.settle()
        assert "用户问：二" not in desk.text
        desk.clock.move(seconds=1)
        await desk.memory.settle()
        assert "用户问：二" in desk.text

    async def test_a_file_cut_off_for_good_is_held_back_not_read_as_deletions(self, desk: Desk) -> None:
        await desk.said("一", "二", "三")
        desk.text = desk.text[: desk.text.index("用户问：三")]
        await desk.memory.settle()
        assert await desk.hand_events() == []
        assert desk.memory.notices == {remarks.Notice.MASS_DELETE}

    async def test_a_file_cut_off_long_ago_is_still_asked_about(self, desk: Desk) -> None:
        """The document has changed by then in what the file still has, and more often than a base is looked for."""
        await desk.said("一", "二", "三")
        desk.type_under(HABITS, "- 早起")
        await desk.memory.settle()
        left = desk.text = desk.text[: desk.text.index("用户问：三")]
        await desk.memory.settle()
        view = await desk.memory.view()
        await desk.memory.save(view.text.replace("- 早起\n", ""), view.sha256, meant=False)
        before = await desk.hand_events()
        await desk.said(*(f"问题 {number}" for number in range(store.RULE_RING + 1)))
        assert desk.memory.notices == await desk.memory.doubts() == {remarks.Notice.MASS_DELETE}
        assert await desk.hand_events() == before
        assert desk.text == left

    @pytest.mark.parametrize("left", ["# AI 对话记忆\n", "", None], ids=["cut", "emptied", "gone"])
    async def test_who_finds_the_file_looked_at_finds_the_question(self, desk: Desk, left: str | None) -> None:
        """Also while it is looked at anew: a question that is still open does not flicker."""
        await desk.said("一", "二", "三")
        question = remarks.Notice.MISSING if left is None else remarks.Notice.MASS_DELETE
        if left is None:
            desk.file.unlink()
        else:
            desk.text = left
        looked: list[set[remarks.Notice]] = []
        for _ in range(2):
            look = asyncio.create_task(desk.memory.settle())
            while not look.done():
                await asyncio.sleep(0)
                looked += [set(desk.memory.notices)] * desk.memory.looked_at
        assert looked.count({question}) == len(looked) > 0

    async def test_a_file_that_is_replaced_under_our_eyes_is_looked_at_again(self, desk: Desk) -> None:
        await desk.said("一")
        saved = desk.text.replace(f"{HABITS}\n", f"{HABITS}\n- 早起\n")
        desk.type_under(HABITS, "- 早")

        def atomic_save() -> None:
            beside = desk.file.with_suffix(".new")
            beside.write_text(saved, "utf-8")
            beside.replace(desk.file)

        desk.meanwhile = [atomic_save]
        await desk.memory.settle()
        assert [event.payload["text"] for event in await desk.hand_events()] == ["- 早起"]

    async def test_a_save_that_takes_the_file_away_for_a_moment_is_no_loss(self, desk: Desk) -> None:
        await desk.said("一")
        saved = desk.text
        desk.file.unlink()
        desk.meanwhile = [lambda: setattr(desk, "text", saved)]
        await desk.memory.settle()
        assert desk.memory.notices == set()
        assert await desk.hand_events() == []


class TestExchanges:
    """What an editor saved at the very moment of a write was taken out, and did not get back into its place."""

    async def test_because_the_disk_failed_it_is_taken_in_and_the_file_goes_on(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await desk.said("一")
        theirs = desk.text.replace(f"{HABITS}\n", f"{HABITS}\n- 就在这时存的\n")
        happens = iter(["saved", "broken"])

        def rename(source: Path, target: Path, *, new: bool) -> bool:
            if target == desk.file and next(happens) == "broken":
                raise OSError(errno.EIO, "Input/output error")
            if target == desk.file:
                desk.text = theirs
            return files._rename(source, target, new=new)

        with monkeypatch.context() as disk:
            disk.setattr(memory_file, "compare_and_swap", partial(files.compare_and_swap, rename=rename))
            await desk.say("二")
            with pytest.raises(StorageError):
                await desk.memory.settle()
        assert files.left_aside(desk.file) == []
        await desk.memory.settle()
        assert "用户问：二" in desk.text
        assert "- 就在这时存的\n" in desk.text
        assert not desk.parked.exists()

    async def aside(self, desk: Desk, data: bytes, *, former: Path | None = None) -> list[bytes]:
        """What a kill left aside is looked at by the next start; what was parked then."""
        aside = desk.file.with_name(f".{desk.file.name}.0a1b2c3d{files.ASIDE}")
        aside.write_bytes(data)
        await desk.memory.aside.take_in(former=former)
        await desk.memory.settle()
        assert not aside.exists()
        return [path.read_bytes() for path in (former or desk.parked).glob("*.md")]

    async def test_because_of_a_kill_it_is_taken_in_by_the_next_start(self, desk: Desk) -> None:
        await desk.said("一")
        saved = desk.text.replace(f"{HABITS}\n", f"{HABITS}\n- 就在这时存的\n")
        await desk.said("二")
        assert await self.aside(desk, saved.encode()) == []
        assert desk.text.count("- 就在这时存的\n") == 1
        assert desk.text.count("用户问：二") == 1

    async def test_what_is_known_goes(self, desk: Desk) -> None:
        await desk.said("一")
        before = desk.file.read_bytes()
        await desk.said("二")
        for known in (before, b""):
            assert await self.aside(desk, known) == []
        assert await desk.hand_events() == []

    async def test_what_is_not_understood_or_looks_lost_is_parked(self, desk: Desk) -> None:
        await desk.said(*(f"第 {number} 句" for number in range(12)))
        lost = "\n".join([*desk.text.splitlines()[:20], "- 剩下的"]).encode()
        assert await self.aside(desk, lost) == [lost]
        assert sorted(await self.aside(desk, b"\0 no text")) == sorted([lost, b"\0 no text"])
        assert await desk.hand_events() == []

    async def test_while_the_file_is_handed_over_it_is_parked_for_the_profile_that_leaves(
        self, desk: Desk, tmp_path: Path
    ) -> None:
        await desk.said("一")
        saved = "# 某人的\n\n- 没有人认得\n".encode()
        assert await self.aside(desk, saved, former=tmp_path / "leaving") == [saved]
        assert "没有人认得" not in desk.text


class TestDisks:
    async def test_a_full_disk_leaves_the_file_whole_and_is_made_up_for(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await desk.said("一")
        before = desk.file.read_bytes()

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as disk:
            disk.setattr(os, "fsync", full)
            await desk.say("二")
            with pytest.raises(StorageFull):
                await desk.memory.settle()
        assert desk.file.read_bytes() == before
        assert [path.name for path in desk.file.parent.iterdir() if path.suffix == ".tmp"] == []
        await desk.memory.settle()
        assert "用户问：二" in desk.text

    async def test_a_refused_rename_leaves_no_temporary_file(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        await desk.said("一")

        def refused(*_: object, **__: object) -> NoReturn:
            raise PermissionError(errno.EACCES, "Permission denied")

        with monkeypatch.context() as disk:
            disk.setattr(Path, "replace", refused)
            disk.setattr(memory_file, "compare_and_swap", partial(files.compare_and_swap, rename=refused))
            await desk.say("二")
            with pytest.raises(StorageReadOnly):
                await desk.memory.settle()
        assert [path.name for path in desk.file.parent.iterdir() if path.suffix == ".tmp"] == []
        await desk.memory.settle()
        assert "用户问：二" in desk.text

    async def test_a_folder_in_the_file_s_place_is_an_error_not_a_crash(self, desk: Desk) -> None:
        desk.file.mkdir()
        await desk.say("一")
        with pytest.raises(StorageError):
            await desk.memory.settle()
        assert "用户问：一" in (await desk.memory.view()).text
        assert await desk.memory.warnings() == {Notice.UNREACHABLE}
        desk.file.rmdir()
        await desk.memory.settle()
        assert "用户问：一" in desk.text
        assert await desk.memory.warnings() == set()

    async def test_a_missing_folder_is_not_made_and_the_memory_goes_on(self, desk: Desk, tmp_path: Path) -> None:
        desk.file = tmp_path / "unplugged" / "memory.md"
        desk.restart()
        await desk.say("一")
        with pytest.raises(StorageError):
            await desk.memory.settle()
        assert "用户问：一" in (await desk.memory.view()).text
        desk.file.parent.mkdir()
        await desk.memory.settle()
        assert "用户问：一" in desk.text
        assert stat.S_IMODE(desk.file.stat().st_mode) == 0o600
