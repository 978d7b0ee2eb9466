"""Folders that are missing, unreadable or read-only affect only their own records."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from sync.daily.model import normalised_content
from sync.daily.pages import page_files
from sync.daily.pages.folder_owner import MARKER_FILE
from sync.daily.pages.page_folders import PAGES_PATH
from sync.daily.pages.page_format import parse
from sync.daily.record_service import RecordRequest
from sync.system.atomic_swap import compare_and_swap
from tests.integration.daily.harness import DailyHarness, open_daily_harness
from tests.support import run_unprivileged


def topics_on(page: Path) -> list[str]:
    return [note.content.topic for note in parse(page.read_text("utf-8")).sessions]


def numbers_on(page: str) -> dict[str, int]:
    return {note.content.topic: note.number for note in parse(page).sessions}


async def record(harness: DailyHarness, topic: str, path: str) -> None:
    await harness.service.record_service.record_conversation(
        RecordRequest(summary=normalised_content(topic), project_path=path)
    )


class TestASharedPage:
    """Records of the home and of projects that are no folder here."""

    async def test_every_caller_sees_the_number_of_the_page_and_it_stays(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("聊火锅")
            await record(harness, "修登录", "/gone/app")
            gone = await harness.record("买菜")
            await record(harness, "改端口", "/gone/other")
            assert gone.record is not None
            await harness.service.record_service.remove(gone.record.record_id)
            await harness.service.reconcile()
            numbers = {"聊火锅": 1, "修登录": 2, "改端口": 4}
            assert numbers_on(harness.page().read_text("utf-8")) == numbers
            text, records = await harness.service.day_page("2026-02-02", None)
            assert numbers_on(text) == numbers
            assert {found.content.topic: found.number for found in records} == numbers
            reply = await harness.send_command("删除记忆: 2026-02-02 #2")
            assert reply.message == "已从每日记忆删除：修登录（说“撤销”可恢复）"
            assert numbers_on(harness.page().read_text("utf-8")) == {"聊火锅": 1, "改端口": 4}

    async def test_a_number_given_twice_by_two_devices_is_another_for_the_second_for_good(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            payload = {"record_id": "rec_other", "date": "2026-02-02", "time": "09:00:00", "session": 1, "topic": "二"}
            builder = harness.device.intake.for_other_programs(harness.device.log.device_id)
            await harness.device.log.append(builder.build_batch([{"type": "session_recorded", "payload": payload}]))
            await harness.service.reconcile()
            await harness.record("三")
            numbers = {"一": 1, "二": 2, "三": 3}
            assert numbers_on(harness.page().read_text("utf-8")) == numbers
            assert {
                found.content.topic: found.number for found in (await harness.service.current_records()).visible()
            } == numbers
            removed = await harness.service.apply_and_reconcile(
                lambda: harness.service.record_service.remove("rec_other")
            )
            assert removed.record is not None
            assert (removed.record.content.topic, removed.record.number) == ("二", 2), "as its page showed it"
            await harness.service.record_service.undo()
            reply = await harness.send_command("删除记忆: 2026-02-02 #2")
            assert reply.message == "已从每日记忆删除：二（说“撤销”可恢复）"


class TestPathsThatAreNoFolder:
    async def test_a_path_that_is_too_long_has_its_records_in_the_home(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.append_messages("s1", project_path="/home/" + "项目" * 50)
            await harness.append_messages("s2")
            await harness.device.log.append(
                harness.device.intake.build_batch(
                    [{"type": "session_ended", "session_id": name, "payload": {}} for name in ("s1", "s2")]
                )
            )
            assert await harness.service.worker.record_ended_sessions() == ["s1", "s2"]
            await harness.service.reconcile()
            assert topics_on(harness.page()) == ["设计记忆功能"] * 2

    def test_a_path_that_this_user_may_not_look_at_has_its_records_in_the_home(self, tmp_path: Path) -> None:
        closed = tmp_path / "别人的"
        (closed / "项目").mkdir(parents=True)
        closed.chmod(0)
        code = f"""
            from sync.daily.pages.page_folders import PageFolders
            async def main(home):
                print(PageFolders(home).folder_of({str(closed / "项目")!r}) == PageFolders(home).folder_of(None))
            """
        try:
            assert run_unprivileged(code) == "True\n"
        finally:
            closed.chmod(0o700)

    async def test_a_session_that_cannot_be_kept_keeps_no_other_from_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        real = os.path.realpath

        def realpath(path: str | os.PathLike[str], *, strict: bool = False) -> str:
            if "项目" in os.fspath(path):
                raise RuntimeError("a system that says what nobody expects of 项目")
            return real(path, strict=strict)

        async with open_daily_harness(tmp_path) as harness:
            await harness.service.worker.record_ended_sessions()
            monkeypatch.setattr(os.path, "realpath", realpath)
            await harness.append_messages("s1", project_path=str(harness.project))
            await harness.append_messages("s2")
            harness.device.clock.advance(31 * 60)
            assert await harness.service.worker.record_ended_sessions() == ["s1", "s2"]
            assert await harness.service.worker.record_ended_sessions() == []
            assert [
                record.session_id for record in (await harness.service.records_cache.current_records()).visible()
            ] == ["s2"]
            assert "RuntimeError" in caplog.text
            assert "项目" not in caplog.text


class TestAPlaceThatFails:
    async def test_what_cannot_be_written_is_named_and_keeps_no_other_place_from_its_pages(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            (harness.project / ".cursor").write_text("a file where a folder should be", "utf-8")
            (harness.device.folder / "p2").mkdir()
            await record(harness, "写不下的", str(harness.project))
            await record(harness, "第二个项目的", str(harness.device.folder / "p2"))
            await harness.record("家里的")
            assert topics_on(harness.page(harness.device.folder / "p2" / PAGES_PATH)) == ["第二个项目的"]
            assert topics_on(harness.page()) == ["家里的"]
            assert list(harness.pages.notices) == [str(harness.project_root)]
            await harness.service.reconcile()
            assert caplog.text.count("could not be settled") == 1, "told once, however often it is tried"
            (harness.project / ".cursor").unlink()
            await harness.service.reconcile()
            assert topics_on(harness.page(harness.project_root)) == ["写不下的"]
            assert harness.pages.notices == {}
            shutil.rmtree(harness.project / ".cursor")
            (harness.project / ".cursor").write_text("in the way again", "utf-8")
            await record(harness, "又写不下的", str(harness.project))
            await harness.service.reconcile()
            assert caplog.text.count("could not be settled") == 2

    async def test_an_unreadable_page_is_named_and_other_manual_edits_are_imported(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("项目里的", project=True)
            await harness.record("家里的")
            (harness.project_root / "daily" / "2026-02-03.md").mkdir()
            harness.page().write_text(harness.page().read_text("utf-8").replace("家里的", "改过的"), "utf-8")
            await harness.service.reconcile()
            assert await harness.topics() == ["项目里的", "改过的"]
            assert list(harness.pages.notices) == [str(harness.project_root)]
            (harness.project_root / "daily" / "2026-02-03.md").rmdir()
            await harness.service.reconcile()
            assert harness.pages.notices == {}

    @pytest.mark.parametrize(
        "damage",
        [
            "[" * 200_000,
            '{"a":' * 200_000,
            '{"pages": [1], "left": 5, "summary": {}, "vectors": "x"}',
            '{"pages": {"2026-02-02.md": 5}, "installation": ["inst"], "profile": {}}',
            '{"written": [5, {"text": 1}, {"text": "a", "records": {"x": 1}}], "begun": "x"}',
            '{"written": {}, "begun": {"records": []}}',
        ],
        ids=["deep list", "deep object", "flat pages", "page of no list", "states of no shape", "no states"],
    )
    async def test_a_damaged_marker_or_note_tells_nothing_and_stops_no_page(self, damage: str, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("项目里的", project=True)
            (harness.project_root / ".xiaobai-memory.json").write_text(damage, "utf-8")
            for note in (harness.device.folder / "profiles").rglob("*.md.json"):
                note.write_text(damage, "utf-8")
            await harness.record("又一个", project=True)
            await harness.record("家里的")
            assert topics_on(harness.page()) == ["家里的"]
            assert "又一个" in harness.page(harness.project_root).read_text("utf-8")
            assert str(harness.root) not in harness.pages.notices


class TestLinksOfAProject:
    @pytest.mark.parametrize("name", ["daily", "index"])
    async def test_a_folder_that_the_project_brings_as_a_link_is_not_written_through(
        self, tmp_path: Path, name: str
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            outside = tmp_path / "外面"
            outside.mkdir(mode=0o755)
            (outside / "keywords.json").write_text("{}", "utf-8")
            harness.project_root.mkdir(parents=True)
            (harness.project_root / name).symlink_to(outside)
            await harness.record("修登录", project=True)

            assert [entry.name for entry in outside.iterdir()] == ["keywords.json"]
            assert (outside / "keywords.json").read_text("utf-8") == "{}"
            assert outside.stat().st_mode & 0o777 == 0o755
            assert topics_on(harness.page()) == ["修登录"], "its page is in the home"

    async def test_a_folder_that_becomes_a_link_later_is_named_and_left_alone(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("修登录", project=True)
            outside = tmp_path / "外面"
            shutil.move(harness.project_root / "daily", outside)
            (harness.project_root / "daily").symlink_to(outside)
            before = {entry: entry.read_bytes() for entry in outside.iterdir()}
            await harness.record("改端口", project=True)

            assert {entry: entry.read_bytes() for entry in outside.iterdir()} == before
            assert "link" in harness.pages.notices[str(harness.project_root)]
            assert topics_on(harness.page()) == ["修登录", "改端口"]

    async def test_a_folder_that_becomes_a_link_while_its_page_is_written_leads_nowhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            outside, daily, moved = tmp_path / "外面", harness.project_root / "daily", harness.project / "moved"
            outside.mkdir()

            def swap_for_a_link(*arguments: Any, **options: Any) -> Any:
                if not daily.is_symlink():
                    daily.rename(moved)
                    daily.symlink_to(outside)
                return compare_and_swap(*arguments, **options)

            monkeypatch.setattr(page_files, "compare_and_swap", swap_for_a_link)
            await harness.record("修登录", project=True)
            assert list(outside.iterdir()) == []
            assert [topics_on(page) for page in moved.iterdir()] == [["修登录"]]

    async def test_a_folder_of_the_project_keeps_its_mode_and_a_new_one_is_private(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            (harness.project_root / "daily").mkdir(parents=True)
            (harness.project_root / "daily").chmod(0o755)
            await harness.record("修登录", project=True)

            assert (harness.project_root / "daily").stat().st_mode & 0o777 == 0o755
            assert (harness.project_root / "index").stat().st_mode & 0o777 == 0o700
            assert harness.page(harness.project_root).stat().st_mode & 0o777 == 0o600


class TestAnIndexOfAnother:
    async def test_it_is_left_as_it_is_and_named(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            index = harness.project_root / "index" / "keywords.json"
            index.parent.mkdir(parents=True)
            index.write_text('{"theirs": true}', "utf-8")
            await harness.record("修登录", project=True)
            await harness.record("改端口", project=True)

            assert index.read_text("utf-8") == '{"theirs": true}'
            assert "somebody else" in harness.pages.notices[str(index)]

    async def test_one_that_an_earlier_version_wrote_is_ours(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("修登录", project=True)
            marker, index = harness.project_root / MARKER_FILE, harness.project_root / "index" / "keywords.json"
            told = json.loads(marker.read_text("utf-8"))
            del told["keywords"]
            marker.write_text(json.dumps(told), "utf-8")
            await harness.record("改端口", project=True)

            assert "改端口" in index.read_text("utf-8")
