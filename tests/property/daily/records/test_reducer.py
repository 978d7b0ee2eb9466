"""The reducer gives the same records for any order of arrival, incrementally and from the beginning."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from sync.daily.model import MARKS
from sync.daily.records.changes import edit_record
from sync.daily.records.reducer import DailyRecords, RecordsReducer, reduce_events
from sync.log.devices.device_registry import DeviceRegistry, RegisteredDevice
from sync.log.devices.device_view import DeviceView
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
from sync.log.model import UNPROVEN_FIELD, Event, EventScope
from tests.proof import examples

MOST = 14
PHONE, NEW = "phone", "new"
REGISTRY = DeviceRegistry(
    {name: RegisteredDevice(name, was_admitted=True) for name in ("device-a", PHONE)}, has_first=True
)
VIEW = DeviceView(REGISTRY, frozenset({"device-a"}))
SENDERS: Any = st.fixed_dictionaries(
    {
        "device": st.sampled_from(["device-a", PHONE, NEW, NEW]),
        "extra": st.sampled_from([{}, {}, {}, {UNPROVEN_FIELD: True}]),
    }
)
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


def event(
    number: int,
    kind: str,
    payload: dict[str, Any],
    position: int = 0,
    *,
    event_id: str = "",
    hlc: str = "",
    device: str = "device-a",
    extra: Any = None,
) -> Event:
    return Event(
        event_id=event_id or f"evt_{number:02}",
        schema_version=1,
        project_id="proj",
        project_path=None,
        session_id="s",
        ts=f"2026-02-02T10:00:{number:02}Z",
        type=kind,
        payload=payload,
        device_id=device,
        extra=extra or {},
        replica_id="rep",
        replica_seq=number,
        hlc=hlc or f"{number // 2:012x}-0000",  # two events share each timestamp: then the id decides
        origin="user-typed",
        reach=EventScope.CLOUD,
        local_date="2026-02-02",
        utc_offset=0,
        position=position,
    )


def orders(records: DailyRecords) -> tuple[list[str], list[str]]:
    """The order of the records, which equality ignores."""
    return list(records.by_id), list(records.removed)


def reverse_ids(value: Any) -> Any:
    """Replace every event id in a payload by one that sorts the other way round."""
    if isinstance(value, dict):
        return {key: reverse_ids(part) for key, part in value.items()}
    if isinstance(value, list):
        return [reverse_ids(part) for part in value]
    is_id = isinstance(value, str) and value.startswith("evt_")
    return f"evt_{99 - int(value.removeprefix('evt_')):02}" if is_id else value


def log_content(records: DailyRecords) -> dict[str, Any]:
    """Everything in the records but positions, which are those of arrival."""
    names = {field.name for field in fields(records)} - {"content_positions"}
    content = {name: getattr(records, name) for name in names}
    changes = [(change.hlc, change.event_id, change.type, change.payload) for change in records.changes]
    return {**content, "changes": changes, "orders": orders(records)}


@settings(max_examples=examples(400))
@given(changes=st.lists(PLAIN | PLAIN | TURNING, max_size=MOST), data=st.data())
def test_any_order_of_arrival_gives_the_same_records_even_if_ids_sort_against_the_clocks(
    changes: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    numbers = range(len(changes))
    by = [data.draw(SENDERS, "by") for _ in numbers]
    in_order = [event(at, *changes[at], at + 1, hlc=f"{at:012x}-0000", **by[at]) for at in numbers]
    arrival = data.draw(st.permutations(numbers), "arrival")
    arrived = [
        event(
            number,
            changes[number][0],
            reverse_ids(changes[number][1]),
            position,
            event_id=reverse_ids(f"evt_{number:02}"),
            hlc=f"{number:012x}-0000",
            **by[number],
        )
        for position, number in enumerate(arrival, start=1)
    ]
    expected, records = log_content(reduce_events(in_order, VIEW)), log_content(reduce_events(arrived, VIEW))
    for name in ("by_id", "removed"):
        for record in expected[name].values():
            expected[name][record.record_id] = replace(record, event_id=reverse_ids(record.event_id))
    expected["all_change_ids"] = frozenset(map(reverse_ids, expected["all_change_ids"]))
    expected["changes"] = [
        (hlc, reverse_ids(event_id), kind, reverse_ids(payload)) for hlc, event_id, kind, payload in expected["changes"]
    ]
    assert records == expected


@settings(max_examples=examples(400))
@given(changes=st.lists(PLAIN | PLAIN | TURNING, max_size=MOST), data=st.data())
def test_incremental_reduction_equals_reduction_from_the_beginning(
    changes: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    numbers = list(range(len(changes)))
    arrival = data.draw(st.just(numbers) | st.permutations(numbers), "arrival")
    by = [data.draw(SENDERS, "by") for _ in numbers]
    events = [event(number, *changes[number], at, **by[number]) for at, number in enumerate(arrival, start=1)]
    reducer, done, expected = RecordsReducer((), VIEW), 0, DailyRecords()
    while done < len(events):
        until = done + data.draw(st.integers(1, 4), "at once")
        before = reducer.current_records()
        extended = reducer.extend(events[done:until])
        assert before == expected, "records that were returned do not change"
        if not extended:
            assert reducer.current_records() == before, "none of the events was applied"
            reducer = RecordsReducer(events[:until], VIEW)
        done = until
        expected = reduce_events(events[:done], VIEW)
        assert reducer.current_records() == expected
        assert orders(reducer.current_records()) == orders(expected)


@given(st.lists(PLAIN, min_size=1, max_size=MOST))
def test_changes_in_log_order_are_always_applied_incrementally(changes: list[tuple[str, dict[str, Any]]]) -> None:
    reducer = RecordsReducer()
    assert all(reducer.extend([event(number, *one, number + 1)]) for number, one in enumerate(changes))


RECORDED = {"record_id": "rec_1", "topic": "火锅", "date": "2026-01-29", "time": "10:00:00", "session": 1}


def test_the_original_text_counts_even_if_it_arrives_after_the_redacted_record() -> None:
    record = event(1, SESSION_RECORDED, {**RECORDED, "topic": "<EMAIL>"}, 1)
    original = event(2, SESSION_ORIGINAL, {"of": "evt_01", "topic": "a@b.cn"}, 2)
    reducer = RecordsReducer([record])
    assert not reducer.extend([original])
    assert reduce_events([record, original]).by_id["rec_1"].content.topic == "a@b.cn"


def test_a_record_shows_whole_texts_and_says_of_them_no_more_than_its_events() -> None:
    record = event(1, SESSION_RECORDED, {**RECORDED, "facts": ["甲"]}, 1)
    whole = event(2, SESSION_ORIGINAL, {"of": "evt_01", "topic": "火锅", "facts": ["甲", "乙"], "whole": "s1"}, 2)
    shown = reduce_events([record, whole]).by_id["rec_1"]
    assert (shown.content.facts, shown.shared_content.facts) == (("甲", "乙"), ("甲",))
    by_hand = edit_record(shown, replace(shown.content, facts=("乙", "丙")), ["facts"], by="hand")
    assert (by_hand.payload["facts"], by_hand.original and by_hand.original.facts) == (["丙"], ("乙", "丙"))
    edited = event(3, SESSION_EDITED, by_hand.payload, 3)
    elsewhere = reduce_events([record, edited]).by_id["rec_1"]
    assert elsewhere.content.facts == reduce_events([record, whole, edited]).by_id["rec_1"].shared_content.facts


def test_a_change_counts_even_if_the_clock_of_the_recording_device_is_weeks_ahead() -> None:
    edited = event(1, SESSION_EDITED, {"record_id": "rec_1", "topic": "端口", "changed": ["topic"]}, 2)
    marked = event(2, SESSION_MARKED, {"record_id": "rec_1", "mark": "important", "on": True}, 3)
    record = event(9, SESSION_RECORDED, RECORDED, 1)
    changed = reduce_events([record, edited, marked]).by_id["rec_1"]
    assert (changed.content.topic, changed.marks) == ("端口", ("important",))
    assert reduce_events([record, event(3, SESSION_REMOVED, {"record_id": "rec_1"}, 2)]).by_id == {}


def test_an_undo_of_an_undo_counts_wherever_the_clocks_place_it() -> None:
    record = event(1, SESSION_RECORDED, RECORDED, 1)
    undo, redo = event(9, DAILY_UNDONE, {"undoes": "evt_01"}, 2), event(5, DAILY_UNDONE, {"undoes": "evt_09"}, 3)
    assert reduce_events([record, undo]).by_id == {}
    assert list(reduce_events([record, undo, redo]).by_id) == ["rec_1"]


def by_new(number: int, kind: str, **payload: Any) -> Event:
    return event(number, kind, {"record_id": "rec_1", **payload}, number, device=NEW)


@pytest.mark.parametrize(
    "change",
    [
        by_new(3, SESSION_EDITED, topic="别的", changed=["topic"]),
        by_new(3, SESSION_REMOVED),
        by_new(3, SESSION_MARKED, mark="outdated", on=True),
        by_new(3, DAILY_UNDONE, undoes="evt_02"),
        by_new(0, SESSION_RECORDED, **{**RECORDED, "topic": "抢先"}),
        by_new(0, SESSION_EDITED, topic="抢先", changed=["topic"]),
        event(3, SESSION_ORIGINAL, {"of": "evt_02", "topic": "别的"}, 3, device=NEW),
    ],
    ids=lambda change: change.type,
)
def test_what_a_new_device_changes_in_the_record_of_another_waits_until_it_is_admitted(change: Event) -> None:
    record = event(2, SESSION_RECORDED, RECORDED, 2)
    alone, records = reduce_events([record], VIEW), reduce_events([record, change], VIEW)
    assert (records.by_id, records.removed) == (alone.by_id, {})
    assert (records.changes, records.content_positions) == (alone.changes, alone.content_positions)
    admitted = DeviceRegistry({**REGISTRY.devices, NEW: RegisteredDevice(was_admitted=True)}, has_first=True)
    assert reduce_events([record, change], replace(VIEW, registry=admitted)).by_id != alone.by_id
    assert reduce_events([record, change], replace(VIEW, own_device_ids=frozenset({NEW}))).by_id != alone.by_id


def test_what_another_device_recorded_or_reworded_has_its_label() -> None:
    record = event(1, SESSION_RECORDED, RECORDED, 1, device=PHONE)
    assert reduce_events([record], VIEW).by_id["rec_1"].label == "来自 phone"
    own = event(1, SESSION_RECORDED, RECORDED, 1)
    marked = event(2, SESSION_MARKED, {"record_id": "rec_1", "mark": "important"}, 2, device=PHONE)
    assert reduce_events([own, marked], VIEW).by_id["rec_1"].label is None
    edited = event(3, SESSION_EDITED, {"record_id": "rec_1", "topic": "别的", "changed": ["topic"]}, 3, device=PHONE)
    assert reduce_events([own, marked, edited], VIEW).by_id["rec_1"].label == "来自 phone"
