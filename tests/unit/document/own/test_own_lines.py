"""The lines that the events of one device make, in the order of the events."""

from typing import Any

from msgspec.structs import replace

from sync.clock import format_hlc
from sync.document.markdown.entry_ids import conflict_copy_id, text_hash
from sync.document.markdown.template import RECORDS, WORK_HABITS
from sync.document.own.own_lines import OwnLines
from sync.log.model import Event
from tests.support import event

HERE = list(WORK_HABITS)


def made(number: int, kind: str, **payload: Any) -> Event:
    """The event at this place of the order."""
    return event(number, type=kind, hlc=format_hlc(1_700_000_000_000, number), payload={"section": HERE, **payload})


def added(number: int, entry_id: str, text: str, after: str | None = None, **more: Any) -> Event:
    return made(number, "entry_added", entry_id=entry_id, text=text, after=after, **more)


def edited(number: int, entry_id: str, base: str, text: str, **more: Any) -> Event:
    return made(number, "entry_edited", entry_id=entry_id, base_hash=text_hash(base), text=text, **more)


def removed(number: int, entry_id: str, seen: str | None = None) -> Event:
    hashed = {} if seen is None else {"base_hash": text_hash(seen)}
    return made(number, "entry_removed", entry_id=entry_id, **hashed)


def lines_of(*events: Event) -> OwnLines:
    lines = OwnLines()
    for one in events:
        lines.add(one)
    return lines


def text_of(lines: OwnLines, entry_id: str) -> str | None:
    line, *_ = lines.with_copies(entry_id)
    return line.text if line.is_present else None


def order_in(lines: OwnLines, last: str) -> list[str]:
    (line,) = lines.with_copies(last)
    before = [one for one in lines.ids_before(line) if lines.with_copies(one)[0].is_present]
    return [*reversed(before), last]


def by_program(one: Event) -> Event:
    return replace(one, extra={"door": "program"})


class TestProposals:
    def test_a_program_changes_and_removes_no_line_of_the_user(self) -> None:
        mine = added(1, "e", "- 我对花生过敏")
        attacks = edited(2, "e", "- 我对花生过敏", "- 我爱吃花生"), removed(3, "e"), added(4, "e", "- 我爱吃花生")
        moved = made(5, "entry_moved", entry_id="e", after="")
        assert text_of(lines_of(mine, *map(by_program, (*attacks, moved))), "e") == "- 我对花生过敏"

    def test_a_program_changes_what_it_wrote_until_the_user_has_written_it(self) -> None:
        proposed = by_program(added(1, "e", "- 一")), by_program(edited(2, "e", "- 一", "- 二"))
        assert text_of(lines_of(*proposed), "e") == "- 二"
        assert text_of(lines_of(*proposed, by_program(removed(3, "e"))), "e") is None
        taken = edited(3, "e", "- 二", "- 三")
        assert text_of(lines_of(*proposed, taken, by_program(removed(4, "e"))), "e") == "- 三"


class TestText:
    def test_edits_follow_each_other_and_a_removal_takes_the_line(self) -> None:
        events = added(1, "e", "- 一"), edited(2, "e", "- 一", "- 二"), edited(3, "e", "- 二", "- 三")
        assert text_of(lines_of(*events), "e") == "- 三"
        assert text_of(lines_of(*events, removed(4, "e")), "e") is None
        assert "e" in lines_of(*events, removed(4, "e"))
        assert "f" not in lines_of(*events)

    def test_an_edit_that_did_not_know_another_is_merged_by_words(self) -> None:
        base = "- 早上 喝 茶"
        lines = lines_of(
            added(1, "e", base), edited(2, "e", base, "- 早上 喝 绿茶"), edited(3, "e", base, "- 早 喝 茶")
        )
        assert text_of(lines, "e") == "- 早 喝 绿茶"
        assert len(lines.with_copies("e")) == 1

    def test_if_that_conflicts_both_lines_stay_and_each_goes_on(self) -> None:
        base, white = "- 喝 茶", edited(3, "e", "- 喝 茶", "- 喝 白茶")
        events = added(1, "e", base), edited(2, "e", base, "- 喝 绿茶"), white
        copy_id = conflict_copy_id("e", white.event_id)
        assert [line.text for line in lines_of(*events).with_copies("e")] == ["- 喝 绿茶", "- 喝 白茶"]
        later = lines_of(
            *events, edited(4, "e", "- 喝 白茶", "- 喝 白开水"), edited(5, "e", "- 喝 绿茶", "- 喝 绿豆汤")
        )
        assert [text_of(later, one) for one in ("e", copy_id)] == ["- 喝 绿豆汤", "- 喝 白开水"]

    def test_an_edit_or_a_removal_of_a_text_that_no_own_event_has_holds(self) -> None:
        """It followed the change of another device, when a document could be that of several."""
        events = added(1, "e", "- 早上喝茶"), edited(2, "e", "- 那边的字", "- 最后的字")
        assert text_of(lines_of(*events), "e") == "- 最后的字"
        assert text_of(lines_of(*events, removed(3, "e", "- 又一次那边的字")), "e") is None

    def test_an_edit_outlasts_a_removal_that_did_not_know_it(self) -> None:
        events = added(1, "e", "- 一"), edited(2, "e", "- 一", "- 一二")
        assert text_of(lines_of(*events, removed(3, "e", "- 一")), "e") == "- 一二"
        assert (
            text_of(lines_of(added(1, "e", "- 一"), removed(2, "e"), edited(3, "e", "- 一", "- 一二")), "e") == "- 一二"
        )

    def test_an_edit_of_a_line_that_was_never_added_adds_it(self) -> None:
        assert text_of(lines_of(edited(1, "e", "- 一", "- 二")), "e") == "- 二"

    def test_what_is_no_payload_of_an_entry_changes_nothing(self) -> None:
        odd = added(1, "", "- 一"), made(2, "entry_added", entry_id="e"), made(3, "entry_edited", entry_id=7, text="x")
        lines = lines_of(*odd, made(4, "section_added"), made(5, "section_removed"))
        assert "e" not in lines


