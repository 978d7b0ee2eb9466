"""What can happen to a daily page between two looks at it: a hand that saves at that moment, and a process killed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from sync.daily.model import normalised_content
from sync.daily.pages import page_files as daily_files
from sync.daily.pages.page_format import parse
from sync.daily.record_service import RecordRequest
from sync.errors import StorageFull
from sync.log.event_types import SESSION_RECORDED
from sync.system import atomic_swap
from tests.integration.daily.harness import DailyHarness, open_daily_harness

BY_HAND = "\n---\n\n## Session {number} - 09:00:00\n\n### 主题\n{topic}\n"


class Killed(BaseException):
    """The process ended here."""


def die(*_: Any, **__: Any) -> NoReturn:
    raise Killed


def write_below(page: Path, number: int, topic: str) -> None:
    """A person adds a session."""
    page.write_text(page.read_text("utf-8") + BY_HAND.format(number=number, topic=topic), "utf-8")


def change(page: Path, old: str, new: str) -> None:
    """A person changes a word."""
    text = page.read_text("utf-8")
    assert old in text
    page.write_text(text.replace(old, new), "utf-8")


def once_before_pages_are_written(
    harness: DailyHarness, process: pytest.MonkeyPatch, act: Callable[[], object]
) -> None:
    """Runs an action once, after manual edits were imported and before the pages are written."""
    write, acts = harness.pages.write_pages, [act]

    def acting(book: Any) -> int:
        if acts:
            acts.pop()()
        return write(book)

    process.setattr(harness.pages, "write_pages", acting)


def topics_on(page: Path) -> list[str]:
    return [note.content.topic for note in parse(page.read_text("utf-8")).sessions]


async def recorded(harness: DailyHarness) -> list[str]:
    """What was ever recorded, also by events that a later one hides."""
    return [event.payload["topic"] for event in await harness.device.events() if event.type == SESSION_RECORDED]


async def test_a_new_page_has_the_language_chosen_and_an_existing_one_keeps_its_headings(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await harness.record("一", "事实")
        harness.language.setting = "en"
        await harness.record("two")
        await harness.service.record_service.add("2026-02-01", None, normalised_content("three", ["fact"]), None, ())
        await harness.service.reconcile()
        assert harness.page().read_text("utf-8").startswith("# 2026-02-02 对话记忆\n")
        assert topics_on(harness.page()) == ["一", "two"]
        english = harness.page(name="2026-02-01.md").read_text("utf-8")
        assert english.startswith("# 2026-02-01 Conversation memory\n")
        assert "### Topic\nthree\n\n### Key facts\n- fact\n" in english
        assert (harness.root / "summary.md").read_text("utf-8").startswith("# Summary of the memory\n\n2 days, 3 conv")
        change(harness.page(name="2026-02-01.md"), "- fact", "- other")
        await harness.service.reconcile()
        assert "- other" in harness.page(name="2026-02-01.md").read_text("utf-8")


class TestSavedMeanwhile:
    async def test_what_a_hand_saves_before_the_page_is_written_is_taken_in_by_the_next_round(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一", "旧的事实")
            await harness.service.record_service.record_conversation(RecordRequest(summary=normalised_content("二")))
            once_before_pages_are_written(harness, monkeypatch, lambda: change(harness.page(), "旧的事实", "新的事实"))
            await harness.service.reconcile()
            assert "新的事实" in harness.page().read_text("utf-8")
            await harness.service.reconcile()
            assert [record.content.facts for record in (await harness.service.current_records()).visible()] == [
                ("新的事实",),
                (),
            ]
            assert topics_on(harness.page()) == ["一", "二"]

    async def test_an_addition_that_was_taken_in_is_not_taken_in_again_with_what_was_saved_after_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            write_below(harness.page(), 8, "手写的")
            once_before_pages_are_written(harness, monkeypatch, lambda: write_below(harness.page(), 9, "又写的"))
            await harness.service.reconcile()
            await harness.service.reconcile()
            assert await recorded(harness) == ["一", "手写的", "又写的"]
            assert sorted(topics_on(harness.page())) == sorted(["一", "手写的", "又写的"])

    async def test_an_edit_that_is_taken_back_before_the_page_is_written_is_taken_back(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一", "旧的事实")
            before = harness.page().read_bytes()
            change(harness.page(), "旧的事实", "新的事实")
            await harness.service.record_service.record_conversation(RecordRequest(summary=normalised_content("二")))
            once_before_pages_are_written(harness, monkeypatch, lambda: harness.page().write_bytes(before))
            await harness.service.reconcile()
            await harness.service.reconcile()
            assert "旧的事实" in harness.page().read_text("utf-8")
            assert topics_on(harness.page()) == ["一", "二"]

    async def test_a_page_of_a_place_that_became_known_meanwhile_is_read_before_it_is_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As when another device's record of a project arrives, whose folder has pages of an earlier installation."""
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("家里的")
            page = harness.page(harness.project_root)
            page.parent.mkdir(parents=True)
            page.write_text("# 2026-02-02 对话记忆\n\n## Session 7 - 09:00:00\n\n### 主题\n早先的\n", "utf-8")
            said = {"record_id": "rec_other", "date": "2026-02-02", "time": "09:30:00", "session": 1, "topic": "别处的"}
            drafts = harness.device.intake.build_batch(
                [{"type": SESSION_RECORDED, "project_path": str(harness.project), "payload": said}]
            )
            mark = harness.service.record_service.mark

            async def arriving(*given: Any, **more: Any) -> Any:
                await harness.device.log.append(drafts)
                return await mark(*given, **more)

            monkeypatch.setattr(harness.service.record_service, "mark", arriving)
            harness.page().write_text(harness.page().read_text("utf-8") + "\n### 标记\n重要\n", "utf-8")
            await harness.service.reconcile()
            assert "早先的" in page.read_text("utf-8")
            await harness.service.reconcile()
            assert sorted(topics_on(page)) == ["别处的", "早先的"]
            assert sorted(await harness.topics()) == sorted(["别处的", "家里的", "早先的"])

    async def test_what_a_hand_saves_right_after_its_page_was_written_is_taken_in_by_the_next_round(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            write = harness.pages.write_pages

            def then_saved(book: Any) -> int:
                written = write(book)
                if written and "手写的" not in harness.page().read_text("utf-8"):
                    write_below(harness.page(), 9, "手写的")
                return written

            monkeypatch.setattr(harness.pages, "write_pages", then_saved)
            await harness.record("二")
            assert "手写的" in harness.page().read_text("utf-8"), "it was saved"
            assert sorted(await harness.topics()) == sorted(["一", "二", "手写的"])

    async def test_a_page_that_is_to_go_and_is_saved_this_moment_stays_and_is_taken_in(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            record = (await harness.record("一")).record
            assert record is not None
            page = harness.page()

            def saved_first(path: Path, expected: str) -> None:
                write_below(page, 9, "手写的")
                monkeypatch.setattr(daily_files, "remove_unchanged", atomic_swap.remove_unchanged)
                atomic_swap.remove_unchanged(path, expected)

            monkeypatch.setattr(daily_files, "remove_unchanged", saved_first)
            await harness.service.record_service.remove(record.record_id)
            await harness.service.reconcile()
            await harness.service.reconcile()
            assert await harness.topics() == ["手写的"]
            assert topics_on(page) == ["手写的"]

    async def test_pages_at_rest_are_looked_at_and_not_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            await harness.service.reconcile()
            monkeypatch.setattr(harness.pages, "read_edits", die)
            await harness.service.reconcile()


class TestKilled:
    async def test_between_an_addition_and_its_page_it_is_taken_in_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            write_below(harness.page(), 9, "手写的")
            with monkeypatch.context() as process:
                process.setattr(harness.pages, "write_pages", die)
                with pytest.raises(Killed):
                    await harness.service.reconcile()
            again = DailyHarness(harness.device)
            await again.service.reconcile()
            assert await recorded(again) == ["一", "手写的"]
            assert sorted(topics_on(again.page())) == sorted(["一", "手写的"])

    @pytest.mark.parametrize("since", ["nothing", "edited", "deleted", "more"])
    async def test_right_after_an_addition_s_event_it_is_taken_in_once_and_what_is_done_to_it_since_holds(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, since: str
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            before = harness.page().read_bytes()
            write_below(harness.page(), 9, "手写的")
            add = harness.service.record_service.add

            async def add_and_die(*given: Any, **more: Any) -> None:
                await add(*given, **more)
                raise Killed

            with monkeypatch.context() as process:
                process.setattr(harness.service.record_service, "add", add_and_die)
                with pytest.raises(Killed):
                    await harness.service.reconcile()
            if since == "edited":
                change(harness.page(), "手写的", "改过的")
            elif since == "deleted":
                harness.page().write_bytes(before)
            elif since == "more":
                write_below(harness.page(), 10, "又写的")
            again = DailyHarness(harness.device)
            await again.service.reconcile()
            more = ["又写的"] if since == "more" else []
            left = {"nothing": ["手写的"], "edited": ["改过的"], "deleted": [], "more": ["手写的", "又写的"]}[since]
            assert await recorded(again) == ["一", "手写的", *more]
            assert sorted(topics_on(again.page())) == sorted(["一", *left])
            assert sorted(await again.topics()) == sorted(["一", *left])

    @pytest.mark.parametrize("hand", ["added", "edited"])
    async def test_right_after_its_event_what_is_forgotten_before_the_next_look_stays_nowhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hand: str
    ) -> None:
        """Otherwise the page and its checkpoint would keep the text for ever: no change can express it."""
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            if hand == "added":
                write_below(harness.page(), 9, "手写的")
            else:
                change(harness.page(), "一", "手写的")
            with monkeypatch.context() as disk:
                disk.setattr(harness.pages, "finish_import", die)
                with pytest.raises(Killed):
                    await harness.service.reconcile()
            (record_id,) = [
                one
                for one, it in (await harness.service.records_cache.current_records()).by_id.items()
                if it.content.topic == "手写的"
            ]
            await harness.service.record_service.forget(record_id)
            again = DailyHarness(harness.device)
            await again.service.reconcile()
            assert await again.topics() == (["一"] if hand == "added" else [])
            left = [path for path in tmp_path.rglob("*.md*") if "手写的".encode() in path.read_bytes()]
            assert left == []

    async def test_before_an_edit_s_event_and_after_an_addition_s_both_are_taken_in(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            change(harness.page(), "一", "改过的")
            write_below(harness.page(), 9, "手写的")
            with monkeypatch.context() as process:
                process.setattr(harness.service.record_service, "edit", die)
                with pytest.raises(Killed):
                    await harness.service.reconcile()
            again = DailyHarness(harness.device)
            await again.service.reconcile()
            assert sorted(topics_on(again.page())) == sorted(["改过的", "手写的"])

    async def test_before_an_addition_s_event_it_is_taken_in_by_the_next_start(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            write_below(harness.page(), 9, "手写的")
            with monkeypatch.context() as process:
                process.setattr(harness.service.record_service, "add", die)
                with pytest.raises(Killed):
                    await harness.service.reconcile()
            again = DailyHarness(harness.device)
            await again.service.reconcile()
            assert await recorded(again) == ["一", "手写的"]

    async def test_an_addition_is_taken_in_once_where_the_next_on_its_page_failed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            write_below(harness.page(), 8, "手写的")
            write_below(harness.page(), 9, "又写的")
            add, failures = harness.service.record_service.add, [StorageFull("no space left"), None]

            async def failing(*given: Any, **more: Any) -> Any:
                if failures and (failure := failures.pop()) is not None:
                    raise failure
                return await add(*given, **more)

            with monkeypatch.context() as disk:
                disk.setattr(harness.service.record_service, "add", failing)
                await harness.service.reconcile()
                assert topics_on(harness.page()) == ["一", "手写的", "又写的"], "the page is left as it is"
                write_below(harness.page(), 10, "最后的")
                failures.append(StorageFull("no space left"))
                await harness.service.reconcile()
                await harness.service.reconcile()
            assert await recorded(harness) == ["一", "手写的", "又写的", "最后的"]
            assert sorted(topics_on(harness.page())) == sorted(["一", "手写的", "又写的", "最后的"])

    async def test_before_an_addition_s_event_nothing_of_it_stays_noted_once_it_is_taken_back(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            before = harness.page().read_bytes()
            write_below(harness.page(), 9, "不留的话")
            with monkeypatch.context() as process:
                process.setattr(harness.service.record_service, "add", die)
                with pytest.raises(Killed):
                    await harness.service.reconcile()
            harness.page().write_bytes(before)
            again = DailyHarness(harness.device)
            await again.service.reconcile()
            left = [path for path in (tmp_path / "profiles").rglob("*") if path.is_file()]
            assert left
            assert not [path for path in left if "不留的话" in path.read_text("utf-8")]

    async def test_an_addition_is_imported_once_from_a_page_with_an_edit_of_a_removed_record(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            record = (await harness.record("二")).record
            assert record is not None
            await harness.service.record_service.remove(record.record_id)
            change(harness.page(), "二", "改过的")
            write_below(harness.page(), 9, "手写的")
            with monkeypatch.context() as process:
                process.setattr(daily_files, "compare_and_swap", die)
                with pytest.raises(Killed):
                    await harness.service.reconcile()
            again = DailyHarness(harness.device)
            await again.service.reconcile()
            assert await recorded(again) == ["一", "二", "手写的"]

    async def test_at_an_edit_s_note_the_page_is_its_account_s_again_once_that_is_back(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another account cannot know what the page says, and leaves it; its own can, by the note of what was begun."""
        async with (
            open_daily_harness(tmp_path / "a") as first,
            open_daily_harness(tmp_path / "b", profile="prof_b") as other,
        ):
            await first.record("一")
            change(first.page(), "一", "手写的")
            with monkeypatch.context() as process:
                process.setattr(first.pages, "finish_import", die)
                with pytest.raises(Killed):
                    await first.service.reconcile()
            other.places.home = first.home
            await other.service.reconcile()
            assert topics_on(first.page()) == ["手写的"]
            again = DailyHarness(first.device)
            await again.service.reconcile()
            await again.record("二")
            assert topics_on(again.page()) == await again.topics() == ["手写的", "二"]
            assert again.pages.notices == {}

    async def test_an_addition_without_a_folder_stays_on_its_page_and_gives_a_notice(self, tmp_path: Path) -> None:
        async with open_daily_harness(tmp_path) as harness:
            await harness.record("一")
            await harness.set_option("storage.location", "project-only")
            write_below(harness.page(), 9, "手写的")
            await harness.service.reconcile()
            assert "手写的" in harness.page().read_text("utf-8")
            assert any("session 9" in why for why in harness.pages.notices.values())


async def test_what_a_killed_write_exchanged_out_of_a_page_goes_where_it_was_ours(tmp_path: Path) -> None:
    """It may say what is forgotten since; what a hand had saved at that moment stays."""
    async with open_daily_harness(tmp_path) as harness:
        await harness.record("第一句")
        page = harness.page()
        ours, by_hand = (page.with_name(f".{page.name}.{name}.aside") for name in ("0123abcd", "4567abcd"))
        ours.write_bytes(page.read_bytes())
        by_hand.write_text("手写的一句", "utf-8")
        await harness.record("第二句")
        await harness.service.reconcile()
        assert not ours.exists()
        assert by_hand.read_text("utf-8") == "手写的一句"
