"""What a page of the server's events does to the database."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import event as sqlalchemy_event

from sync.cloud import replication_store
from sync.cloud.port import SyncAnswer
from sync.cloud.sync_decisions import check_page
from sync.db.engine import Database
from sync.errors import DeviceForked
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.integrity.store import find_problems
from sync.log.model import CLOUD, Event, Query, RemoteCursor
from tests.support import START, FixedClock, event

NOW = START.isoformat()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "memory.db")
    await opened.write(lambda connection: log_store.ensure_replica_id(connection, FixedClock()))
    yield opened
    await opened.close()


def numbered(seq: int, *, under: int | None = None, **changes: Any) -> Event:
    """An event with the server's number `seq`. `under`: its replica's number, if that differs."""
    given = {"event_id": f"evt_{seq}", "server_seq": seq, "server_ts": NOW, **changes}
    return event(seq if under is None else under, **given)


async def take_in(database: Database, *events: Event, after: int = 0) -> int:
    answer = SyncAnswer("epoch", after + len(events), 0, False, events, (), NOW)
    verdict = check_page(RemoteCursor("epoch", after), answer)
    return await database.write(
        lambda connection: replication_store.apply_answer(connection, answer, verdict, FixedClock())
    )


async def stored(database: Database) -> list[Event]:
    return list((await database.read(lambda connection: log_store.read_page(connection, Query()))).events)


async def test_a_page_costs_the_same_statements_whatever_its_size(database: Database) -> None:
    statements: list[str] = []
    sqlalchemy_event.listen(database._write_engine, "before_cursor_execute", lambda *said: statements.append(said[2]))
    await take_in(database, numbered(1))  # the first page
    statements.clear()
    await take_in(database, numbered(2), after=1)
    for_one = len(statements)
    statements.clear()
    assert await take_in(database, *map(numbered, range(3, 203)), after=2) == 200
    assert len(statements) == for_one


async def test_what_we_hold_is_numbered_and_only_the_rest_is_new(database: Database) -> None:
    await database.write(lambda connection: log_store.insert_event(connection, event(1, event_id="evt_1")))
    assert await take_in(database, numbered(1), numbered(2)) == 1
    assert [(item.event_id, item.server_seq, item.server_ts) for item in await stored(database)] == [
        ("evt_1", 1, NOW),
        ("evt_2", 2, NOW),
    ]


async def test_one_event_under_two_numbers_is_there_once(database: Database) -> None:
    assert await take_in(database, numbered(1), numbered(2, event_id="evt_1", under=1)) == 1
    assert [item.server_seq for item in await stored(database)] == [2]


async def test_a_number_of_ours_under_another_id_is_a_fork_and_nothing_is_taken_in(database: Database) -> None:
    own = await database.read(log_store.existing_replica_id)
    await database.write(
        lambda connection: log_store.insert_event(connection, event(1, event_id="evt_ours", replica=own))
    )
    with pytest.raises(DeviceForked):
        await take_in(database, numbered(1, replica="rep_b"), numbered(2, under=1, replica=own))
    assert [item.event_id for item in await stored(database)] == ["evt_ours"]


async def test_an_event_under_another_event_s_number_waits_for_its_own(database: Database) -> None:
    """An event of a former replica, which sent it under another number before it was restored."""
    await database.write(lambda connection: log_store.insert_event(connection, event(1, event_id="evt_ours")))
    before = await database.read(log_store.order_version)
    assert await take_in(database, numbered(1)) == 1
    same = {"hlc": event(1).hlc, "payload": event(1).payload}
    assert await take_in(database, numbered(2, event_id="evt_ours", under=7, replica="rep_b", **same), after=1) == 0
    assert {item.event_id: item.replica_key for item in await stored(database)} == {
        "evt_1": ("rep_a", 1),
        "evt_ours": ("rep_b", 7),
    }
    assert await database.read(log_store.order_version) == before, "no place in the order depends on numbers"


async def test_two_events_may_have_changed_numbers(database: Database) -> None:
    for number, event_id in ((1, "evt_2"), (2, "evt_1")):
        same = event(3 - number)
        held = event(number, event_id=event_id, hlc=same.hlc, payload=same.payload)
        await database.write(partial(log_store.insert_event, event=held))
    assert await take_in(database, numbered(1), numbered(2)) == 0
    assert {item.event_id: item.replica_seq for item in await stored(database)} == {"evt_1": 1, "evt_2": 2}


async def test_two_events_of_one_answer_under_one_number_are_a_fork(database: Database) -> None:
    with pytest.raises(DeviceForked):
        await take_in(database, numbered(1), numbered(2, under=1))


async def test_a_number_is_its_own_replica_s(database: Database) -> None:
    assert await take_in(database, numbered(1, under=1), numbered(2, under=2, replica="rep_b")) == 2
    assert await take_in(database, numbered(3, under=2), numbered(4, under=1, replica="rep_b"), after=2) == 2


async def test_a_new_replica_s_events_may_have_another_place_in_the_order(database: Database) -> None:
    """The replica id orders events with equal HLC, and it has changed."""
    renew = partial(replication_store.fork_replica, clock=FixedClock(seed=2))
    before = await database.read(log_store.order_version)
    await database.write(renew)
    assert await database.read(log_store.order_version) == before, "nothing was sent under the old id, nothing waited"
    own = await database.read(log_store.existing_replica_id)
    await database.write(
        lambda connection: log_store.insert_event(connection, event(1, event_id="evt_ours", replica=own))
    )
    await database.write(lambda connection: outbox_store.enqueue(connection, CLOUD, [1]))
    await database.write(renew)
    assert await database.read(log_store.order_version) != before


async def test_a_new_replica_leaves_what_a_copy_of_it_recorded_as_it_is(database: Database) -> None:
    """The copy has the same replica id, and its event came by the network: its author sends it under that number."""
    own = await database.read(log_store.existing_replica_id)
    for number, event_id in ((1, "evt_ours"), (2, "evt_of_the_copy")):
        held = event(number, event_id=event_id, replica=own)
        await database.write(partial(log_store.insert_event, event=held))
    await database.write(lambda connection: outbox_store.enqueue(connection, CLOUD, [1]))
    new = await database.write(partial(replication_store.fork_replica, clock=FixedClock(seed=2)))
    numbers = {item.event_id: item.replica_key for item in await stored(database)}
    assert numbers == {"evt_ours": (new, 1), "evt_of_the_copy": (own, 2)}


@pytest.mark.parametrize(
    "differs",
    [{"device": "device-b"}, {"hlc": "0193a5b2c3d4-ffff"}, {"type": "other"}, {"payload": {"text": "another"}}],
)
async def test_an_own_event_stays_and_is_quarantined_if_the_server_has_another_one(
    database: Database, differs: dict[str, Any]
) -> None:
    own = event(1, event_id="fact-1")
    await database.write(partial(log_store.insert_event, event=own))
    await database.write(lambda connection: outbox_store.enqueue(connection, CLOUD, [1]))
    there = numbered(1, event_id="fact-1", **{"replica": "rep_b"} | differs)
    assert await take_in(database, there, numbered(2, replica="rep_b")) == 1
    kept = (await stored(database))[0]
    assert kept == replace(own, position=1)
    (refused,) = await database.read(outbox_store.list_refused)
    assert (refused.event_id, refused.code) == ("fact-1", "22023")
    assert "event_id_taken" in refused.message


async def test_the_server_s_envelope_replaces_that_of_another_device_s_event(database: Database) -> None:
    """As a device of before stored it, which minted the event again when it imported an archive."""
    held = event(1, event_id="evt_1", device="device-b", hlc="0193a5b2c3d4-ffff", ts="2026-02-03T10:00:00.000Z")
    await database.write(partial(log_store.insert_event, event=held))
    order = await database.read(log_store.order_version)
    there = numbered(1, origin="model-written", local_date="2026-02-01")
    assert await take_in(database, there) == 0
    assert await stored(database) == [replace(there, position=1)]
    assert await database.read(log_store.order_version) != order


async def test_a_payload_comes_from_the_server_only_if_damage_took_it(database: Database) -> None:
    lost, kept = event(1, event_id="evt_1", payload={}), event(2, event_id="evt_2")
    expired = event(3, event_id="evt_3", payload={})
    expiry = event(4, type="payload_expired", payload={"event_ids": ["evt_3"]}, reach="local")
    for held in (lost, kept, expired, expiry):
        await database.write(partial(log_store.insert_event, event=held))
    await take_in(database, *(numbered(seq) for seq in (1, 2, 3)))
    assert [item.payload for item in await stored(database)][:3] == [numbered(1).payload, kept.payload, {}]


async def test_of_two_imports_of_one_file_the_first_one_at_the_server_stays(database: Database) -> None:
    own = await database.read(log_store.existing_replica_id)
    for number in (1, 2):
        ours = event(number, event_id=f"evt_{number}", replica=own, origin="imported")
        await database.write(partial(log_store.insert_event, event=ours))
    await database.write(lambda connection: outbox_store.enqueue(connection, CLOUD, [1, 2]))
    there = numbered(1, device="device-b", replica="rep_b", hlc="0193a5b2c3d0-0000", origin="imported")
    await take_in(database, there)
    assert (await stored(database))[0] == replace(there, position=1)
    assert await database.read(outbox_store.pending_positions, CLOUD, 10) == [2]
    assert await database.read(lambda connection: list(find_problems(connection))) == []


async def test_a_new_replica_keeps_the_hlc_of_its_events_even_one_that_damage_moved(database: Database) -> None:
    own = await database.read(log_store.existing_replica_id)
    hlcs = ("0193a5b2c3d4-0001", "7193a5b2c3d4-0002", "0000000003d4-0003", "0193a5b2c3d4-0004")
    for number, hlc in enumerate(hlcs, start=1):
        held = event(number, replica=own, hlc=hlc)
        await database.write(partial(log_store.insert_event, event=held))
    await database.write(lambda connection: outbox_store.enqueue(connection, CLOUD, [1, 2, 3, 4]))
    await database.write(partial(replication_store.fork_replica, clock=FixedClock(seed=2)))
    assert tuple(item.hlc for item in await stored(database)) == hlcs
    assert await database.read(lambda connection: list(find_problems(connection))) == []
