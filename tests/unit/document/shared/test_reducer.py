"""Events of all devices become one document."""

from itertools import permutations
from typing import Any

from msgspec.structs import replace

from sync.clock import format_hlc
from sync.document.markdown.entry_ids import text_hash
from sync.document.markdown.parse import parse
from sync.document.markdown.template import WORK_HABITS
from sync.document.shared.entry_ops import conflict_copy_id
from sync.document.shared.local_overlay import LocalOverlay, build_overlay
from sync.document.shared.reducer import SharedReducer
from sync.document.shared.render import render_shared
from sync.log.event_types import SECTION_ADDED, SECTION_REMOVED
from sync.log.model import Event
from tests.support import REDACTOR
from tests.unit.document.shared.examples import make_event, reduce_events


def shown_lines(*events: Event) -> list[str]:
    return [line.text for line in reduce_events(*events).entries_in(WORK_HABITS)]


class TestReduce:
    def test_a_removal_that_comes_before_what_it_removes_is_remembered(self) -> None:
        added = make_event(2, "entry_added", entry_id="e", text="- 一")
        assert shown_lines(make_event(1, "entry_removed", entry_id="e"), added) == []

    def test_an_edit_of_an_entry_that_was_never_added_adds_it(self) -> None:
        assert shown_lines(make_event(1, "entry_edited", entry_id="e", base="- 一", text="- 二")) == ["- 二"]

    def test_the_same_addition_twice_is_one(self) -> None:
        twice = [make_event(number, "entry_added", entry_id="e", text="- 一") for number in (1, 2)]
        assert shown_lines(*twice) == ["- 一"]

    def test_an_edit_of_one_side_of_a_conflict_applies_to_that_side(self) -> None:
        events = [
            make_event(1, "entry_added", entry_id="e", text="- 喝红茶"),
            make_event(2, "entry_edited", device="b", entry_id="e", base="- 喝红茶", text="- 喝白茶"),
            make_event(3, "entry_edited", entry_id="e", base="- 喝红茶", text="- 喝绿茶"),
            make_event(4, "entry_edited", entry_id="e", base="- 喝绿茶", text="- 喝龙井"),
            make_event(5, "entry_removed", device="b", entry_id="e", base_hash=text_hash("- 喝白茶")),
        ]
        assert shown_lines(*events[:4]) == ["- 喝白茶", "- 喝龙井"]
        assert shown_lines(*events) == ["- 喝龙井"]

    def test_a_conflict_copy_stays_whatever_the_order_of_its_edits(self) -> None:
        """Reduced after each event, in every order of arrival (seed 58)."""
        left = make_event(3, "entry_edited", entry_id="e", base="- 喝红茶", text="- 喝绿茶")
        beside = conflict_copy_id("e", left.event_id)
        events = [
            make_event(1, "entry_added", entry_id="e", text="- 喝红茶"),
            make_event(2, "entry_edited", device="b", entry_id="e", base="- 喝红茶", text="- 喝白茶"),
            left,
            make_event(4, "entry_added", entry_id="end", text="- 末", after="e"),
            make_event(5, "entry_edited", device="b", entry_id=beside, base="- 喝绿茶", text="- 喝绿茶好"),
            make_event(6, "entry_edited", device="b", entry_id=beside, base="- 喝绿茶好", text="- 喝绿茶很好"),
        ]
        expected = shown_lines(*events)
        assert expected == ["- 喝白茶", "- 末", "- 喝绿茶很好"]
        for order in permutations(events):
            fold = SharedReducer()
            for one in order:
                fold.add(one)
                fold.entries_in(WORK_HABITS)
            assert [line.text for line in fold.entries_in(WORK_HABITS)] == expected

    def test_a_line_stays_in_place_when_its_neighbour_is_removed_or_moved(self) -> None:
        events = [
            make_event(1, "entry_added", entry_id="one", text="- 一"),
            make_event(2, "entry_added", entry_id="two", text="- 二", after="one"),
            make_event(3, "entry_added", entry_id="three", text="- 三", after="two"),
            make_event(4, "entry_removed", device="b", entry_id="one", base_hash=text_hash("- 一")),
            make_event(5, "entry_added", entry_id="half", text="- 半", after="one"),
            make_event(6, "entry_moved", device="b", entry_id="two", after="three"),
        ]
        assert shown_lines(*events) == ["- 半", "- 三", "- 二"]
        assert (
            shown_lines(*events, make_event(7, "entry_added", entry_id="end", text="- 末", after="nobody"))[-1]
            == "- 末"
        )

    def test_events_of_a_clock_far_ahead_keep_their_order_under_any_local_number(self) -> None:
        """A home restored from a backup stores its former events under other numbers (seed 10195)."""
        first, second = (
            make_event(number, "entry_added", entry_id=f"e{number}", text=f"- {number}") for number in (1, 2)
        )
        then = "2023-11-14T22:13:20Z"  # server time: years before the clock
        ahead = [
            replace(first, hlc=format_hlc(10**13), server_ts=then),
            replace(second, hlc=format_hlc(10**14), server_ts=then),
        ]
        restored = [replace(ahead[0], replica_id="rep_z", replica_seq=9), ahead[1]]
        assert shown_lines(*restored) == shown_lines(*ahead)

    def test_malformed_events_of_another_program_are_ignored(self) -> None:
        odd: list[dict[str, Any]] = [
            {"entry_id": 7, "text": "- 一"},
            {"entry_id": "x", "text": None},
            {"entry_id": "x", "text": "- 一", "section": "none"},
            {"text": "- 一"},
        ]
        events = [make_event(number, "entry_added", **payload) for number, payload in enumerate(odd, start=1)]
        assert shown_lines(*events, make_event(9, "entry_added", entry_id="e", text="## 不是标题")) == ["\\## 不是标题"]

    def test_fences_opened_by_two_devices_are_one_entry_and_nothing_grows(self) -> None:
        fold = SharedReducer()
        for number, text in enumerate(["```", "- 一", "```"], start=1):
            fold.add(make_event(number, "entry_added", entry_id=f"e{number}", text=text, after=f"e{number - 1}"))
        first = render_shared(fold, LocalOverlay())
        assert [(entry.entry_id, entry.text) for entry in first.entries] == [("e1", "```\n- 一\n```")]
        assert parse(first.document.text.encode()) == first.document
        assert render_shared(fold, build_overlay(first, fold, REDACTOR.clean)) == first

    def test_headings_come_and_go_and_one_with_lines_stays(self) -> None:
        fold = SharedReducer()
        plans = ["计划"]
        fold.add(make_event(1, SECTION_ADDED, section=plans))
        assert "## 计划\n" in render_shared(fold, LocalOverlay()).document.text
        fold.add(make_event(2, SECTION_REMOVED, section=plans))
        assert "计划" not in render_shared(fold, LocalOverlay()).document.text
        fold.add(make_event(3, "entry_added", device="b", entry_id="e", section=plans, text="- 一"))
        assert "## 计划\n\n- 一\n" in render_shared(fold, LocalOverlay()).document.text


