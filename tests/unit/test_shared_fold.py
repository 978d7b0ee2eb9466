"""The shared document's fold, case by case; what any history comes to is in `property/test_shared_document.py`."""

from dataclasses import replace
from itertools import permutations
from typing import Any

from sync.clock import hlc_text
from sync.document.canonical import canonical
from sync.document.capture import LARGEST_ENTRY
from sync.document.deeds import SECTION_ADDED, SECTION_REMOVED, hashed, twin
from sync.document.model import Snapshot
from sync.document.overlay import Overlay, as_typed, overlay
from sync.document.parse import parse
from sync.document.shared import SharedFold
from sync.document.template import WORK_HABITS
from sync.log.model import Event
from tests.support import REDACTOR, event

HERE = list(WORK_HABITS)


def said(number: int, kind: str, *, device: str = "a", **payload: Any) -> Event:
    """The event at that place of the order."""
    return event(
        number,
        replica=f"rep_{device}",
        device=f"device-{device}",
        type=kind,
        hlc=hlc_text(1_700_000_000_000, number),
        payload={"section": HERE, "shared": True, **payload},
    )


def folded(*events: Event) -> SharedFold:
    fold = SharedFold()
    for one in events:
        fold.add(one)
    return fold


def shown(*events: Event) -> list[str]:
    return [line.text for line in folded(*events).lines(WORK_HABITS)]


def shown_over(local: Snapshot | None, fold: SharedFold) -> Snapshot:
    """What a device with this version shows."""
    return canonical(fold, overlay(local, fold, REDACTOR.clean))


class TestFold:
    def test_a_removal_that_comes_before_what_it_removes_is_remembered(self) -> None:
        added = said(2, "entry_added", entry_id="e", text="- 一")
        assert shown(said(1, "entry_removed", entry_id="e"), added) == []

    def test_an_edit_of_an_entry_that_nobody_added_is_an_entry(self) -> None:
        assert shown(said(1, "entry_edited", entry_id="e", base="- 一", text="- 二")) == ["- 二"]

    def test_the_same_addition_twice_is_one(self) -> None:
        twice = [said(number, "entry_added", entry_id="e", text="- 一") for number in (1, 2)]
        assert shown(*twice) == ["- 一"]

    def test_what_follows_from_one_side_of_a_conflict_goes_on_there(self) -> None:
        events = [
            said(1, "entry_added", entry_id="e", text="- 喝红茶"),
            said(2, "entry_edited", device="b", entry_id="e", base="- 喝红茶", text="- 喝白茶"),
            said(3, "entry_edited", entry_id="e", base="- 喝红茶", text="- 喝绿茶"),
            said(4, "entry_edited", entry_id="e", base="- 喝绿茶", text="- 喝龙井"),
            said(5, "entry_removed", device="b", entry_id="e", base_hash=hashed("- 喝白茶")),
        ]
        assert shown(*events[:4]) == ["- 喝白茶", "- 喝龙井"]
        assert shown(*events) == ["- 喝龙井"]

    def test_a_line_beside_another_stays_there_however_late_the_edits_come_that_made_and_changed_it(self) -> None:
        """Looked at after each event, in every order in which they can come (seed 58)."""
        left = said(3, "entry_edited", entry_id="e", base="- 喝红茶", text="- 喝绿茶")
        beside = twin("e", left.event_id)
        events = [
            said(1, "entry_added", entry_id="e", text="- 喝红茶"),
            said(2, "entry_edited", device="b", entry_id="e", base="- 喝红茶", text="- 喝白茶"),
            left,
            said(4, "entry_added", entry_id="end", text="- 末", after="e"),
            said(5, "entry_edited", device="b", entry_id=beside, base="- 喝绿茶", text="- 喝绿茶好"),
            said(6, "entry_edited", device="b", entry_id=beside, base="- 喝绿茶好", text="- 喝绿茶很好"),
        ]
        expected = shown(*events)
        assert expected == ["- 喝白茶", "- 末", "- 喝绿茶很好"]
        for order in permutations(events):
            fold = SharedFold()
            for one in order:
                fold.add(one)
                fold.lines(WORK_HABITS)
            assert [line.text for line in fold.lines(WORK_HABITS)] == expected

    def test_a_line_whose_neighbour_is_gone_or_moved_stays_where_it_was_put(self) -> None:
        events = [
            said(1, "entry_added", entry_id="one", text="- 一"),
            said(2, "entry_added", entry_id="two", text="- 二", after="one"),
            said(3, "entry_added", entry_id="three", text="- 三", after="two"),
            said(4, "entry_removed", device="b", entry_id="one", base_hash=hashed("- 一")),
            said(5, "entry_added", entry_id="half", text="- 半", after="one"),
            said(6, "entry_moved", device="b", entry_id="two", after="three"),
        ]
        assert shown(*events) == ["- 半", "- 三", "- 二"]
        assert shown(*events, said(7, "entry_added", entry_id="end", text="- 末", after="nobody"))[-1] == "- 末"

    def test_of_a_clock_far_ahead_events_stay_in_their_order_under_whatever_number_a_device_holds_them(self) -> None:
        """A home that was restored holds what its former life has sent under numbers of its own (seed 10195)."""
        first, second = (said(number, "entry_added", entry_id=f"e{number}", text=f"- {number}") for number in (1, 2))
        then = "2023-11-14T22:13:20Z"  # when the server took them: years before what the clock says
        ahead = [
            replace(first, hlc=hlc_text(10**13), server_ts=then),
            replace(second, hlc=hlc_text(10**14), server_ts=then),
        ]
        restored = [replace(ahead[0], replica_id="rep_z", replica_seq=9), ahead[1]]
        assert shown(*restored) == shown(*ahead)

    def test_what_another_program_wrote_in_its_own_way_stops_nothing(self) -> None:
        odd: list[dict[str, Any]] = [
            {"entry_id": 7, "text": "- 一"},
            {"entry_id": "x", "text": None},
            {"entry_id": "x", "text": "- 一", "section": "none"},
            {"text": "- 一"},
        ]
        events = [said(number, "entry_added", **payload) for number, payload in enumerate(odd, start=1)]
        assert shown(*events, said(9, "entry_added", entry_id="e", text="## 不是标题")) == ["\\## 不是标题"]

    def test_fences_that_two_devices_opened_are_one_entry_to_whoever_reads_the_file_and_nothing_grows(self) -> None:
        fold = SharedFold()
        for number, text in enumerate(["```", "- 一", "```"], start=1):
            fold.add(said(number, "entry_added", entry_id=f"e{number}", text=text, after=f"e{number - 1}"))
        first = canonical(fold, Overlay())
        assert [(entry.entry_id, entry.text) for entry in first.entries] == [("e1", "```\n- 一\n```")]
        assert parse(first.document.text.encode()) == first.document
        assert canonical(fold, overlay(first, fold, REDACTOR.clean)) == first

    def test_headings_come_and_go_and_one_with_lines_stays(self) -> None:
        fold = SharedFold()
        plans = ["计划"]
        fold.add(said(1, SECTION_ADDED, section=plans))
        assert "## 计划\n" in canonical(fold, Overlay()).document.text
        fold.add(said(2, SECTION_REMOVED, section=plans))
        assert "计划" not in canonical(fold, Overlay()).document.text
        fold.add(said(3, "entry_added", device="b", entry_id="e", section=plans, text="- 一"))
        assert "## 计划\n\n- 一\n" in canonical(fold, Overlay()).document.text


