"""Appending: event and delivery together, numbered without gaps, never twice, ordered whatever the clock does."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sync.clock import parse_hlc
from sync.db.engine import Database, Transaction
from sync.errors import InvalidInput, StorageFull
from sync.log import store
from sync.log.envelope import to_wire
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import GLOBAL_PROJECT, Event, EventScope, Origin, Query
from tests.support import REDACTOR, FixedClock, draft, event

YEAR = 365 * 86_400
SECRETS = {
    "phone": "13812345678",
    "key": "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z",
    "password": "Tr0ub4dor&3xyz",
}


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
async def log(tmp_path: Path, clock: FixedClock) -> AsyncIterator[EventLog]:
    database = await Database.open(tmp_path / "memory.db")
    await database.write(lambda connection: store.ensure_replica_id(connection, clock))
    yield EventLog(database, clock, device_id="device-a", session_id="sess_20260202_001")
    await database.close()


async def all_events(log: EventLog) -> list[Event]:
    return list((await log.read(Query())).events)


def raw(path: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


async def test_an_event_and_its_delivery_are_stored_when_append_returns(log: EventLog, tmp_path: Path) -> None:
    (recorded,) = await log.append([draft("记住：喜欢简洁")])
    path = tmp_path / "memory.db"
    ((position, payload),) = raw(path, "select position, payload from events")
    assert json.loads(payload) == {"text": "记住：喜欢简洁"}
    assert raw(path, "select destination, position, state from deliveries") == [("cloud", position, "pending")]
    assert recorded.event.position == position
    assert not recorded.duplicate


async def test_a_failure_in_the_transaction_rolls_back_event_and_delivery(log: EventLog, tmp_path: Path) -> None:
    def failing(connection: Transaction) -> None:
        log.append_in(connection, [draft("a"), draft("b")])
        raise InvalidInput("the room changed its mind")

    with pytest.raises(InvalidInput):
        await log.database.write(failing)
    assert raw(tmp_path / "memory.db", "select count(*) from events") == [(0,)]
    assert raw(tmp_path / "memory.db", "select count(*) from deliveries") == [(0,)]
    (after,) = await log.append([draft("c")])
    assert after.event.replica_seq == 1, "no number was burnt"


async def test_a_device_local_event_has_no_delivery(log: EventLog, tmp_path: Path) -> None:
    (kept,) = await log.append([draft("课", kind="lesson_learned")])
    assert kept.event.reach is EventScope.LOCAL
    assert raw(tmp_path / "memory.db", "select * from deliveries") == []


async def test_an_event_holds_its_draft_and_the_fields_of_the_replica(log: EventLog) -> None:
    (plain,) = await log.append([draft("a")])
    made = plain.event
    assert made.event_id.startswith("evt_")
    assert (made.project_id, made.project_path) == (GLOBAL_PROJECT, None)
    assert (made.session_id, made.device_id) == ("sess_20260202_001", "device-a")
    assert (made.ts, made.local_date, made.utc_offset) == ("2026-02-02T10:00:00.000Z", "2026-02-02", 480)
    assert (made.origin, made.reach, made.server_seq) == ("user-typed", EventScope.CLOUD, None)
    given = {"project_id": "proj_1", "project_path": "/家", "session_id": "s", "event_id": "e", "origin": Origin.PEER}
    (told,) = await log.append([draft("b", ts="2020-01-01T00:00:00+08:00", **given)])
    assert {name: getattr(told.event, name) for name in given} == given
    assert told.event.ts == "2020-01-01T00:00:00+08:00", "the author's own spelling"


async def test_the_local_date_is_that_of_the_users_time_zone(log: EventLog, clock: FixedClock) -> None:
    clock.advance(6.5 * 3600)
    (late,) = await log.append([draft("过了半夜")])
    assert (late.event.local_date, late.event.ts[:10]) == ("2026-02-03", "2026-02-02")


async def test_a_known_id_returns_the_event_recorded_before(log: EventLog) -> None:
    (first,) = await log.append([draft("a", event_id="mine")])
    (again,) = await log.append([draft("a", event_id="mine", ts="2020-01-01T00:00:00Z")])
    assert again.duplicate
    assert again.event == first.event
    twice = await log.append([draft("b", event_id="two"), draft("b", event_id="two"), draft("c")])
    assert [item.duplicate for item in twice] == [False, True, False]
    assert [event.replica_seq for event in await all_events(log)] == [1, 2, 3]


@pytest.mark.parametrize("other", [draft("another", event_id="mine"), draft("a", kind="other", event_id="mine")])
async def test_a_known_id_with_another_content_refuses_the_whole_batch(log: EventLog, other: Any) -> None:
    await log.append([draft("a", event_id="mine")])
    with pytest.raises(InvalidInput) as caught:
        await log.append([draft("new"), other])
    assert caught.value.field == "event_id"
    assert [event.event_id for event in await all_events(log)] == ["mine"]


async def test_concurrent_appends_of_one_id_record_one_event(log: EventLog) -> None:
    outcomes = await asyncio.gather(*(log.append([draft("a", event_id="mine")]) for _ in range(20)))
    assert sorted(item.duplicate for (item,) in outcomes) == [False] + [True] * 19
    assert len(await all_events(log)) == 1


async def test_concurrent_appends_are_numbered_without_gaps(log: EventLog) -> None:
    await asyncio.gather(*(log.append([draft(f"{n}")] * (1 + n % 3)) for n in range(200)))
    events = await all_events(log)
    assert [event.replica_seq for event in events] == list(range(1, len(events) + 1))
    hlcs = [event.hlc for event in events]
    assert hlcs == sorted(set(hlcs))


async def test_the_order_does_not_follow_a_clock_that_jumps(log: EventLog, clock: FixedClock) -> None:
    for jump in (0, -3 * YEAR, 10 * YEAR, -10 * YEAR, -60 * YEAR, 1):
        clock.advance(jump)
        await log.append([draft("a"), draft("b")])
    hlcs = [event.hlc for event in await all_events(log)]
    assert len(hlcs) == 12
    assert hlcs == sorted(set(hlcs))


async def test_the_next_event_comes_after_observed_remote_events(log: EventLog, clock: FixedClock) -> None:
    (before,) = await log.append([draft("a")])
    wall = parse_hlc(before.event.hlc)[0]
    seen, mad = f"{wall + 3_600_000:012x}-0007", "ffffffffffff-ffff"
    theirs = [event(1, hlc=seen), event(2, hlc=mad)]
    await log.database.write(lambda connection: store.observe_remote_events(connection, theirs, clock))
    (after,) = await log.append([draft("b")])
    assert seen < after.event.hlc < mad
    assert after.event.replica_seq == 2


async def test_a_commit_wakes_followers_and_a_failure_does_not(log: EventLog) -> None:
    seen = log.changed.count
    await log.append([draft("a", event_id="x")])
    assert log.changed.count == seen + 1
    with pytest.raises(InvalidInput):
        await log.append([draft("b", event_id="x")])
    assert log.changed.count == seen + 1


async def test_the_log_continues_after_a_cancelled_append(log: EventLog) -> None:
    tasks = [asyncio.create_task(log.append([draft(f"{n}")])) for n in range(50)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    answered = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    (last,) = await log.append([draft("last")])
    events = await all_events(log)
    assert {item.event.event_id for (item,) in answered} <= {event.event_id for event in events}
    assert [event.replica_seq for event in events] == list(range(1, last.event.replica_seq + 1))


async def test_a_full_disk_acknowledges_nothing_and_leaves_no_gap(log: EventLog) -> None:
    await log.append([draft("before")])

    def set_pages(extra: int) -> Any:
        def work(connection: Transaction) -> None:
            pages = connection.exec_driver_sql("pragma page_count").scalar_one()
            connection.exec_driver_sql(f"pragma max_page_count = {pages + extra}")

        return work

    await log.database.write(set_pages(0))
    with pytest.raises(StorageFull):
        await log.append([draft("很长 " * 5000)])
    await log.database.write(set_pages(1000))
    (after,) = await log.append([draft("after")])
    assert after.event.replica_seq == 2
    assert [event.payload["text"] for event in await all_events(log)] == ["before", "after"]
    assert (await log.outbox()).pending == 2


async def test_the_replica_id_is_minted_once(log: EventLog, clock: FixedClock) -> None:
    opened = [await log.database.write(lambda connection: store.ensure_replica_id(connection, clock)) for _ in range(3)]
    assert len(set(opened)) == 1
    assert opened[0].startswith("rep_")


async def test_planted_secrets_reach_neither_database_nor_wal(log: EventLog, tmp_path: Path) -> None:
    intake = DraftBuilder(REDACTOR, store_messages=True)
    prose = f"我的手机号是{SECRETS['phone']}，密钥是{SECRETS['key']}，密码：{SECRETS['password']}"
    await log.append(
        [
            intake.build({"type": "message", "payload": {"role": "user", "content": prose}}),
            intake.build(
                {"type": "tool_call", "payload": {"details": {"command": f"curl -H 'key: {SECRETS['key']}'"}}}
            ),
            intake.build({"type": "note_taken", "payload": {prose: [prose, {"password": SECRETS["password"]}]}}),
            intake.build({"type": "note_taken", "payload": {}, "unknown": {"deep": [prose]}}),
        ]
    )
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    assert {"memory.db", "memory.db-wal"} <= {path.name for path in files}
    stored = b"".join(path.read_bytes() for path in files)
    assert b"note_taken" in stored, "the search looks where the events are"
    for name, secret in SECRETS.items():
        assert secret.encode() not in stored, name


async def test_extra_fields_are_on_the_wire_beside_the_known_ones(log: EventLog) -> None:
    extra = {"future_field": {"a": [1, 2.5, None, True, "文"]}, "n": 2**62, "type_hint": ""}
    (recorded,) = await log.append([draft("a", extra=REDACTOR.clean_payload(extra))])
    stored = (await all_events(log))[0]
    assert dict(stored.extra) == extra
    wire = to_wire(stored)
    assert {name: wire[name] for name in extra} == extra
    assert wire["type"] == "note_taken"
    assert recorded.event.extra == extra
