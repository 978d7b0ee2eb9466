"""What a peer sends in the name of another device is that device's word only with its signature."""

from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import text

from sync.db.engine import Transaction
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.event_types import DEVICE_ADMITTED, DEVICE_REGISTERED, ENTRY_ADDED, PAYLOAD_FORGOTTEN
from sync.log.model import (
    CLOUD,
    ERASURE_STATE_FIELD,
    SIGNATURE_FIELD,
    Event,
    RemoteErasureState,
    remote_erasure_state,
)
from tests.integration.lan.harness import devices, guard_of, meet
from tests.support import Device, event, new_server


async def authors_of(device: Device) -> Mapping[str, bool]:
    """Whether each entry's author is proven, by its text."""
    return {str(one.payload["text"]): one.is_proven for one in await device.events() if one.type == ENTRY_ADDED}


def entry(number: int, words: str, device_id: str, replica: str) -> Event:
    return event(number, replica=replica, device=device_id, type=ENTRY_ADDED, payload={"text": words})


async def insert(device: Device, *events: Event) -> None:
    """Store events as a hostile device would, past everything that checks them."""

    def store(connection: Transaction) -> None:
        log_store.insert_events(connection, events)

    await device.log.database.write(store)


def enqueue_all(connection: Transaction) -> None:
    positions = connection.execute(text("select position from events where type = 'entry_added'")).scalars()
    outbox_store.enqueue(connection, CLOUD, list(positions))


async def test_a_peer_speaks_for_itself_and_not_for_this_device_or_a_third_one(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        names = ("device-b", "device-a", "device-c")
        await insert(b, *(entry(1, name, name, f"rep_{name}") for name in names))
        await meet(a, b)
        assert await authors_of(a) == {"device-b": True, "device-c": False}
        waiting = await a.rows(
            "select count(*) from deliveries join events using (position) where  type = 'entry_added'"
        )
        assert waiting == [(0,)], "nothing goes to the cloud in this device's name that it did not say"


async def test_a_signed_event_is_its_authors_over_a_third_device(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        key = await guard_of(a)._key.public_key()
        registered = event(1, replica="rep_r", device="device-a", type=DEVICE_REGISTERED, payload={"public_key": key})
        await insert(a, entry(1, "甲说", "device-a", "rep_x"))
        await insert(c, registered)
        await meet(a, b)
        await meet(b, c)
        assert await authors_of(c) == {"甲说": True}
        (stored,) = [one for one in await c.events() if one.type == ENTRY_ADDED]
        assert isinstance(stored.extra[SIGNATURE_FIELD], str)
        assert stored.replica_id == "rep_x"


async def test_a_text_that_was_changed_on_the_way_is_not_its_authors_until_the_server_says_so(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        await a.log_in()
        await insert(a, entry(1, "不吃花生", "device-a", "rep_x"))
        await meet(a, b)
        changed = text("update events set payload = :payload where type = 'entry_added'")

        def change(connection: Transaction) -> None:
            connection.execute(changed, {"payload": '{"text":"爱吃花生"}'})

        await b.log.database.write(change)
        await meet(b, c)
        assert await authors_of(c) == {"爱吃花生": False}
        await a.log.database.write(enqueue_all)
        await a.replicator.sync_now()
        await c.log_in()
        await c.replicator.sync_now()
        assert await authors_of(c) == {"不吃花生": True}


async def test_a_request_that_comes_before_the_decision_that_it_takes_waits_on_a_third_device(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        decisions = [
            event(1, device="device-a", type=DEVICE_REGISTERED, payload={"public_key": "ed25519:a"}),
            event(2, device="device-a", type=DEVICE_ADMITTED, payload={"device_ids": ["device-b"]}),
        ]
        named = {"event_ids": [one.event_id for one in decisions]}
        extra = {ERASURE_STATE_FIELD: "waits"}
        request = event(3, replica="rep_t", device="thief", type=PAYLOAD_FORGOTTEN, payload=named, extra=extra)
        await insert(a, request, *decisions)
        await meet(a, b)
        held = {one.event_id: one for one in await b.events()}
        assert all(held[one.event_id].payload for one in decisions)
        assert remote_erasure_state(held[request.event_id]) is RemoteErasureState.WAITS
