"""Read the log by position, type, project, session and time; a page continues where the last one ended."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sync.db.engine import Database
from sync.errors import InvalidInput
from sync.log import store
from sync.log.ingest import parse_event_query
from sync.log.log import EventLog
from sync.log.model import MAX_PAGE_EVENTS, Event, Query, project_id_for
from tests.support import FixedClock, draft


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EventLog]:
    """Twelve events: two types, three projects, two sessions, one an hour."""
    clock = FixedClock()
    database = await Database.open(tmp_path / "memory.db")
    await database.write(lambda connection: store.ensure_replica_id(connection, clock))
    opened = EventLog(database, clock, device_id="device-a", session_id="s0")
    for number in range(12):
        await opened.append(
            [
                draft(
                    f"{number}",
                    kind=("message", "tool_call")[number % 2],
                    project_id=f"p{number % 3}",
                    session_id=f"s{number % 4 // 2}",
                    ts=f"2026-02-02T{number:02}:00:00.000Z",
                )
            ]
        )
    yield opened
    await database.close()


def numbers(events: tuple[Event, ...]) -> list[int]:
    return [int(event.payload["text"]) for event in events]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, list(range(12))),
        ({"types": ["message"]}, [0, 2, 4, 6, 8, 10]),
        ({"types": ["message", "tool_call"]}, list(range(12))),
        ({"types": ["nothing"]}, []),
        ({"project_id": "p1"}, [1, 4, 7, 10]),
        ({"session_id": "s1"}, [2, 3, 6, 7, 10, 11]),
        ({"project_id": "p1", "types": ["message"], "session_id": "s1"}, [10]),
        ({"since_ts": "2026-02-02T09:00:00.000Z"}, [9, 10, 11]),
        ({"since_ts": "2026-02-02T17:00:00+08:00"}, [9, 10, 11]),
        ({"until_ts": "2026-02-02T02:00:00Z"}, [0, 1]),
        ({"since_ts": "2026-02-02T01:00:00Z", "until_ts": "2026-02-02T03:00:00Z"}, [1, 2]),
        ({"after": 10}, [10, 11]),
        ({"limit": 3}, [0, 1, 2]),
        ({"limit": 5000}, list(range(12))),
    ],
)
async def test_a_filter_returns_matching_events_oldest_first(
    log: EventLog, wanted: dict[str, object], found: list[int]
) -> None:
    assert numbers((await log.read(parse_event_query(wanted))).events) == found


@pytest.mark.parametrize("limit", [1, 4, 5, 12, 13])
async def test_pages_follow_each_other_without_gap_or_overlap(log: EventLog, limit: int) -> None:
    found: list[int] = []
    after = 0
    while (page := await log.read(Query(after=after, limit=limit))).events:
        found += numbers(page.events)
        after = page.next_offset
    assert found == list(range(12))
    assert page.next_offset == after, "an empty page continues at its own offset"
    await log.append([draft("12")])
    assert numbers((await log.read(Query(after=after))).events) == [12]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [({"limit": 3}, [9, 10, 11]), ({"project_id": "p0", "limit": 2}, [6, 9]), ({"after": 11, "limit": 5}, [11])],
)
async def test_a_tail_is_the_newest_events_oldest_of_them_first(
    log: EventLog, wanted: dict[str, object], found: list[int]
) -> None:
    page = await log.tail(parse_event_query(wanted))
    assert numbers(page.events) == found
    assert page.next_offset == page.events[-1].position


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": "3"}, "limit"),
        ({"limit": True}, "limit"),
        ({"after": -1}, "after"),
        ({"after": 2**63}, "after"),
        ({"after": 1.5}, "after"),
        ({"types": "message"}, "types"),
        ({"types": [1]}, "types"),
        ({"since_ts": "yesterday"}, "since_ts"),
        ({"since_ts": "2026-02-02T10:00:00"}, "since_ts"),
        ({"until_ts": "2026-02-30T10:00:00Z"}, "until_ts"),
        ({"project": "p1"}, "project"),
        ({"project_id": 5}, "project_id"),
        ([], "filter"),
        ("all", "filter"),
    ],
)
def test_a_wrong_filter_is_refused_under_the_name_of_its_field(wanted: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_event_query(wanted)
    assert (caught.value.field or "").startswith(field)


def test_a_page_never_exceeds_the_limit() -> None:
    assert parse_event_query({}).limit == MAX_PAGE_EVENTS
    assert parse_event_query({"limit": 10**30}).limit == MAX_PAGE_EVENTS


async def test_a_watermark_is_the_offset_of_its_consumer(log: EventLog) -> None:
    clock = FixedClock()
    assert await log.database.read(lambda connection: store.watermark(connection, "document")) == 0
    await log.database.write(lambda connection: store.set_watermark(connection, "document", 3, clock))
    await log.database.write(lambda connection: store.set_watermark(connection, "document", 7, clock))
    assert await log.database.read(lambda connection: store.watermark(connection, "document")) == 7
    assert await log.database.read(lambda connection: store.watermark(connection, "index")) == 0


async def test_the_newest_position_is_that_of_the_last_event(log: EventLog) -> None:
    newest = (await log.tail(Query(limit=1))).events[0]
    assert await log.newest_position() == newest.position


def test_a_project_is_named_after_its_path() -> None:
    assert project_id_for(None) == project_id_for("") == "proj_global"
    assert project_id_for("/a") != project_id_for("/b")
    assert len(project_id_for("/a")) == len("proj_abcd1234")