class TestDerivedLines:
    def test_a_derived_text_replaces_only_the_text_that_it_knew(self) -> None:
        first = added(1, "e", "- 浅色", derived="fact")
        follows = edited(2, "e", "- 浅色", "- 深色", derived="fact")
        assert text_of(lines_of(first, follows), "e") == "- 深色"
        by_hand = edited(2, "e", "- 浅色", "- 浅色，白天")
        assert (
            text_of(lines_of(first, by_hand, edited(3, "e", "- 浅色", "- 深色", derived="fact")), "e") == "- 浅色，白天"
        )
        assert text_of(lines_of(first, follows, removed(3, "e", "- 浅色")), "e") is None, "only the program changed it"

    def test_a_removed_line_of_a_fact_comes_back_and_one_of_a_use_does_not(self) -> None:
        for derived, shown in (("fact", "- 又"), ("use", None)):
            events = added(1, "e", "- 一", derived=derived), removed(2, "e"), added(3, "e", "- 又", derived=derived)
            assert text_of(lines_of(*events), "e") == shown


class TestExchanges:
    def test_a_repeat_counts_and_brings_the_question_back_but_not_the_answer(self) -> None:
        said = made(1, "exchange_recorded", question="问", answer="答")
        asked, answered = f"{said.event_id}.q", f"{said.event_id}.a"
        again = made(4, "exchange_recorded", question="问", answer="答", repeats=said.event_id)
        lines = lines_of(said, removed(2, asked), removed(3, answered), again)
        assert text_of(lines, asked) == "- 用户问：问（×2）"
        assert text_of(lines, answered) is None

    def test_a_folded_day_takes_its_lines_unless_they_were_edited(self) -> None:
        said = made(1, "exchange_recorded", question="问", answer="答")
        asked, answered = f"{said.event_id}.q", f"{said.event_id}.a"
        names = [{"id": asked, "hash": text_hash("- 用户问：问")}, {"id": answered, "hash": text_hash("- AI 答：答")}]
        folded = made(3, "day_folded", day="2023-11-14", entry_id="day", text="- 2023/11/14：问", entries=names)
        lines = lines_of(
            said, edited(2, answered, "- AI 答：答", "- AI 答：答案", section=[RECORDS, "2023/11/14"]), folded
        )
        assert [text_of(lines, one) for one in (asked, answered, "day")] == [None, "- AI 答：答案", "- 2023/11/14：问"]


class TestOrder:
    def test_a_line_follows_the_one_that_it_was_put_after(self) -> None:
        events = (
            added(1, "a", "- 甲"),
            added(2, "b", "- 乙", "a"),
            added(3, "first", "- 先"),
            added(4, "x", "- 某", "a"),
        )
        assert order_in(lines_of(*events), "b") == ["first", "a", "x", "b"]

    def test_a_removed_line_keeps_the_place_of_those_after_it(self) -> None:
        events = (
            added(1, "a", "- 甲"),
            added(2, "b", "- 乙", "a"),
            added(3, "x", "- 某", "a"),
            added(4, "c", "- 丙", "b"),
        )
        assert order_in(lines_of(*events, removed(5, "b")), "c") == ["a", "x", "c"]

    def test_a_line_that_was_moved_has_its_last_place(self) -> None:
        events = added(1, "a", "- 甲"), added(2, "b", "- 乙", "a"), made(3, "entry_moved", entry_id="b", after=None)
        assert order_in(lines_of(*events), "a") == ["b", "a"]
        other = edited(4, "a", "- 甲", "- 甲", section=["用户偏好", "沟通风格"])
        assert order_in(lines_of(*events, other), "b") == ["b"]
