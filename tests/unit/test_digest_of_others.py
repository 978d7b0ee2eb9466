"""What is shown of other devices comes from events we did not write: nothing in them may break a load."""

from typing import Any

from sync.document.others import device_names, digests
from sync.log.model import Event, Reach


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
        reach=Reach.CLOUD,
        local_date=local_date,
        utc_offset=480,
    )


def texts(*newest_first: Event) -> list[str]:
    return [line.text for device in digests(newest_first, {}) for line in device.lines]


def test_a_day_that_does_not_exist_falls_back_to_the_events_own_time() -> None:
    (device,) = digests([event("entry_added", {"entry_id": "a", "text": "一"}, local_date="2026-02-31")], {})
    assert device.lines[0].date.isoformat() == "2026-01-08"


def test_a_payload_without_the_expected_fields_breaks_nothing() -> None:
    assert texts(event("exchange_recorded", {})) == ["AI 答：", "用户问："]
    assert texts(event("entry_added", {"text": 5})) == ["5"]
    assert texts(event("entry_edited", {})) == []


def test_an_edit_replaces_and_a_removal_hides_what_came_before() -> None:
    added = event("entry_added", {"entry_id": "a", "text": "旧"}, number=1)
    edited = event("entry_edited", {"entry_id": "a", "text": "新"}, number=2)
    removed = event("entry_removed", {"entry_id": "a"}, number=3)
    assert texts(edited, added) == ["新"]
    assert texts(removed, edited, added) == []


def test_half_of_an_exchange_can_be_removed() -> None:
    said = event("exchange_recorded", {"question": "问", "answer": "答"}, number=1)
    assert texts(event("entry_removed", {"entry_id": "evt_1.a"}, number=2), said) == ["用户问：问"]


def test_the_newest_name_of_a_device_counts() -> None:
    names = [event("device_registered", {"name": "新名"}, number=2), event("device_registered", {"name": "旧名"})]
    assert device_names(names) == {"device-b": "新名"}
