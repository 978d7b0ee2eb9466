"""Everything that can happen between two reads of the file: crashes, editors that save meanwhile, failing disks."""

import asyncio
import errno
import os
import stat
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from sync.document import store
from sync.document.surfaces import memory_file, notices
from sync.document.surfaces.memory_file import MAX_ATTEMPTS
from sync.document.surfaces.notices import Notice
from sync.document.surfaces.write_in_progress import MAX_WRITE_DURATION, MAX_WRITE_PAUSE
from sync.errors import DocumentChanged, StorageError, StorageFull, StorageReadOnly
from sync.log.event_types import ENTRY_ADDED, ENTRY_EDITED
from sync.system import atomic_swap, files
from tests.integration.document.harness import DocumentHarness, open_document_harness
from tests.proof import first_in_test

HABITS = "### 工作习惯"
COMMANDS = "### 常用命令"


class Killed(BaseException):
    """The process ended here."""


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "home") as found:
        yield found


def die(*_: object) -> NoReturn:
    raise Killed


@pytest.fixture
def before_each_write(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Run an external action between our read of the file and our write."""

    def arm(act: Callable[[], object]) -> None:
        def acting(path: Path, expected: str | None, data: bytes) -> files.FileStamp:
            act()
            return atomic_swap.compare_and_swap(path, expected, data)

        monkeypatch.setattr(memory_file, "compare_and_swap", acting)

    return arm


class TestCrashes:
    async def test_between_version_and_file_the_next_start_writes_the_version(
        self, harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await harness.record_and_reconcile("一")
        before = harness.text
        with monkeypatch.context() as process:
            process.setattr(memory_file, "compare_and_swap", die)
            await harness.record_exchange("二")
            with pytest.raises(Killed):
                await harness.memory.reconcile()
        assert harness.text == before
        harness.restart()
        await harness.memory.reconcile()
        assert harness.text.count("用户问：二") == 1
        assert await harness.manual_edit_events() == []
        assert [cause for _, cause in await harness.versions()] == ["log", "log"]

    async def test_before_the_first_file_was_ever_written(
        self, harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as process:
            process.setattr(memory_file, "compare_and_swap", die)
            await harness.record_exchange("一")
            with pytest.raises(Killed):
                await harness.memory.reconcile()
        harness.restart()
        await harness.memory.reconcile()
        assert harness.text.count("用户问：一") == 1

    async def test_after_the_rename_and_before_it_was_noted(
        self, harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def write_and_die(path: Path, expected: str | None, data: bytes) -> None:
            atomic_swap.compare_and_swap(path, expected, data)
            raise Killed

        await harness.record_and_reconcile("一")
        with monkeypatch.context() as process:
            process.setattr(memory_file, "compare_and_swap", write_and_die)
            await harness.record_exchange("二")
            with pytest.raises(Killed):
                await harness.memory.reconcile()
        harness.restart()
        await harness.memory.reconcile()
        assert harness.text.count("用户问：二") == 1
        assert await harness.manual_edit_events() == []
        harness.file.unlink()  # it was on disk, so its loss is no news that fills the file again
        await harness.memory.reconcile()
        assert not harness.file.exists()

    async def test_a_file_cut_off_before_it_was_noted_that_it_was_written_is_asked_about(
        self, harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def write_and_die(path: Path, expected: str | None, data: bytes) -> None:
            atomic_swap.compare_and_swap(path, expected, data)
            raise Killed

        await harness.record_and_reconcile("一")
        harness.add_line_under(COMMANDS, "- 跑测试用 make test")
        await harness.memory.reconcile()
        with monkeypatch.context() as process:
            process.setattr(memory_file, "compare_and_swap", write_and_die)
            await harness.record_exchange("二")
            with pytest.raises(Killed):
                await harness.memory.reconcile()
        harness.text = harness.text[: harness.text.index("make test")]
        harness.restart()
        assert await harness.memory.preview_notices() == {notices.Notice.MASS_DELETE}
        await harness.memory.reconcile()
        assert harness.memory.notices == {notices.Notice.MASS_DELETE}
        assert len(await harness.manual_edit_events()) == 1, "what was typed, and nothing else"

    async def test_with_a_hand_edit_recorded_and_its_merge_unwritten(
        self, harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await harness.record_and_reconcile("一")
        buffer = harness.text
        await harness.record_and_reconcile("二")
        harness.text = buffer.replace(f"{HABITS}\n", f"{HABITS}\n- 我打的字\n")
        with monkeypatch.context() as process:
            process.setattr(memory_file, "compare_and_swap", die)
            with pytest.raises(Killed):
                await harness.memory.reconcile()
        assert len(await harness.manual_edit_events()) == 1
        harness.restart()
        await harness.memory.reconcile()
        assert "- 我打的字\n" in harness.text
        assert harness.text.count("用户问：二") == 1
        assert len(await harness.manual_edit_events()) == 1

    async def test_a_power_cut_that_takes_the_file_back_to_an_older_version_deletes_nothing(
        self, harness: DocumentHarness
    ) -> None:
        await harness.record_and_reconcile("一")
        older = harness.file.read_bytes()
        await harness.record_and_reconcile("二", "三")
        harness.file.write_bytes(older)
        harness.restart()
        await harness.memory.reconcile()
        assert "用户问：二" in harness.text
        assert "用户问：三" in harness.text
        assert await harness.manual_edit_events() == []


class TestOthersWriteMeanwhile:
    async def test_a_save_between_our_look_and_our_write_is_not_written_over(
        self, harness: DocumentHarness, before_each_write: Callable[[Callable[[], object]], None]
    ) -> None:
        await harness.record_and_reconcile("一")
        edits = ["- 甲", "- 乙"]

        def somebody() -> None:
            if edits:
                harness.add_line_under(HABITS, edits.pop())

        before_each_write(somebody)
        await harness.record_and_reconcile("二")
        assert "- 甲\n" in harness.text
        assert "- 乙\n" in harness.text
        assert "用户问：二" in harness.text
        assert [event.type for event in await harness.manual_edit_events()] == [ENTRY_ADDED, ENTRY_ADDED]

    async def test_an_editor_that_never_stops_is_left_alone_and_served_later(
        self, harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await harness.record_and_reconcile("一")
        saves = 0

        def save_first(*_: object) -> NoReturn:
            nonlocal saves
            saves += 1
            harness.add_line_under(HABITS, f"- 第 {saves} 次")
            raise DocumentChanged("the file changed")

        with monkeypatch.context() as storm:
            storm.setattr(memory_file, "compare_and_swap", save_first)
            await harness.record_and_reconcile("二")
        assert saves == MAX_ATTEMPTS
        assert "用户问：二" not in harness.text
        await harness.memory.reconcile()
        assert "用户问：二" in harness.text
        assert all(f"- 第 {number} 次\n" in harness.text for number in range(1, MAX_ATTEMPTS + 1))

    async def test_the_file_vanishes_between_our_look_and_our_write(
        self, harness: DocumentHarness, before_each_write: Callable[[Callable[[], object]], None]
    ) -> None:
        await harness.record_and_reconcile("一")
        once = [harness.file.unlink]
        before_each_write(lambda: once and once.pop()())
        await harness.record_and_reconcile("二")
        assert "用户问：一" in harness.text
        assert "用户问：二" in harness.text
        assert await harness.manual_edit_events() == []

    async def test_a_file_appears_between_our_look_and_our_write(
        self, harness: DocumentHarness, before_each_write: Callable[[Callable[[], object]], None]
    ) -> None:
        once = [lambda: harness.file.write_text("# 我的\n\n- 抢先一步\n", "utf-8")]
        before_each_write(lambda: once and once.pop()())
        await harness.record_and_reconcile("一")
        assert "- 抢先一步\n" in harness.text
        assert "用户问：一" in harness.text

    async def test_half_a_file_is_waited_for(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile(*(f"问题 {number}" for number in range(10)))
        whole = harness.text.replace(f"{HABITS}\n", f"{HABITS}\n- 早起\n")
        cut = len(whole) // 2
        harness.text = whole[:cut]
        harness.external_actions = [
            lambda: setattr(harness, "text", whole[: cut + 60]),
            lambda: setattr(harness, "text", whole),
        ]
        await harness.memory.reconcile()
        assert harness.text == whole
        assert harness.memory.notices == set()
        assert [event.payload["text"] for event in await harness.manual_edit_events()] == ["- 早起"]

    @pytest.mark.parametrize("pause", first_in_test([0.02, 2.5, 30.0, 0.12, 1.0, 3.0], 3))
    @pytest.mark.parametrize("news", [False, True], ids=["nothing else", "and news meanwhile"])
    async def test_a_writer_that_empties_the_file_and_pauses_loses_no_line(
        self, harness: DocumentHarness, pause: float, *, news: bool
    ) -> None:
        await harness.record_and_reconcile(*(f"问题 {number}" for number in range(8)))
        whole = harness.text.replace(f"{HABITS}\n", f"{HABITS}\n- 早起\n").encode()
        inode = harness.file.stat().st_ino
        with harness.file.open("wb", buffering=0) as file:
            for number in range(5):
                file.write(whole[(number - 1) * len(whole) // 4 : number * len(whole) // 4] if number else b"")
                os.utime(harness.file, (harness.clock.time.timestamp(),) * 2)
                harness.clock.advance(seconds=pause)
                if news and number and pause < MAX_WRITE_PAUSE:
                    await harness.record_exchange(f"后来 {number}")
                await harness.memory.reconcile()
                assert number == 4 or harness.file.stat().st_ino == inode, "its path is taken from no writer"
        await harness.memory.reconcile()
        assert [event.payload["text"] for event in await harness.manual_edit_events()] == ["- 早起"]
        assert all(f"用户问：问题 {number}\n- AI 答：好的\n" in harness.text for number in range(8))
        assert f"{HABITS}\n- 早起\n" in harness.text
        assert not news or pause >= MAX_WRITE_PAUSE or "用户问：后来 3\n" in harness.text
        assert harness.memory.notices == set()

    async def test_lines_at_the_end_that_a_person_deletes_go_at_once_where_the_footer_stays(
        self, harness: DocumentHarness
    ) -> None:
        await harness.record_and_reconcile("一", "二")
        end = harness.text[harness.text.index("## 常用操作") : harness.text.index("**最后更新**")]
        os.utime(harness.file, (harness.clock.time.timestamp(),) * 2)
        harness.replace(end, "")
        await harness.memory.reconcile()
        assert "## 常用操作" not in harness.text
        assert harness.memory.notices == set()

    async def test_a_footer_that_a_person_deletes_is_waited_for_and_written_again(
        self, harness: DocumentHarness
    ) -> None:
        await harness.record_and_reconcile("一", "二")
        harness.text = harness.text[: harness.text.index("**最后更新**")].replace("用户问：一", "用户问：一啊")
        os.utime(harness.file, (harness.clock.time.timestamp(),) * 2)
        await harness.memory.reconcile()
        assert await harness.manual_edit_events() == []
        assert not harness.memory.is_unchanged
        harness.clock.advance(seconds=MAX_WRITE_PAUSE)
        await harness.memory.reconcile()
        assert [event.type for event in await harness.manual_edit_events()] == [ENTRY_EDITED]
        await harness.record_and_reconcile("三")
        assert "**最后更新**" in harness.text

    async def test_a_file_without_its_end_that_changes_all_the_time_is_taken_as_it_is_after_a_while(
        self, harness: DocumentHarness
    ) -> None:
        await harness.record_and_reconcile("一")
        harness.text = harness.text[: harness.text.index("**最后更新**")]
        await harness.record_exchange("二")
        for _ in range(int(MAX_WRITE_DURATION)):
            harness.clock.advance(seconds=1)
            os.utime(harness.file, (harness.clock.time.timestamp(),) * 2)
            await harness.memory.reconcile()
        assert "用户问：二" not in harness.text
        harness.clock.advance(seconds=1)
        await harness.memory.reconcile()
        assert "用户问：二" in harness.text

    async def test_a_file_cut_off_for_good_is_held_back_not_read_as_deletions(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一", "二", "三")
        harness.text = harness.text[: harness.text.index("用户问：三")]
        await harness.memory.reconcile()
        assert await harness.manual_edit_events() == []
        assert harness.memory.notices == {notices.Notice.MASS_DELETE}

    async def test_a_file_cut_off_long_ago_is_still_asked_about(self, harness: DocumentHarness) -> None:
        """The document has changed by then in what the file still has, and more often than a base is looked for."""
        await harness.record_and_reconcile("一", "二", "三")
        harness.add_line_under(HABITS, "- 早起")
        await harness.memory.reconcile()
        left = harness.text = harness.text[: harness.text.index("用户问：三")]
        await harness.memory.reconcile()
        view = await harness.memory.view()
        await harness.memory.save(view.text.replace("- 早起\n", ""), view.sha256, confirmed=False)
        before = await harness.manual_edit_events()
        await harness.record_and_reconcile(*(f"问题 {number}" for number in range(store.RING_SIZE + 1)))
        assert harness.memory.notices == await harness.memory.preview_notices() == {notices.Notice.MASS_DELETE}
        assert await harness.manual_edit_events() == before
        assert harness.text == left

    @pytest.mark.parametrize("left", ["# AI 对话记忆\n", "", None], ids=["cut", "emptied", "gone"])
    async def test_who_finds_the_file_looked_at_finds_the_question(
        self, harness: DocumentHarness, left: str | None
    ) -> None:
        """Also while the file is read again: an open question does not flicker."""
        await harness.record_and_reconcile("一", "二", "三")
        question = notices.Notice.MISSING if left is None else notices.Notice.MASS_DELETE
        if left is None:
            harness.file.unlink()
        else:
            harness.text = left
        looked: list[set[notices.Notice]] = []
        for _ in range(2):
            look = asyncio.create_task(harness.memory.reconcile())
            while not look.done():
                await asyncio.sleep(0)
                looked += [set(harness.memory.notices)] * harness.memory.is_unchanged
        assert looked.count({question}) == len(looked) > 0

    async def test_a_file_that_is_replaced_under_our_eyes_is_looked_at_again(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        saved = harness.text.replace(f"{HABITS}\n", f"{HABITS}\n- 早起\n")
        harness.add_line_under(HABITS, "- 早")

        def atomic_save() -> None:
            beside = harness.file.with_suffix(".new")
            beside.write_text(saved, "utf-8")
            beside.replace(harness.file)

        harness.external_actions = [atomic_save]
        await harness.memory.reconcile()
        assert [event.payload["text"] for event in await harness.manual_edit_events()] == ["- 早起"]

    async def test_a_save_that_takes_the_file_away_for_a_moment_is_no_loss(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        saved = harness.text
        harness.file.unlink()
        harness.external_actions = [lambda: setattr(harness, "text", saved)]
        await harness.memory.reconcile()
        assert harness.memory.notices == set()
        assert await harness.manual_edit_events() == []


class TestExchanges:
    """What an editor saved during a write was displaced, and was not put back."""

    async def test_because_the_disk_failed_it_is_taken_in_and_the_file_goes_on(
        self, harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await harness.record_and_reconcile("一")
        theirs = harness.text.replace(f"{HABITS}\n", f"{HABITS}\n- 就在这时存的\n")
        happens = iter(["saved", "broken"])

        def rename(source: Path, target: Path, *, new: bool) -> bool:
            if target == harness.file and next(happens) == "broken":
                raise OSError(errno.EIO, "Input/output error")
            if target == harness.file:
                harness.text = theirs
            return atomic_swap._system_rename(source, target, new=new)

        with monkeypatch.context() as disk:
            disk.setattr(memory_file, "compare_and_swap", partial(atomic_swap.compare_and_swap, rename=rename))
            await harness.record_exchange("二")
            with pytest.raises(StorageError):
                await harness.memory.reconcile()
        assert atomic_swap.displaced_files(harness.file) == []
        await harness.memory.reconcile()
        assert "用户问：二" in harness.text
        assert "- 就在这时存的\n" in harness.text
        assert not harness.parked_folder.exists()

    async def aside(self, harness: DocumentHarness, data: bytes, *, former: Path | None = None) -> list[bytes]:
        """The next start recovers what a kill displaced; what was parked then."""
        aside = harness.file.with_name(f".{harness.file.name}.0a1b2c3d{atomic_swap.DISPLACED_SUFFIX}")
        aside.write_bytes(data)
        await harness.memory.swap_recovery.recover(leaving_folder=former)
        await harness.memory.reconcile()
        assert not aside.exists()
        return [path.read_bytes() for path in (former or harness.parked_folder).glob("*.md")]

    async def test_because_of_a_kill_it_is_taken_in_by_the_next_start(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        saved = harness.text.replace(f"{HABITS}\n", f"{HABITS}\n- 就在这时存的\n")
        await harness.record_and_reconcile("二")
        assert await self.aside(harness, saved.encode()) == []
        assert harness.text.count("- 就在这时存的\n") == 1
        assert harness.text.count("用户问：二") == 1

    async def test_what_is_known_goes(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        before = harness.file.read_bytes()
        await harness.record_and_reconcile("二")
        for known in (before, b""):
            assert await self.aside(harness, known) == []
        assert await harness.manual_edit_events() == []

    async def test_what_is_not_understood_or_looks_lost_is_parked(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile(*(f"第 {number} 句" for number in range(12)))
        lost = "\n".join([*harness.text.splitlines()[:20], "- 剩下的"]).encode()
        assert await self.aside(harness, lost) == [lost]
        assert sorted(await self.aside(harness, b"\0 no text")) == sorted([lost, b"\0 no text"])
        assert await harness.manual_edit_events() == []

    async def test_while_the_file_is_handed_over_it_is_parked_for_the_profile_that_leaves(
        self, harness: DocumentHarness, tmp_path: Path
    ) -> None:
        await harness.record_and_reconcile("一")
        saved = "# 某人的\n\n- 没有人认得\n".encode()
        assert await self.aside(harness, saved, former=tmp_path / "leaving") == [saved]
        assert "没有人认得" not in harness.text


class TestDisks:
    async def test_a_full_disk_leaves_the_file_whole_and_is_made_up_for(
        self, harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await harness.record_and_reconcile("一")
        before = harness.file.read_bytes()

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as disk:
            disk.setattr(os, "fsync", full)
            await harness.record_exchange("二")
            with pytest.raises(StorageFull):
                await harness.memory.reconcile()
        assert harness.file.read_bytes() == before
        assert [path.name for path in harness.file.parent.iterdir() if path.suffix == ".tmp"] == []
        await harness.memory.reconcile()
        assert "用户问：二" in harness.text

    async def test_a_refused_rename_leaves_no_temporary_file(
        self, harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await harness.record_and_reconcile("一")

        def refused(*_: object, **__: object) -> NoReturn:
            raise PermissionError(errno.EACCES, "Permission denied")

        with monkeypatch.context() as disk:
            disk.setattr(Path, "replace", refused)
            disk.setattr(memory_file, "compare_and_swap", partial(atomic_swap.compare_and_swap, rename=refused))
            await harness.record_exchange("二")
            with pytest.raises(StorageReadOnly):
                await harness.memory.reconcile()
        assert [path.name for path in harness.file.parent.iterdir() if path.suffix == ".tmp"] == []
        await harness.memory.reconcile()
        assert "用户问：二" in harness.text

    async def test_a_folder_in_the_file_s_place_is_an_error_not_a_crash(self, harness: DocumentHarness) -> None:
        harness.file.mkdir()
        await harness.record_exchange("一")
        with pytest.raises(StorageError):
            await harness.memory.reconcile()
        assert "用户问：一" in (await harness.memory.view()).text
        assert await harness.memory.warnings() == {Notice.UNREACHABLE}
        harness.file.rmdir()
        await harness.memory.reconcile()
        assert "用户问：一" in harness.text
        assert await harness.memory.warnings() == set()

    async def test_a_missing_folder_is_not_made_and_the_memory_goes_on(
        self, harness: DocumentHarness, tmp_path: Path
    ) -> None:
        harness.file = tmp_path / "unplugged" / "memory.md"
        harness.restart()
        await harness.record_exchange("一")
        with pytest.raises(StorageError):
            await harness.memory.reconcile()
        assert "用户问：一" in (await harness.memory.view()).text
        harness.file.parent.mkdir()
        await harness.memory.reconcile()
        assert "用户问：一" in harness.text
        assert stat.S_IMODE(harness.file.stat().st_mode) == 0o600