class TestOverlay:
    """What a device's own version adds to what the fold shows."""

    added = said(1, "entry_added", entry_id="e", text="- 喝红茶")
    between = said(2, "entry_edited", entry_id="e", base="- 喝红茶", text="- 喝绿茶")
    later = said(3, "entry_edited", device="b", entry_id="e", base="- 喝绿茶", text="- 喝龙井")

    def test_a_line_that_a_conflict_left_goes_when_what_settles_it_comes(self) -> None:
        """A server that went back may give the later edit first; whoever looked in between shows what all show."""
        fold = folded(self.added, self.later)
        seen = shown_over(None, fold)
        assert [entry.text for entry in seen.entries] == ["- 喝红茶", "- 喝龙井"]
        fold.add(self.between)
        assert shown_over(seen, fold).document == shown_over(None, fold).document
        again = folded(self.added, self.between, self.later)  # after a start, which never saw the two meet
        assert shown_over(seen, again).document == shown_over(None, fold).document

    def test_the_device_s_own_line_below_it_stays_where_it_stood(self) -> None:
        end = said(2, "entry_added", device="b", entry_id="end", text="- 末", after="e")
        fold = folded(self.added, end, self.later)
        seen = shown_over(None, fold)
        at = seen.document.text.index("- 末")
        text = seen.document.text[:at] + "- 太长\n" + seen.document.text[at:]
        entries = [entry.entry_id for entry in seen.entries]
        seen = Snapshot(parse(text.encode()), (*entries[:2], "large", *entries[2:]))
        fold.add(self.between)
        assert [entry.text for entry in shown_over(seen, fold).entries] == ["- 喝龙井", "- 太长", "- 末"]


class TestAsTyped:
    @staticmethod
    def clean(text: str) -> str:
        return text.replace("密码 abc", "密码 [密钥]").replace("138", "[手机号]")

    def test_what_was_typed_goes_back_into_its_place_in_an_edited_line(self) -> None:
        assert as_typed("- 电话 138", "- 我的 [手机号]。", self.clean) == "- 我的 138。"

    def test_not_where_nothing_would_redact_it_any_more(self) -> None:
        """The document also leaves the device, redacted once more: then the secret would go with it."""
        assert as_typed("- 密码 abc", "- 暗号 [密钥]", self.clean) == "- 暗号 [密钥]"

    def test_a_line_too_large_for_an_event_is_the_device_s_alone(self) -> None:
        large = "- " + "a" * LARGEST_ENTRY
        assert as_typed(large, "- 短", self.clean) == large
