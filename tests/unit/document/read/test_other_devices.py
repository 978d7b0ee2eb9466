"""The lines of other devices come from untrusted events: nothing in them may break a load."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from sync.document.markdown.template import PREFERENCES
from sync.document.read.device_digest import CONVERSATION_LINES, DEFAULT_WEIGHT, DEVICES_LIMIT, LINES_LIMIT
from sync.document.read.other_devices import device_digests
from sync.log.devices.device_registry import DeviceRegistry
from sync.log.event_types import DEVICE_HIDDEN, DEVICE_REGISTERED, DEVICE_RENAMED, DEVICE_REVOKED
from sync.log.model import Event, EventScope


def event(kind: str, payload: dict[str, Any], *, local_date: str = "2026-01-08", number: int = 1) -> Event:
    return Event(
        event_id=f"evt_{number}",
        schema_version=1,
        project_id="proj_global",
        project_path=None,
        session_id="sess",
        ts="2026-01-08T10:00:00.000Z",
        type=kind,
        payload=payload,
        device_id="device-b",
        replica_id="rep_b",
        replica_seq=number,
        hlc=f"019b9c3f5400-{number:04x}",
        origin="model-written",
        reach=EventScope.CLOUD,
        local_date=local_date,
        utc_offset=480,
    )


def texts(*newest_first: Event, by_hand: Sequence[Event] = ()) -> list[str]:
    return [line.text for device in device_digests(newest_first, by_hand, DeviceRegistry()) for line in device.lines]


def test_an_invalid_day_falls_back_to_the_event_time() -> None:
    (device,) = device_digests(
        [event("entry_added", {"entry_id": "a", "text": "一"}, local_date="2026-02-31")], [], DeviceRegistry()
    )
    assert device.lines[0].date.isoformat() == "2026-01-08"


def test_an_erased_event_shows_no_line() -> None:
    assert texts(event("exchange_recorded", {}), by_hand=[event("entry_added", {})]) == []


def test_a_payload_without_the_expected_fields_breaks_nothing() -> None:
    assert texts(event("exchange_recorded", {"topic": "?"})) == ["用户问：", "AI 答："]
    assert texts(event("entry_added", {"text": 5})) == ["5"]
    assert texts(event("entry_edited", {})) == []


def test_an_edit_replaces_and_a_removal_hides_what_came_before() -> None:
    added = event("entry_added", {"entry_id": "a", "text": "旧"}, number=1)
    edited = event("entry_edited", {"entry_id": "a", "text": "新"}, number=2)
    removed = event("entry_removed", {"entry_id": "a"}, number=3)
    assert texts(edited, added) == ["新"]
    assert texts(removed, edited, added) == []


def test_an_edit_in_a_copied_data_directory_does_not_change_the_original_line() -> None:
    added = event("entry_added", {"entry_id": "a", "text": "旧"}, number=1)
    for done in ("entry_removed", "entry_edited"):
        there = replace(event(done, {"entry_id": "a", "text": "别处"}, number=2), device_id="device-c")
        assert texts(there, added) == ["旧"]
        shared = replace(there, payload={**there.payload, "shared": True})
        assert texts(shared, added) == ([] if done == "entry_removed" else ["别处"])


def test_half_of_an_exchange_can_be_removed() -> None:
    said = event("exchange_recorded", {"question": "问", "answer": "答"}, number=1)
    assert texts(event("entry_removed", {"entry_id": "evt_1.a"}, number=2), said) == ["用户问：问"]


def test_the_last_hide_or_show_of_a_device_counts() -> None:
    hide, show = ({"device_id": "device-b", "hidden": hidden} for hidden in (True, False))
    assert DeviceRegistry.of([event(DEVICE_HIDDEN, hide)]).hidden == {"device-b"}
    assert DeviceRegistry.of([event(DEVICE_HIDDEN, show, number=2), event(DEVICE_HIDDEN, hide)]).hidden == frozenset()


@pytest.mark.parametrize("payload", [{}, {"device_id": 5}, {"device_id": "device-b", "name": ["x"], "hidden": "yes"}])
@pytest.mark.parametrize("kind", [DEVICE_REGISTERED, DEVICE_RENAMED, DEVICE_REVOKED, DEVICE_HIDDEN])
def test_malformed_device_events_break_no_load(kind: str, payload: dict[str, Any]) -> None:
    registry = DeviceRegistry.of([event(kind, payload)])
    assert registry.hidden == frozenset()
    (device,) = device_digests([event("exchange_recorded", {"question": 5})], [], registry)
    assert device.name == "device-b"


@pytest.mark.parametrize("importance", [True, "0.9", 7, -1, float("nan"), None])
def test_an_invalid_importance_counts_as_none(importance: object) -> None:
    (device,) = device_digests([event("exchange_recorded", {"importance": importance})], [], DeviceRegistry())
    assert {line.weight for line in device.lines} == {DEFAULT_WEIGHT}


def said(number: int, *, day: int = 8, **more: Any) -> Event:
    payload = {"question": f"问{number}", "answer": f"答{number}", **more}
    return event("exchange_recorded", payload, local_date=f"2026-01-{day:02}", number=number)


def liked(number: int) -> Event:
    payload = {"entry_id": f"p{number}", "text": f"- 好{number}", "section": [PREFERENCES, "工作习惯"]}
    return event("entry_added", payload, local_date="2025-06-01", number=number)


def test_preferences_come_first_then_the_important_then_the_newest_and_answers_follow_questions() -> None:
    exchanges = [said(5), said(4, importance=0.9, day=2), said(3, day=7)]
    assert texts(*exchanges, by_hand=[liked(1)]) == [
        "- 好1",
        *("用户问：问4", "AI 答：答4"),
        *("用户问：问5", "AI 答：答5"),
        *("用户问：问3", "AI 答：答3"),
    ]


def test_a_device_with_many_preferences_still_shows_its_last_conversations() -> None:
    preferences = [liked(number) for number in range(40, 0, -1)]
    shown = texts(*(said(number) for number in range(90, 50, -1)), by_hand=preferences)
    assert len(shown) == LINES_LIMIT
    assert sum(text.startswith("- 好") for text in shown) == LINES_LIMIT - CONVERSATION_LINES
    assert "用户问：问90" in shown
    assert len(texts(said(90), by_hand=preferences)) == LINES_LIMIT


def test_only_the_last_active_devices_are_shown() -> None:
    events = [replace(said(number), device_id=f"device-{number}") for number in range(9, 0, -1)]
    assert [device.device_id for device in device_digests(events, [], DeviceRegistry())] == [
        f"device-{number}" for number in range(9, 9 - DEVICES_LIMIT, -1)
    ]
