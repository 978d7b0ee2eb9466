"""Daily records on disk: their folders, manual edits, undo, and the effect of every option."""

import json
import os
import stat
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sync.clock import in_zone
from sync.daily.conversation.extractive_summary import SummaryTurn
from sync.daily.model import Code, normalised_content
from sync.daily.pages.page_format import parse
from sync.daily.record_service import RecordRequest
from sync.document.versions.rescan import rescan
from sync.errors import InvalidInput
from sync.log.model import EventScope
from sync.redaction import Redactor
from tests.integration.daily.harness import SAMPLE_TURNS, DailyHarness, open_daily_harness, refusing_pages
from tests.support import START, FixedClock


class InBerlin(FixedClock):
    """As the machine's own clock is there: an instant has the offset of its day, and knows of no other."""

    def now(self) -> datetime:
        return self.local(super().now())

    def local(self, moment: datetime) -> datetime:
        there = in_zone(moment, ZoneInfo("Europe/Berlin"))
        return there.replace(tzinfo=timezone(there.utcoffset() or timedelta()))


class TestPages:
    async def test_a_record_is_in_the_home_s_page_and_index_with_private_modes(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("记忆功能", "端口是 8080", project=False)
            text = harness.page().read_text("utf-8")
            assert text.startswith(
                "# 2026-02-02 对话记忆\n\n## Session 1 - 18:00:00\n\n### 主题\n记忆功能\n\n### 关键信息\n"
            )
            (entry,) = json.loads((harness.root / "index" / "keywords.json").read_text("utf-8"))["entries"]
            first, last = entry["line_range"]
            assert text.split("\n")[first - 1 : last] == text.rstrip("\n").split("\n")[2:]
            assert "记忆功能" in (harness.root / "summary.md").read_text("utf-8")
            assert not harness.embeddings.exists(), "nobody makes vectors here"
            assert not (harness.root / "config.json").exists(), "the defaults need no file"
            if os.name == "posix":
                written = [path for path in harness.root.rglob("*") if path.is_file() and path.suffix != ".lock"]
                assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o600}

    async def test_a_project_has_its_own_pages_and_the_home_says_where_a_record_comes_from(
        self, tmp_path: Path
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("项目里的", project=True)
            await harness.record("家里的")
            await harness.service.record_service.record_conversation(
                RecordRequest(summary=normalised_content("别处的"), project_path="/不在/这里")
            )
            await harness.service.reconcile()
            assert [
                note.content.topic for note in parse(harness.page(harness.project_root).read_text("utf-8")).sessions
            ] == ["项目里的"]
            home = parse(harness.page().read_text("utf-8"))
            assert [(note.content.topic, note.origin) for note in home.sessions] == [
                ("家里的", None),
                ("别处的", "/不在/这里"),
            ]
            assert {note.number for note in home.sessions} == {1, 2}
            (entry,) = [
                entry
                for entry in json.loads((harness.root / "index" / "keywords.json").read_text("utf-8"))["entries"]
                if "project" in entry
            ]
            assert entry["project"] == "/不在/这里"

    async def test_a_link_that_leads_out_of_the_project_is_not_followed(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            outside = tmp_path / "outside"
            outside.mkdir()
            (harness.project / ".cursor").symlink_to(outside)
            await harness.record("题目", project=True)
            assert list(outside.iterdir()) == []
            assert harness.page().exists(), "the home's page has it"

    async def test_pages_are_the_same_again_after_they_were_thrown_away(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一", "甲")
            await harness.record("二")
            before = {path: path.read_bytes() for path in harness.root.rglob("[a-z2]*.*") if path.is_file()}
            for path in harness.root.rglob("*.md"):
                path.unlink()
            await harness.service.reconcile()
            assert {path: path.read_bytes() for path in before} == before
            assert await harness.topics() == ["一", "二"], "a page that is gone is no wish to delete"

    async def test_nothing_of_what_was_to_be_written_outlasts_its_record(self, tmp_path: Path) -> None:
        """Neither in what was noted of a page that never came or is gone, nor in what killed writers left."""
        async with open_daily_harness(tmp_path) as harness:
            record = (await harness.record("不留的话")).record
            assert record is not None
            harness.page().unlink()
            noted = next((tmp_path / "profiles").rglob("2026-02-02.md.json"))
            for left in (harness.page(), harness.root / "summary.md", harness.root / "index" / "keywords.json", noted):
                left.with_name(f".{left.name}.0123abcd.tmp").write_text("不留的话", "utf-8")
            await harness.service.record_service.remove(record.record_id)
            await harness.service.reconcile()
            files = [path for folder in (harness.root, tmp_path / "profiles") for path in folder.rglob("*")]
            assert not [path for path in files if path.is_file() and "不留的话" in path.read_text("utf-8")]

    async def test_another_account_of_this_machine_takes_the_pages_away_and_not_in(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path / "a") as first:
            await first.record("甲的秘密")
            await first.record("别的", moment=START - timedelta(days=1))
            page = first.page(name="2026-02-01.md")
            page.write_text(page.read_text("utf-8") + "\n---\n\n## Session 2 - 10:00:00\n\n### 主题\n手写\n", "utf-8")
            async with open_daily_harness(tmp_path / "b", profile="prof_b") as second:
                second.places.home = first.home
                await second.record("乙的")
                assert await second.topics() == ["乙的"]
                text = "".join(path.read_text("utf-8") for path in first.root.rglob("*.md") if path != page)
                assert "甲的秘密" not in text
                assert "手写" in page.read_text("utf-8"), "what a hand has changed is never thrown away"

    async def test_a_page_that_a_hand_wrote_as_we_would_goes_with_its_account_and_comes_back(
        self, tmp_path: Path
    ) -> None:
        async with (
            open_daily_harness(tmp_path / "a") as first,
            open_daily_harness(tmp_path / "b", profile="prof_b") as second,
        ):
            await first.record("甲的", "旧的事实")
            page = first.page()
            page.write_text(page.read_text("utf-8").replace("旧的事实", "新的事实"), "utf-8")
            await first.service.reconcile()
            written = page.read_text("utf-8")
            second.places.home = first.home
            await second.service.reconcile()
            assert not page.exists()
            await first.service.reconcile()
            assert (page.read_text("utf-8"), first.pages.notices) == (written, {})

    @pytest.mark.parametrize("bens", [True, False], ids=["over a page", "where there is none"])
    @pytest.mark.parametrize("old", ["", "旧的事实"], ids=["as it was", "edited"])
    async def test_a_page_that_a_window_of_another_account_saves_again_is_not_taken_in(
        self, tmp_path: Path, *, bens: bool, old: str
    ) -> None:
        async with (
            open_daily_harness(tmp_path / "a") as first,
            open_daily_harness(tmp_path / "b", profile="prof_b") as second,
        ):
            await first.record("甲的秘密", "旧的事实")
            page = first.page()
            stale = page.read_text("utf-8").replace(old, "新打的事实" if old else "")
            second.places.home, second.other_checkpoints = first.home, [first.checkpoints]
            if bens:
                await second.record("乙的")
            await second.service.reconcile()
            own = page.read_text("utf-8") if bens else None
            page.write_text(stale, "utf-8")
            await second.service.reconcile()
            await second.service.reconcile()
            assert await second.topics() == (["乙的"] if bens else [])
            assert (page.read_text("utf-8") if page.exists() else None) == (stale if old else own)
            assert list(second.pages.notices) == ([str(page)] if old else [])
            page.unlink(missing_ok=True)
            await second.service.reconcile()
            assert (page.read_text("utf-8") if page.exists() else None) == own
            if own is None:  # a new page under the name is the user's
                typed = f"# {page.stem} 对话记忆\n\n## Session 1 - 10:00:00\n\n### 主题\n手写的\n"
                page.write_text(typed, "utf-8")
                await second.service.reconcile()
                assert await second.topics() == ["手写的"]

    async def test_another_installation_s_folder_is_left_alone(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path / "a") as first:
            await first.record("第一个的")
            before = first.page().read_bytes()
            async with open_daily_harness(tmp_path / "b", installation="another") as second:
                second.places.home = first.home
                await second.record("第二个的")
                assert first.page().read_bytes() == before
                assert any("another installation" in why for why in second.pages.notices.values())


class TestHand:
    async def edited(self, harness: DailyHarness, old: str, new: str) -> None:
        page = harness.page()
        text = page.read_text("utf-8")
        assert old in text
        page.write_text(text.replace(old, new), "utf-8")
        await harness.service.reconcile()

    async def test_an_edit_an_addition_and_a_deletion_are_changes_that_can_be_undone(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一", "旧的事实")
            await self.edited(harness, "旧的事实", "新的事实")
            (record,) = (await harness.service.current_records()).visible()
            assert record.content.facts == ("新的事实",)
            await self.edited(
                harness, "- 新的事实\n", "- 新的事实\n\n---\n\n## Session 9 - 09:00:00\n\n### 主题\n手写的\n"
            )
            assert sorted(await harness.topics()) == ["一", "手写的"]
            assert "手写的" in harness.page().read_text("utf-8")
            page = harness.page().read_text("utf-8")
            await self.edited(harness, page[page.index("\n---") :], "")
            assert await harness.topics() == ["一"]
            await harness.service.record_service.undo()
            assert sorted(await harness.topics()) == ["一", "手写的"]

    async def test_a_page_without_its_last_session_goes_and_is_not_in_anothers_way(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path / "a") as harness:
            await harness.record("一")
            page = harness.page().read_text("utf-8")
            await self.edited(harness, page[page.index("\n## Session") :], "")
            assert await harness.topics() == []
            assert not harness.page().exists()
            await harness.service.record_service.undo()
            await harness.service.reconcile()
            assert harness.page().read_text("utf-8") == page
            await self.edited(harness, page[page.index("\n## Session") :], "")
            async with open_daily_harness(tmp_path / "b", profile="prof_b") as second:
                second.places.home = harness.home
                await second.record("二")
                assert "二" in harness.page().read_text("utf-8")

    async def test_a_page_goes_where_a_hand_took_some_sessions_out_and_the_others_went_meanwhile(
        self, tmp_path: Path
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            record = (await harness.record("不留的话")).record
            assert record is not None
            await harness.service.record_service.forget(record.record_id)
            page = harness.page().read_text("utf-8")
            await self.edited(harness, page[page.index("## Session 1") : page.index("## Session 2")], "")
            assert await harness.topics() == []
            files = [path for folder in (harness.root, tmp_path / "profiles") for path in folder.rglob("*")]
            assert not [path for path in files if path.is_file() and "不留的话" in path.read_text("utf-8")]

    async def test_what_a_hand_wrote_into_a_session_that_went_meanwhile_stays_on_its_page(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            record = (await harness.record("一", "旧的事实")).record
            assert record is not None
            await harness.service.record_service.remove(record.record_id)
            await self.edited(harness, "旧的事实", "新的事实")
            assert "新的事实" in harness.page().read_text("utf-8")

    async def test_a_page_that_is_not_understood_is_never_overwritten(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            page = harness.page()
            page.write_bytes(page.read_bytes() + b"\n---\n\nwhat is this\n")
            before = page.read_bytes()
            await harness.record("二")
            assert page.read_bytes() == before
            assert any("line" in why for why in harness.pages.notices.values())
            page.write_bytes(before.replace(b"\n---\n\nwhat is this\n", b""))
            await harness.service.reconcile()
            assert "二" in page.read_text("utf-8")
            assert not harness.pages.notices

    async def test_bytes_that_are_no_text_are_kept(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            harness.page().write_bytes(b"\xff\xfe\x00")
            await harness.record("二")
            assert harness.page().read_bytes() == b"\xff\xfe\x00"

    async def test_a_summary_of_another_program_is_left_as_it_is(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            harness.root.mkdir(parents=True)
            (harness.root / "summary.md").write_text("我自己写的", "utf-8")
            await harness.record("一")
            assert (harness.root / "summary.md").read_text("utf-8") == "我自己写的"

    async def test_a_secret_written_by_hand_is_redacted_before_it_is_an_event(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一", "事实")
            await self.edited(harness, "事实", "打给 13812345678")
            assert "13812345678" not in json.dumps([dict(event.payload) for event in await harness.device.events()])
            assert "[手机号]" in harness.page().read_text("utf-8")

    async def test_an_older_page_of_a_killed_writer_is_no_edit(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            (note,) = (tmp_path / "profiles").glob("*/daily/*/2026-02-02.md.json")
            before, noted = harness.page().read_bytes(), json.loads(note.read_text("utf-8"))["written"]
            await harness.record("二")
            after = json.loads(note.read_text("utf-8"))["written"]
            assert len(after) == 1, "what stands there is sure"
            note.write_text(json.dumps({"written": [*after, *noted]}), "utf-8")  # as before the page was written
            harness.page().write_bytes(before)
            await harness.service.reconcile()
            assert await harness.topics() == ["一", "二"]
            assert "二" in harness.page().read_text("utf-8")

    async def test_a_page_that_a_disk_refused_again_and_again_is_no_edit(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            with refusing_pages(monkeypatch):
                await harness.record("二")
                await harness.record("三")
            await harness.service.reconcile()
            assert await harness.topics() == ["一", "二", "三"]
            assert "三" in harness.page().read_text("utf-8")

    async def test_a_page_that_a_disk_refused_again_and_again_goes_with_its_account(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with (
            open_daily_harness(tmp_path / "a") as first,
            open_daily_harness(tmp_path / "b", profile="prof_b") as second,
        ):
            await first.record("甲的秘密")
            with refusing_pages(monkeypatch):
                await first.record("二")
                await first.record("三")
            second.places.home = first.home
            await second.record("乙的")
            assert "甲的秘密" not in first.page().read_text("utf-8")
            assert second.pages.notices == {}


class TestDeeds:
    async def test_every_change_can_be_undone_and_the_undo_too(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            done = await harness.record("一", "甲")
            assert done.record is not None
            record_id, deeds = done.record.record_id, harness.service.record_service
            edit = await deeds.edit(record_id, normalised_content("二", ["乙"]), ("topic", "facts"))
            assert await harness.topics() == ["二"]
            undo = await deeds.undo()
            assert await harness.topics() == ["一"]
            await deeds.undo(undo.event_id)
            assert await harness.topics() == ["二"]
            await deeds.mark(record_id, "important")
            await deeds.remove(record_id)
            assert await harness.topics() == []
            await deeds.undo()
            (back,) = (await harness.service.current_records()).visible()
            assert back.marks == ("important",)
            await deeds.undo(edit.event_id)
            assert await harness.topics() == ["一"]
            await deeds.undo(done.event_id)
            assert await harness.topics() == []
            assert not harness.page().exists() or "一" not in harness.page().read_text("utf-8")

    async def test_edits_of_different_parts_on_two_devices_both_hold(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            done = await harness.record("一", "甲")
            assert done.record is not None
            await harness.service.record_service.edit(
                done.record.record_id, normalised_content("二", ["甲"]), ("topic",)
            )
            await harness.service.record_service.edit(
                done.record.record_id, normalised_content("一", ["乙"]), ("facts",)
            )
            (record,) = (await harness.service.current_records()).visible()
            assert (record.content.topic, record.content.facts) == ("二", ("乙",))

    async def test_a_number_is_not_given_again(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            first = await harness.record("一")
            assert first.record is not None
            await harness.service.record_service.remove(first.record.record_id)
            assert (await harness.record("二")).record.number == 2  # type: ignore[union-attr]

    async def test_the_page_shows_a_corrected_text(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("暗号", "代号叫蓝猫7391")
            await harness.record("别的")
            stricter, device = Redactor(extra_patterns=["蓝猫[0-9]+"]), harness.device
            await rescan(device.log, stricter, device.clock, local=True, apply=True)
            await harness.service.reconcile()
            assert await harness.topics() == ["暗号", "别的"]
            assert "- 代号叫[自定义]" in harness.page().read_text("utf-8")
            again = DailyHarness(device)
            await again.service.reconcile()
            assert "- 代号叫[自定义]" in harness.page().read_text("utf-8")

    async def test_unknown_ids_are_named(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            with pytest.raises(InvalidInput):
                await harness.service.record_service.remove("rec_nothing")
            with pytest.raises(InvalidInput):
                await harness.service.record_service.undo()

    async def test_repeats_of_a_day_are_folded_and_unfolded(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("讨论火锅店的选址", "选在西湖边")
            await harness.record("讨论火锅店的选址", "选在西湖边", "开业在五月")
            assert len(await harness.service.merge_repeats("2026-02-02", dry_run=True)) == 1
            assert len(await harness.topics()) == 2
            await harness.service.merge_repeats("2026-02-02", dry_run=False)
            (record,) = (await harness.service.current_records()).visible()
            assert record.content.facts == ("选在西湖边", "开业在五月")
            await harness.service.record_service.undo()
            assert len(await harness.topics()) == 2


class TestSessions:
    async def test_one_that_ended_is_kept_from_its_messages_under_its_own_time(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.service.worker.record_ended_sessions()  # the first look says where keeping begins
            await harness.append_messages("s1", project_path=str(harness.project))
            assert await harness.service.worker.record_ended_sessions() == []
            await harness.device.log.append(
                harness.device.intake.build_batch([{"type": "session_ended", "session_id": "s1"}])
            )
            assert await harness.service.worker.record_ended_sessions() == ["s1"]
            await harness.service.reconcile()
            (record,) = (await harness.service.current_records()).visible()
            assert record.session_id == "s1"
            assert record.author == "extractive"
            assert "记忆功能" in record.content.topic
            assert any("8080" in fact for fact in record.content.facts)
            assert record.quality is not None
            assert "8080" in harness.page(harness.project_root).read_text("utf-8")
            assert await harness.service.worker.record_ended_sessions() == []

    async def test_one_that_fell_silent_is_kept_and_again_when_it_went_on(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.service.worker.record_ended_sessions()
            await harness.append_messages("s1")
            harness.device.clock.advance(29 * 60)
            assert await harness.service.worker.record_ended_sessions() == []
            harness.device.clock.advance(60)
            assert await harness.service.worker.record_ended_sessions() == ["s1"]
            await harness.append_messages("s1", (SummaryTurn("user", "截止日期改成三月一日"),))
            harness.device.clock.advance(31 * 60)
            assert await harness.service.worker.record_ended_sessions() == ["s1"]
            (record,) = (await harness.service.current_records()).visible()
            assert any("三月一日" in fact for fact in record.content.facts)

    async def test_what_a_person_has_edited_is_not_overwritten_when_a_session_goes_on(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.service.worker.record_ended_sessions()
            await harness.append_messages("s1")
            harness.device.clock.advance(31 * 60)
            await harness.service.worker.record_ended_sessions()
            (record,) = (await harness.service.current_records()).visible()
            await harness.service.record_service.edit(record.record_id, normalised_content("我写的"), ("topic",))
            await harness.append_messages("s1", (SummaryTurn("user", "继续"),))
            harness.device.clock.advance(31 * 60)
            await harness.service.worker.record_ended_sessions()
            assert await harness.topics() == ["我写的"]

    async def test_a_restarted_keeper_misses_no_open_session(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.service.worker.record_ended_sessions()
            await harness.append_messages("s1")
            await harness.service.worker.record_ended_sessions()
            again = DailyHarness(harness.device)
            harness.device.clock.advance(31 * 60)
            assert await again.service.worker.record_ended_sessions() == ["s1"]

    async def test_what_fell_silent_before_the_first_look_is_not_kept_unasked(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.append_messages("old")
            harness.device.clock.advance(31 * 60)
            assert await harness.service.worker.record_ended_sessions() == []

    async def test_a_session_under_way_at_the_first_look_is_kept_with_what_came_before(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.append_messages("old", SAMPLE_TURNS[:4])
            harness.device.clock.advance(40 * 60)
            await harness.append_messages("old", SAMPLE_TURNS[4:])
            await harness.append_messages("new")
            await harness.device.log.append(
                harness.device.intake.build_batch([{"type": "session_ended", "session_id": "new"}])
            )
            assert await harness.service.worker.record_ended_sessions() == ["new"], (
                "both were said before it; one of them has ended"
            )
            harness.device.clock.advance(31 * 60)
            assert await harness.service.worker.record_ended_sessions() == ["old"]
            assert len(await harness.topics()) == 2, "one round alone would be no conversation"

    async def test_a_session_is_of_the_day_that_it_was_where_the_offset_has_changed_since(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path, clock=InBerlin(datetime(2026, 3, 29, 10, 0, tzinfo=UTC))) as harness:
            await harness.append_messages("s1", ts="2026-03-28T22:30:00.000Z")
            kept = (await harness.service.record_service.record_conversation(RecordRequest("s1"))).record
            assert kept is not None
            assert kept.moment == ("2026-03-28", "23:30:00")

    async def test_a_conversation_is_not_recorded_if_the_user_asks_so(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            done = await harness.service.record_service.record_conversation(
                RecordRequest("s1", (*SAMPLE_TURNS, SummaryTurn("user", "这次不保存")))
            )
            assert (done.record, done.reason) == (None, "skip")
            done = await harness.service.record_service.record_conversation(
                RecordRequest("s2", (*SAMPLE_TURNS, SummaryTurn("user", "don't save this")))
            )
            assert (done.record, done.reason) == (None, "skip")


class TestOptions:
    """Each option of `config.json` does what it says."""

    async def test_location_project_first(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.set_option("storage.location", "project-first")
            await harness.record("一", project=True)
            await harness.record("二")
            assert "一" in harness.page(harness.project_root).read_text("utf-8")
            assert "二" in harness.page().read_text("utf-8")

    async def test_location_project_only(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.set_option("storage.location", "project-only")
            await harness.record("一", project=True)
            assert (await harness.record("二")).reason == "no_place"
            assert "一" in harness.page(harness.project_root).read_text("utf-8")
            assert not harness.page().exists()

    async def test_location_global_only(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一", project=True)
            await harness.set_option("storage.location", "global-only")
            await harness.service.reconcile()
            assert not harness.page(harness.project_root).exists(), "the pages move"
            (note,) = parse(harness.page().read_text("utf-8")).sessions
            assert (note.content.topic, note.origin) == ("一", str(harness.project))

    async def test_a_project_s_own_file_holds_for_it(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            path = str(harness.project)
            await harness.service.set_option(path, "recording.auto_save", value=False, for_project=True)
            assert not (await harness.service.options(path)).value.recording.auto_save
            assert (await harness.service.options(None)).value.recording.auto_save

    async def test_retention_days(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("旧的", moment=START - timedelta(days=40))
            await harness.record("新的")
            assert await harness.service.expire_old_records(dry_run=True) == []
            await harness.set_option("storage.retention_days", 30)
            assert [record.content.topic for record in await harness.service.expire_old_records(dry_run=False)] == [
                "旧的"
            ]
            assert await harness.topics() == ["新的"]
            await harness.service.reconcile()
            assert [path.name for path in (harness.root / "daily").iterdir()] == ["2026-02-02.md"]
            await harness.service.record_service.undo()
            assert await harness.topics() == ["旧的", "新的"]

    async def test_max_file_size_mb(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.set_option("storage.max_file_size_mb", 0.002)
            for number in range(4):
                await harness.record(f"题目 {number}", "长" * 300)
            names = sorted(path.name for path in (harness.root / "daily").iterdir())
            assert names == ["2026-02-02.2.md", "2026-02-02.md"]
            assert all(path.stat().st_size <= 2_100 for path in (harness.root / "daily").iterdir())
            index = json.loads((harness.root / "index" / "keywords.json").read_text("utf-8"))["entries"]
            assert index[-1]["file"] == "2026-02-02.2.md"
            assert await harness.topics() == [f"题目 {number}" for number in range(4)], "and is no edit of anybody's"

    async def test_auto_save(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.set_option("recording.auto_save", value=False)
            assert (
                await harness.service.record_service.record_conversation(RecordRequest("s1", SAMPLE_TURNS))
            ).reason == "auto_save_off"
            assert (
                await harness.service.record_service.record_conversation(
                    RecordRequest("s1", SAMPLE_TURNS, is_explicit=True)
                )
            ).record is not None

    async def test_save_code_snippets(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            assert (
                await harness.service.record_service.record_conversation(RecordRequest("s1", SAMPLE_TURNS))
            ).record.content.code  # type: ignore[union-attr]
            await harness.set_option("recording.save_code_snippets", value=False)
            assert not (
                await harness.service.record_service.record_conversation(RecordRequest("s2", SAMPLE_TURNS))
            ).record.content.code  # type: ignore[union-attr]
            given = normalised_content("一", (), [Code("py", "x = 1")])
            assert not (await harness.record("", summary=given)).record.content.code  # type: ignore[union-attr]

    async def test_sanitize_sensitive_is_about_this_device_alone(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一", "打给 13812345678")
            assert "13812345678" not in harness.page().read_text("utf-8")
            await harness.set_option("recording.sanitize_sensitive", value=False)
            await harness.record("二", "打给 13987654321")
            assert "13987654321" in harness.page().read_text("utf-8")
            told = [
                event for event in await harness.device.events() if "13987654321" in json.dumps(dict(event.payload))
            ]
            assert [(event.type, event.reach) for event in told] == [("session_original", EventScope.LOCAL)]

    async def test_min_conversation_length(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            assert (
                await harness.service.record_service.record_conversation(RecordRequest("s1", SAMPLE_TURNS[:4]))
            ).reason == "too_short"
            await harness.set_option("recording.min_conversation_length", 2)
            assert (
                await harness.service.record_service.record_conversation(RecordRequest("s1", SAMPLE_TURNS[:4]))
            ).record is not None

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, (0.4, 0.6)),
            ({"retrieval.method": "keyword"}, (1.0, 0.0)),
            ({"retrieval.method": "semantic"}, (0.0, 1.0)),
            ({"semantic.enabled": False}, (1.0, 0.0)),
            ({"semantic.provider": "openai"}, (1.0, 0.0)),
        ],
    )
    async def test_method_and_semantic(self, tmp_path: Path, options: dict[str, Any], expected: Any) -> None:
        async with open_daily_harness(tmp_path) as harness:
            for name, value in options.items():
                await harness.set_option(name, value)
            await harness.send_command("搜索记忆: 火锅")
            assert (harness.searches[0].keyword, harness.searches[0].semantic) == expected

    async def test_provider_is_who_makes_the_vectors(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            harness.provider = "openai"
            await harness.send_command("搜索记忆: 火锅")
            await harness.set_option("semantic.provider", "openai")
            await harness.send_command("搜索记忆: 火锅")
            assert [asked.semantic for asked in harness.searches] == [0.0, 0.6], (
                "an API is asked only where it is named"
            )

    async def test_max_results_decay_and_scope(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.set_option("retrieval.max_results", 2)
            await harness.set_option("retrieval.time_decay_rate", 0.5)
            await harness.set_option("retrieval.search_scope_days", 1)
            await harness.send_command("search memory: hot pot")
            (asked,) = harness.searches
            assert (asked.query, asked.limit, asked.decay, asked.since) == ("hot pot", 2, 0.5, "2026-02-01")

    async def test_a_search_that_finds_only_what_is_older_than_its_scope_says_so(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.set_option("retrieval.search_scope_days", 7)
            harness.search_results = lambda wanted: ["old", "older"] if wanted.since is None else []
            for text, told in (("搜索记忆: 火锅", "更早的有 2 条"), ("search memory: hot pot", "2 older")):
                reply = await harness.send_command(text)
                assert (reply.done, reply.hits) == (False, ()), "the option says how far"
                assert told in reply.message
            asks = await harness.send_command("搜索记忆")
            assert (asks.done, asks.hits) == (False, ())
            assert "搜索什么" in asks.message

    async def test_a_file_that_cannot_be_read_changes_nothing_and_stays(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            harness.root.mkdir(parents=True)
            (harness.root / "config.json").write_text("{ not json", "utf-8")
            assert (await harness.service.options(None)).problem is not None
            with pytest.raises(InvalidInput):
                await harness.set_option("recording.auto_save", value=False)
            assert (harness.root / "config.json").read_text("utf-8") == "{ not json"
