"""Whatever comes in whichever order: a story that goes on is the story told from the beginning."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sync.daily.model import MARKS
from sync.daily.records.reducer import DailyRecords, RecordsReducer, reduce_events
from sync.log.event_types import (
    DAILY_UNDONE,
    PAYLOAD_EXPIRED,
    PAYLOAD_FORGOTTEN,
    PAYLOAD_REDACTED,
    SESSION_EDITED,
    SESSION_MARKED,
    SESSION_ORIGINAL,
    SESSION_RECORDED,
    SESSION_REMOVED,
    SESSION_SKIPPED,
)
from sync.log.model import Event, EventScope

MOST = 14
NAMES = st.sampled_from(["rec_1", "rec_2", "rec_3"])
IDS = st.integers(0, 8).map("evt_{:02}".format)
TOPICS = st.sampled_from(["火锅", "端口", "重构"])
DAYS = st.sampled_from(["2026-01-29", "2026-01-30"])
SAID = {"record_id": NAMES, "topic": TOPICS, "date": DAYS, "time": st.just("10:00:00"), "session": st.integers(0, 2)}
PLAIN = st.one_of(
    st.tuples(st.just(SESSION_RECORDED), st.fixed_dictionaries(SAID)),
    st.tuples(
        st.just(SESSION_EDITED),
        st.fixed_dictionaries({"record_id": NAMES, "topic": TOPICS, "changed": st.just(["topic"])}),
    ),
    st.tuples(
        st.just(SESSION_MARKED),
        st.fixed_dictionaries({"record_id": NAMES, "mark": st.sampled_from(MARKS), "on": st.booleans()}),
    ),
    st.tuples(st.just(SESSION_REMOVED), st.fixed_dictionaries({"record_id": NAMES})),
    st.tuples(st.just(SESSION_SKIPPED), st.fixed_dictionaries({"session_id": NAMES, "on": st.booleans()})),
)
TURNING: st.SearchStrategy[tuple[str, Any]] = st.one_of(
    st.tuples(st.just(DAILY_UNDONE), st.fixed_dictionaries({"undoes": IDS, "record_id": NAMES})),
    st.tuples(st.just(SESSION_ORIGINAL), st.fixed_dictionaries({"of": IDS | st.none() | st.just([]), "topic": TOPICS})),
    st.tuples(
        st.sampled_from([PAYLOAD_FORGOTTEN, PAYLOAD_EXPIRED]),
        st.fixed_dictionaries({"event_ids": st.lists(IDS, max_size=2)}),
    ),
    st.tuples(
        st.just(PAYLOAD_REDACTED),
        st.fixed_dictionaries({"event_id": IDS, "payload": st.fixed_dictionaries({"record_id": NAMES})}),
    ),
)


def event(number: int, kind: str, payload: dict[str, Any], position: int = 0) -> Event:
    return Event(
        event_id=f"evt_{number:02}",
        schema_version=1,
        project_id="proj",
        project_path=None,
        session_id="s",
        ts=f"2026-02-02T10:00:{number:02}Z",
        type=kind,
        payload=payload,
        device_id="device-a",
        replica_id="rep",
        replica_seq=number,
        hlc=f"{number // 2:012x}-0000",  # two at one moment: then the id decides
        origin="user-typed",
        reach=EventScope.CLOUD,
        local_date="2026-02-02",
        utc_offset=0,
        position=position,
    )


def orders(book: DailyRecords) -> tuple[list[str], list[str]]:
    """What two books that are equal may still differ in."""
    return list(book.by_id), list(book.removed)


@settings(max_examples=400)
@given(told=st.lists(PLAIN | PLAIN | TURNING, max_size=MOST), data=st.data())
def test_a_story_that_goes_on_is_the_one_told_from_the_beginning(
    told: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    numbers = list(range(len(told)))
    arrival = data.draw(st.just(numbers) | st.permutations(numbers), "arrival")
    events = [event(number, *told[number], position) for position, number in enumerate(arrival, start=1)]
    story, heard, anew = RecordsReducer(), 0, DailyRecords()
    while heard < len(events):
        until = heard + data.draw(st.integers(1, 4), "at once")
        before = story.current_records()
        went_on = story.extend(events[heard:until])
        assert before == anew, "a book stays as it was given out"
        if not went_on:
            assert story.current_records() == before, "none of them was told"
            story = RecordsReducer(events[:until])
        heard = until
        anew = reduce_events(events[:heard])
        assert story.current_records() == anew
        assert orders(story.current_records()) == orders(anew)


@given(st.lists(PLAIN, min_size=1, max_size=MOST))
def test_deeds_that_come_one_after_the_other_are_never_told_anew(told: list[tuple[str, dict[str, Any]]]) -> None:
    story = RecordsReducer()
    assert all(story.extend([event(number, *one, number + 1)]) for number, one in enumerate(told))


def test_words_before_redaction_count_also_where_they_come_later_than_their_deed() -> None:
    said = {"record_id": "rec_1", "topic": "<EMAIL>", "date": "2026-01-29", "time": "10:00:00", "session": 1}
    deed, original = (
        event(1, SESSION_RECORDED, said, 1),
        event(2, SESSION_ORIGINAL, {"of": "evt_01", "topic": "a@b.cn"}, 2),
    )
    story = RecordsReducer([deed])
    assert not story.extend([original])
    assert reduce_events([deed, original]).by_id["rec_1"].content.topic == "a@b.cn"


def test_a_deed_holds_also_where_the_clock_of_whoever_made_the_record_is_weeks_ahead() -> None:
    said = {"record_id": "rec_1", "topic": "火锅", "date": "2026-01-29", "time": "10:00:00", "session": 1}
    edited = event(1, SESSION_EDITED, {"record_id": "rec_1", "topic": "端口", "changed": ["topic"]}, 2)
    marked = event(2, SESSION_MARKED, {"record_id": "rec_1", "mark": "important", "on": True}, 3)
    record = event(9, SESSION_RECORDED, said, 1)
    known = reduce_events([record, edited, marked]).by_id["rec_1"]
    assert (known.content.topic, known.marks) == ("端口", ("important",))
    assert reduce_events([record, event(3, SESSION_REMOVED, {"record_id": "rec_1"}, 2)]).by_id == {}


def test_an_undo_of_an_undo_holds_wherever_the_clocks_place_it() -> None:
    said = {"record_id": "rec_1", "topic": "火锅", "date": "2026-01-29", "time": "10:00:00", "session": 1}
    record = event(1, SESSION_RECORDED, said, 1)
    undo, back = event(9, DAILY_UNDONE, {"undoes": "evt_01"}, 2), event(5, DAILY_UNDONE, {"undoes": "evt_09"}, 3)
    assert reduce_events([record, undo]).by_id == {}
    assert list(reduce_events([record, undo, back]).by_id) == ["rec_1"]
