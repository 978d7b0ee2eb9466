"""Devices that meet on a network: real logs, every event once everywhere, erasures first, nothing local."""

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from sync.cloud.replication_store import fork_replica
from sync.db.engine import Transaction
from sync.errors import DeviceForked
from sync.lan import store
from sync.lan.protocol import frames
from sync.log import store as log_store
from sync.log.envelope import from_wire, to_wire
from sync.log.event_types import LESSON_LEARNED, PAYLOAD_EXPIRED, PAYLOAD_FORGOTTEN
from sync.log.integrity.store import find_problems
from sync.log.model import EventDraft
from tests.integration.lan.harness import Link, devices, meet
from tests.support import REDACTOR, Device, draft, event, new_server


def erasure(*event_ids: str) -> EventDraft:
    return EventDraft(PAYLOAD_FORGOTTEN, REDACTOR.clean_payload_with_ids("event_ids", event_ids, {}))


async def record(device: Device, *drafts: EventDraft) -> list[str]:
    return [item.event.event_id for item in await device.log.append(drafts)]


async def test_two_devices_hold_the_same_events_after_they_met(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        await a.record_notes("甲一", "甲二")
        await b.record_notes("乙一")
        link = await meet(a, b)
        assert await a.event_ids() == await b.event_ids()
        assert len(await a.event_ids()) == 3
        assert all(side.is_level for side in link.sides)
        assert {(event.device_id, event.payload["text"]) for event in await b.events()} == {
            ("device-a", "甲一"),
            ("device-a", "甲二"),
            ("device-b", "乙一"),
        }


async def test_meeting_again_sends_no_event(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        await a.record_notes("甲")
        await meet(a, b)
        link = await meet(a, b)
        assert not any(isinstance(message, frames.Events | frames.Want) for _, message in link.sent)


async def test_an_event_recorded_while_connected_travels(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        link = await meet(a, b)
        await a.record_notes("后来")
        await link.note_changes()
        await link.run_until_quiet()
        assert [event.payload for event in await b.events()] == [{"text": "后来"}]


async def test_holdings_that_are_read_on_are_those_of_the_whole_log(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        known = await a.database.read(store.read_holdings)

        async def read_on() -> None:
            nonlocal known
            whole = await a.database.read(store.read_holdings)
            known = await a.database.read(store.read_holdings, known)
            assert known == whole

        await read_on()
        old, *_ = await record(a, draft("一"), draft("留", kind=LESSON_LEARNED), draft("二"))
        await read_on()
        await b.record_notes("乙一", "乙二")
        await meet(b, a)
        await read_on()
        assert known.position == 5
        await record(a, draft("三"))
        await a.log.append([EventDraft(PAYLOAD_EXPIRED, REDACTOR.clean_payload_with_ids("event_ids", [old], {}))])
        await a.database.write(log_store.erase_payloads, [old])
        await read_on()
        await record(a, erasure("evt_of_nobody"))
        await read_on()
        await a.database.write(log_store.renumber_as_new_replica, [1, 3], a.clock)
        await record(a, draft("四"))
        await read_on()


async def test_holes_in_the_numbers_are_neither_offered_nor_in_the_way(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        kinds = (LESSON_LEARNED if number % 2 else "note_taken" for number in range(2_400))
        await record(a, *(draft("第几条", kind=kind) for kind in kinds))
        await meet(a, b)
        assert await b.rows("select replica_seq from events") == [(number,) for number in range(1, 2_400, 2)]


async def test_events_travel_over_a_third_device(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        await a.record_notes("甲")
        await meet(a, b)
        await meet(b, c)
        assert [(event.device_id, event.payload) for event in await c.events()] == [("device-a", {"text": "甲"})]


async def test_more_events_than_one_request_asks_for_all_arrive(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        await a.log.append([draft(f"第 {number} 条") for number in range(2_500)])
        link = await meet(a, b)
        assert len([message for by, message in link.sent if by == 1 and isinstance(message, frames.Want)]) == 3
        assert (await b.rows("select count(*) from events"))[0] == (2_500,)


async def test_nothing_whose_reach_is_this_device_is_offered_sent_or_stored(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        await record(a, draft("走"), draft("留", kind=LESSON_LEARNED), draft("走"))
        link = await meet(a, b)
        assert [event.payload["text"] for event in await b.events()] == ["走", "走"]
        offered = next(m for by, m in link.sent if by == 0 and isinstance(m, frames.Have))
        assert list(offered.events.values()) == [[(1, 1), (3, 3)]]
        local = from_wire(to_wire(event(1, replica="rep_x", type=LESSON_LEARNED)))
        new = await b.database.write(store.store_events, [local], b.clock, own_device_ids=["device-b"])
        assert new == 0


async def test_an_erasure_request_is_sent_before_everything_else_and_erased_text_never(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        secret, _ = await a.record_notes("擦掉我", "别的")
        await record(a, erasure(secret))
        link = await meet(a, b)
        sent = link.records_of(0)
        assert [record["type"] for record in sent] == [PAYLOAD_FORGOTTEN, "note_taken"]
        assert "擦掉我" not in str(sent)


async def test_text_that_the_peer_has_erased_is_not_sent_to_it(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        (secret,) = await a.record_notes("擦掉我")
        await meet(a, b)
        await record(b, erasure(secret))
        await meet(b, c)
        link = await meet(a, c)  # a has the text still, c has the request only
        assert "擦掉我" not in str(link.records_of(0))
        assert secret in {name for item in await a.events() for name in item.payload.get("event_ids", [])}


async def test_a_payload_that_was_erased_here_before_its_event_came_stays_away(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a") as (a,):
        late = event(1, replica="rep_b", device="device-b", payload={"text": "擦掉我"})
        await record(a, erasure(late.event_id))
        await a.database.write(store.store_events, [late], a.clock, own_device_ids=["device-a"])
        assert [dict(item.payload) for item in await a.events() if item.event_id == late.event_id] == [{}]


async def test_text_that_a_peer_has_erased_does_not_come_from_a_cloud_that_has_not_heard_of_it(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        for device in (a, b):
            await device.log_in()
        (secret,) = await a.record_notes("擦掉我")
        await a.replicator.sync_now()
        await record(a, erasure(secret))
        await meet(a, b)
        await b.replicator.sync_now()
        assert [dict(item.payload) for item in await b.events() if item.event_id == secret] == [{}]


async def test_an_event_whose_payload_expired_here_is_left_to_the_devices_that_still_have_it(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        (old,) = await a.record_notes("很久以前")
        await meet(a, b)
        await a.log.append([EventDraft(PAYLOAD_EXPIRED, REDACTOR.clean_payload_with_ids("event_ids", [old], {}))])
        await a.database.write(log_store.erase_payloads, [old])
        await meet(a, c)
        assert await c.event_ids() == set()
        await meet(b, c)
        assert [item.payload for item in await c.events()] == [{"text": "很久以前"}]


async def test_an_erasure_request_carries_the_signature_of_its_author(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        (secret,) = await a.record_notes("擦掉我")
        await record(a, erasure(secret))
        await meet(a, b)
        link = await meet(b, c)
        (request,) = [item for item in link.records_of(0) if item["type"] == PAYLOAD_FORGOTTEN]
        assert request["signature"]["value"]  # type: ignore[index]
        (stored,) = [item for item in await c.events() if item.type == PAYLOAD_FORGOTTEN]
        assert stored.extra["signature"] == request["signature"]


async def test_two_databases_that_continue_one_history_are_noticed_and_nothing_is_stored(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a") as (a,):
        first = event(1, replica="rep_b")
        await a.database.write(store.store_events, [first], a.clock, own_device_ids=["device-a"])
        copy = [event(2, replica="rep_b"), event(1, replica="rep_b")]
        with pytest.raises(DeviceForked):
            await a.database.write(store.store_events, copy, a.clock, own_device_ids=["device-a"])
        assert await a.event_ids() == {first.event_id}


async def test_events_under_this_replica_s_id_keep_their_numbers_only_if_this_device_lost_them(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a") as (a,):
        own = await a.database.read(log_store.existing_replica_id)
        copied = event(7, replica=own, device="device-b")
        await a.database.write(store.store_events, [copied], a.clock, own_device_ids=["device-a"])
        assert [(one.replica_id, one.replica_seq) for one in await a.events()] == [(copied.event_id, 1)]
        restored = [event(1, replica="rep_b"), event(7, replica=own, device="device-a")]
        assert await a.database.write(store.store_events, restored, a.clock, own_device_ids=["device-a"]) == 2
        assert await problems(a) == []
        await a.record_notes("乙")
        await a.database.write(_renumber, 8, 10)
        assert await problems(a) == ["the replica's numbers have a hole before this event"]


def _renumber(connection: Transaction, number: int, new: int) -> None:
    connection.exec_driver_sql(f"update events set replica_seq = {new} where replica_seq = {number}")


async def problems(device: Device) -> list[str]:
    return [one.what for one in await device.database.read(lambda connection: list(find_problems(connection)))]


async def test_a_peer_cannot_give_events_numbers_of_the_server(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a") as (a,):
        sent = replace(event(1, replica="rep_b"), server_seq=99, server_ts="2026-02-02T10:00:00.000Z", position=7)
        await a.database.write(store.store_events, [sent], a.clock, own_device_ids=["device-a"])
        (stored,) = await a.events()
        assert (stored.server_seq, stored.server_ts) == (None, None)


async def test_own_events_that_a_restored_database_lost_come_back_and_are_sent_to_the_cloud(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a") as (a,):
        lost = event(1, replica=a.replica_id, device="device-a")
        await a.database.write(store.store_events, [lost], a.clock, own_device_ids=["device-a"])
        assert (await a.log.outbox()).pending == 1
        await a.record_notes("之后")
        assert [item.replica_seq for item in await a.events()] == [1, 2]


async def test_events_of_other_devices_do_not_wait_for_the_cloud_here(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        await a.record_notes("甲")
        await meet(a, b)
        assert (await b.log.outbox()).pending == 0


async def test_events_cross_with_the_cloud_away_and_are_once_everywhere_when_it_is_back(tmp_path: Path) -> None:
    server = new_server()
    async with devices(tmp_path, server, "a", "b", "c") as (a, b, c):
        for device in (a, b, c):
            await device.log_in()
        await a.record_notes("甲")
        await b.record_notes("乙")
        await meet(a, b)
        assert len(await a.event_ids()) == 2
        for device in (b, a, c, b, a):
            await device.replicator.sync_now()
        for device in (a, b, c):
            events = await device.events()
            assert sorted(item.payload["text"] for item in events) == ["乙", "甲"]
            assert sorted(item.server_seq or 0 for item in events) == [1, 2]
            assert (await device.log.outbox()).pending == 0


async def test_events_whose_author_stays_away_from_the_cloud_are_once_on_all_that_meet_and_once_if_it_returns(
    tmp_path: Path,
) -> None:
    async with devices(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        for device in (a, b, c):
            await device.log_in()
        (kept,) = await a.record_notes("甲")
        await meet(a, b)
        for device in (b, c, b, c):
            await device.replicator.sync_now()
        assert (await b.log.outbox()).pending == 0, "b may not send it, so nothing waits there"
        assert kept not in await c.event_ids(), "the server takes it from its author only"
        await meet(b, c)
        await meet(c, b)
        for device in (a, b, c):
            assert [(item.event_id, item.server_seq) for item in await device.events()] == [(kept, None)]
        for device in (a, b, c):
            await device.replicator.sync_now()
            assert [(item.event_id, item.server_seq) for item in await device.events()] == [(kept, 1)]


async def test_the_time_that_the_server_gives_a_known_event_changes_the_log(tmp_path: Path) -> None:
    """The author's clock is a month ahead, so the event had another place in the document of the device that has it."""
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        for device in (a, b):
            await device.log_in()
        await a.replicator.sync_now()
        b.clock.advance(timedelta(days=30).total_seconds())
        await b.record_notes("乙")
        await meet(a, b)
        await b.replicator.sync_now()
        seen = a.log.changed.count
        assert (await a.replicator.sync_now()).pulled == 0
        assert a.log.changed.count == seen + 1
        await a.replicator.sync_now()
        assert a.log.changed.count == seen + 1


async def test_a_link_that_breaks_in_the_middle_loses_and_doubles_nothing(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        await a.log.append([draft(f"第 {number} 条") for number in range(1_200)])
        broken = Link(a, b)
        await broken.start()
        for _ in range(4):
            await broken.deliver_one(1)
            await broken.deliver_one(0)
        assert len(await b.event_ids()) in range(1, 1_200)
        await meet(a, b)
        assert (await b.rows("select count(*), count(distinct event_id) from events"))[0] == (1_200, 1_200)


async def test_a_new_replica_sends_its_erasure_requests_before_it_gets_events(tmp_path: Path) -> None:
    """Its numbers changed after they were requested: the peer waits for the new list, and not for an empty answer."""
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        (secret,) = await a.record_notes("秘密")
        await meet(a, b)
        await record(a, erasure(secret))
        await b.record_notes("乙")
        link = Link(a, b)
        await link.start()
        await link.deliver_one(1)
        await a.database.write(fork_replica, a.clock)
        await link.run_until_quiet()
        sent = [(side, message.events) for side, message in link.sent if isinstance(message, frames.Events)]
        assert [(side, item["type"]) for side, items in sent for item in items] == [
            (0, PAYLOAD_FORGOTTEN),
            (1, "note_taken"),
        ]