class TestLanguage:
    def test_the_first_event_tells_the_language_whatever_arrives_first(self) -> None:
        english = make_event(1, "entry_added", entry_id="e", text="- one", language="en")
        chinese = make_event(2, "entry_added", device="b", entry_id="f", text="- 二")
        for events in permutations([english, chinese]):
            text = render_shared(reduce_events(*events), LocalOverlay()).document.text
            assert "# AI Conversation Memory\n" in text
            assert "### Work habits\n- 二\n- one\n" in text
            assert "**Last updated**: " in text

    def test_english_headings_of_an_event_are_the_same_section(self) -> None:
        english = make_event(1, "entry_added", entry_id="e", text="- one", section=["User preferences", "Work habits"])
        assert shown_lines(english) == ["- one"]


class TestDerivedLines:
    """Lines that the program writes from the log: they never win against a manual edit."""

    def test_a_line_that_two_devices_derive_is_one_line_in_any_order(self) -> None:
        events = [
            make_event(1, "entry_added", entry_id="e", text="- 深色", derived="fact"),
            make_event(2, "entry_edited", entry_id="e", base="- 深色", text="- 很深的颜色"),
            make_event(3, "entry_added", device="b", entry_id="e", text="- 深色", derived="fact"),
        ]
        for order in permutations(events):
            assert shown_lines(*order) == ["- 很深的颜色"]

    def test_a_fact_that_holds_again_brings_its_line_back(self) -> None:
        events = [
            make_event(1, "entry_added", entry_id="e", text="- 深色", derived="fact"),
            make_event(2, "entry_removed", device="b", entry_id="e", base_hash=text_hash("- 深色")),
            make_event(3, "entry_added", entry_id="e", text="- 很深", derived="fact"),
        ]
        for order in permutations(events):
            assert shown_lines(*order) == ["- 很深"]
        assert shown_lines(*events[:2]) == []

    def test_a_derived_text_and_removal_apply_to_the_text_they_knew_alone(self) -> None:
        base = text_hash("- 深色")
        events = [
            make_event(1, "entry_added", entry_id="e", text="- 深色", derived="fact"),
            make_event(2, "entry_edited", entry_id="e", base="- 深色", text="- 我写的"),
            make_event(3, "entry_edited", device="b", entry_id="e", base_hash=base, text="- 浅色", derived="fact"),
            make_event(4, "entry_removed", device="b", entry_id="e", base_hash=base, derived="fact"),
        ]
        for order in permutations(events):
            assert shown_lines(*order) == ["- 我写的"]
        assert shown_lines(events[0], events[2]) == ["- 浅色"]
        assert shown_lines(events[0], events[3]) == []

    def test_an_edit_does_not_bring_a_removed_line_back(self) -> None:
        removed = make_event(2, "entry_removed", entry_id="e", base_hash=text_hash("- make（×3）"))
        edited = make_event(
            3,
            "entry_edited",
            device="b",
            entry_id="e",
            base_hash=text_hash("- make（×3）"),
            text="- make（×4）",
            derived="use",
        )
        again = make_event(4, "entry_added", device="b", entry_id="e", text="- make（×4）", derived="use")
        added = make_event(1, "entry_added", entry_id="e", text="- make（×3）", derived="use")
        for order in permutations([added, removed, edited, again]):
            assert shown_lines(*order) == []

    def test_a_removal_of_a_line_whose_count_grew_meanwhile_applies(self) -> None:
        old, new = text_hash("- make（×3）"), text_hash("- make（×4）")
        added = make_event(1, "entry_added", entry_id="e", text="- make（×3）", derived="use")
        grown = make_event(2, "entry_edited", entry_id="e", base_hash=old, text="- make（×4）", derived="use")
        removed = make_event(4, "entry_removed", device="b", entry_id="e", base_hash=old)
        for order in permutations([added, grown, removed]):
            assert shown_lines(*order) == []
        edited = make_event(3, "entry_edited", entry_id="e", base_hash=new, base="- make（×4）", text="- make all")
        for order in permutations([added, grown, edited, removed]):
            assert shown_lines(*order) == ["- make all"]
