"""Two devices of one account agree on which event is which, whatever ids programs give."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from sync.errors import InvalidInput
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.log import resolve_ids
from sync.log.model import CLOUD, Event
from tests.integration.lan.harness import devices
from tests.support import Device, event, new_server


async def note(device: Device, words: str, event_id: str = "fact-1") -> Event:
    """Append an event under a program's own id."""
    value = {"event_id": event_id, "type": "note_taken", "payload": {"text": words}}
    (recorded,) = await device.log.append([replace(device.intake, store_messages=True).build_appended(value)])
    assert recorded.given_id == event_id
    return recorded.event


async def at_rest(device: Device) -> set[tuple[str, str, str, str, str]]:
    return {(e.event_id, e.device_id, e.hlc, e.type, str(e.payload)) for e in await device.events()}


async def test_one_id_of_a_program_on_two_devices_is_two_events_on_both(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        for device in (a, b):
            await device.log_in()
            await note(device, f"said on {device.log.device_id}")
        for device in (a, b, a):
            await device.replicator.sync_now()
        assert await at_rest(a) == await at_rest(b)
        assert {e.payload["text"] for e in await b.events()} == {"said on device-a", "said on device-b"}
        assert [e.extra["client_id"] for e in await b.events()] == ["fact-1", "fact-1"]
        for device in (a, b):
            assert await device.log.quarantine.list_refused() == []


async def test_the_id_of_a_program_is_known_again_on_its_device_also_one_recorded_before(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a") as (a,):
        first = await note(a, "one")
        assert await note(a, "one") == first
        former = event(9, event_id="old-1", device="device-a", replica=a.replica_id, payload={"text": "two"})
        foreign = event(1, event_id="old-2", device="device-b", replica="rep_b", payload={"text": "three"})
        await a.database.write(log_store.insert_events, [former, foreign])
        assert (await note(a, "two", "old-1")).event_id == "old-1"
        assert (await note(a, "mine", "old-2")).event_id != "old-2"
        ids = await resolve_ids(a.log, ["fact-1", "old-1", "evt_none"])
        assert ids == {"fact-1": first.event_id, "old-1": "old-1"}
        with pytest.raises(InvalidInput, match="fact-1") as caught:  # else one of the two would be lost
            await note(a, "another")
        assert caught.value.field == "event_id"


async def test_a_word_under_an_id_that_another_device_used_before_is_named_and_blocks_nothing(tmp_path: Path) -> None:
    """Both devices recorded it with a program of before, whose ids had no device in them."""
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        for device, hlc in ((a, "0193a5b2c3d4-0001"), (b, "0193a5b2c3d4-0002")):
            await device.log_in()
            name, words = device.log.device_id, {"text": f"said on {device.log.device_id}"}
            old = event(1, event_id="n-1", device=name, replica=f"rep_{name}", hlc=hlc, payload=words)
            await device.database.write(log_store.insert_event, old)
            await device.database.write(outbox_store.enqueue, CLOUD, [1])
            await device.record_notes(f"later on {name}")
        for device in (a, b, a):
            await device.replicator.sync_now()
        kept = {e.event_id: e.payload["text"] for e in await b.events()}
        assert kept["n-1"] == "said on device-b"
        assert {"later on device-a", "later on device-b"} <= set(kept.values())
        (refused,) = await b.log.quarantine.list_refused()
        assert refused.event_id == "n-1"
        assert "event_id_taken" in refused.message
        assert await a.log.quarantine.list_refused() == []
        assert (await b.log.outbox()).quarantined == 1


async def test_an_event_that_a_device_of_before_minted_again_gets_its_author_and_time_back(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        for device in (a, b):
            await device.log_in()
        await a.record_notes("vim", "emacs")
        minted = [
            replace(e, device_id="device-c", replica_id="rep_c", hlc=f"0193a5b2cfff-000{e.position}", position=0)
            for e in await a.events()
        ]
        await b.database.write(log_store.insert_events, minted[:1])
        for device in (a, b):
            await device.replicator.sync_now()
        assert await at_rest(b) == await at_rest(a)
