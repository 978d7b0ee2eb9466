"""Erasure requests of other devices: small ones are applied, mass erasures need a key that was known for a day."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from sync.cloud.replication.erasure_guard import (
    ErasureImpact,
    count_entries,
    is_mass_erasure,
)
from sync.db.engine import Database, Transaction
from sync.document.surfaces import withheld_erasures
from sync.log import erased_store
from sync.log.devices.signing import signer_of
from sync.log.event_types import DEVICE_ADMITTED, DEVICE_REGISTERED, FACT_RETRACTED, PAYLOAD_FORGOTTEN
from sync.log.model import (
    ERASURE_STATE_FIELD,
    SIGNATURE_FIELD,
    Event,
    EventDraft,
    RemoteErasureState,
    erased_by,
    named_event_ids,
    remote_erasure_state,
)
from sync.settings.sections import PrivacySettings
from tests.fake_cloud.server import FakeServer
from tests.integration.lan.harness import guard_of
from tests.support import REDACTOR, Device, FixedClock, event, new_server, open_device

LIMITS = PrivacySettings(erasure_events=3)
A_DAY = 86_400.0


@asynccontextmanager
async def two_devices(folder: Path, server: FakeServer) -> AsyncIterator[tuple[Device, Device]]:
    """Both devices know each other from now on; the second reviews the requests of the first."""
    async with (
        open_device(
            folder / "a", server, device_id="device-a", with_device_key=True, erasure_settings=LIMITS
        ) as asking,
        open_device(
            folder / "b",
            server,
            device_id="device-b",
            with_device_key=True,
            erasure_settings=LIMITS,
            clock=FixedClock(seed=2),
        ) as judging,
    ):
        for device in (asking, judging):
            await device.log_in()
            await device.replicator.sync_now()
        yield asking, judging


async def erase(device: Device, event_ids: Sequence[str]) -> None:
    payload = REDACTOR.clean_payload_with_ids("event_ids", list(event_ids), {})
    await device.log.append([EventDraft(PAYLOAD_FORGOTTEN, payload)])
    await device.replicator.sync_now()


async def level(device: Device) -> dict[str, RemoteErasureState | None]:
    """The state of each erasure request there."""
    await device.replicator.sync_now()
    found = await device.database.read(
        lambda connection: erased_store.requests_with_field(connection, ERASURE_STATE_FIELD)
    )
    return {request.event_id: remote_erasure_state(request) for request in found}


async def noted(device: Device, server: FakeServer, count: int) -> list[str]:
    ids = await device.record_notes(*(f"第 {number} 条" for number in range(count)))
    await device.replicator.sync_now()
    return ids


async def test_a_large_request_of_a_key_that_is_new_here_waits_and_stops_nothing(tmp_path: Path) -> None:
    server = new_server()
    async with two_devices(tmp_path, server) as (asking, judging):
        ids = await noted(judging, server, 10)
        await asking.replicator.sync_now()
        await erase(asking, ids)
        later = await noted(asking, server, 1)
        assert list((await level(judging)).values()) == [RemoteErasureState.WAITS]
        found = {each.event_id: each for each in await judging.events()}
        assert set(later) < set(found)
        assert all(found[event_id].payload for event_id in ids)
        (request,) = [each for each in found.values() if each.type == PAYLOAD_FORGOTTEN]
        assert (erased_by(request), named_event_ids(request)) == ((), tuple(ids))


async def test_a_large_request_of_a_key_that_is_known_for_a_day_is_carried_out_and_named(tmp_path: Path) -> None:
    server = new_server()
    async with two_devices(tmp_path, server) as (asking, judging):
        ids = await noted(judging, server, 10)
        await asking.replicator.sync_now()
        judging.clock.advance(A_DAY)
        await erase(asking, ids)
        assert list((await level(judging)).values()) == [RemoteErasureState.APPLIED]
        (request,) = [each for each in await judging.events() if each.type == PAYLOAD_FORGOTTEN]
        assert erased_by(request) == tuple(ids)
        sent = server.user_logs["user-1"].events[-1]
        assert signer_of(sent) == server.user_logs["user-1"].devices["device-a"].public_key


async def test_a_signature_of_another_request_or_key_is_none(tmp_path: Path) -> None:
    server = new_server()
    async with two_devices(tmp_path, server) as (asking, judging):
        await erase(asking, ["evt_1"])
        sent = server.user_logs["user-1"].events[-1]
        signature = dict(sent.extra[SIGNATURE_FIELD])
        forged = event(9, type=PAYLOAD_FORGOTTEN, payload={"event_ids": ["evt_2"]}, extra={SIGNATURE_FIELD: signature})
        odd = [{}, "x", {"key": 1, "value": ""}, signature | {"key": "ed25519:x"}, signature | {"value": "?"}]
        assert signer_of(forged) is None
        assert [signer_of(event(9, type=PAYLOAD_FORGOTTEN, extra={SIGNATURE_FIELD: said})) for said in odd] == [
            None
        ] * 5
        assert (await level(judging)) == {}


async def test_many_small_requests_of_a_day_count_together_and_those_of_the_next_day_do_not(tmp_path: Path) -> None:
    clock = FixedClock()
    server = new_server(clock)
    async with two_devices(tmp_path, server) as (asking, judging):
        ids = await noted(judging, server, 8)
        await asking.replicator.sync_now()
        for event_id in ids[:5]:
            await erase(asking, [event_id])
        assert list((await level(judging)).values()) == [RemoteErasureState.WAITS] * 2
        clock.advance(A_DAY * 1.1)
        await erase(asking, ids[5:6])
        assert list((await level(judging)).values()) == [RemoteErasureState.WAITS] * 2


async def test_a_device_that_holds_none_of_the_words_is_asked_nothing(tmp_path: Path) -> None:
    server = new_server()
    async with two_devices(tmp_path, server) as (asking, judging):
        await erase(asking, await noted(asking, server, 10))
        assert await level(judging) == {}


@pytest.mark.parametrize("accept", [True, False])
async def test_the_persons_answer_is_kept_and_only_an_accepted_request_names_what_goes(
    tmp_path: Path, *, accept: bool
) -> None:
    server = new_server()
    async with two_devices(tmp_path, server) as (asking, judging):
        ids = await noted(judging, server, 10)
        await asking.replicator.sync_now()
        await erase(asking, ids)
        await level(judging)
        assert await _answered(judging.database, accept=accept) == (ids if accept else [])
        assert list((await level(judging)).values()) == [
            RemoteErasureState.ACCEPTED if accept else RemoteErasureState.REFUSED
        ]
        assert await _answered(judging.database, accept=True) == []


async def _answered(database: Database, *, accept: bool) -> list[str]:
    def answer(connection: Transaction) -> list[str]:
        return withheld_erasures.answer_requests(connection, accept=accept)

    return await database.write(answer)


async def test_a_decision_is_taken_once_the_device_that_asked_is_admitted(tmp_path: Path) -> None:
    async with two_devices(tmp_path, new_server()) as (asking, judging):
        for device in (judging, asking):
            key = await guard_of(device)._key.public_key()
            about = REDACTOR.clean_payload_with_ids("public_key", key, {"name": "x"})
            await device.log.append([EventDraft(DEVICE_REGISTERED, about)])
            await device.replicator.sync_now()
        (retracted,) = await judging.log.append([EventDraft(FACT_RETRACTED, REDACTOR.clean_payload({"fact_id": "f"}))])
        await judging.replicator.sync_now()
        await asking.replicator.sync_now()
        await erase(asking, [retracted.event.event_id])
        assert list((await level(judging)).values()) == [RemoteErasureState.WAITS]
        assert await judging.database.write(withheld_erasures.release_admitted) == []
        admission = REDACTOR.clean_payload({"device_ids": ["device-a"]})
        await judging.log.append([EventDraft(DEVICE_ADMITTED, admission)])
        assert await judging.database.write(withheld_erasures.release_admitted) == [retracted.event.event_id]
        assert list((await level(judging)).values()) == [RemoteErasureState.ACCEPTED]


def test_a_person_counts_an_exchange_with_what_is_derived_from_it_as_one() -> None:
    def stated(name: str) -> list[Event]:
        types = {name: "exchange_recorded", f"{name}.fact.1": "memory_fact", f"{name}_line": "entry_added"}
        return [replace(event(1, type=kind), event_id=event_id) for event_id, kind in types.items()]

    one, two = stated("evt_a"), stated("evt_b")
    assert (count_entries(one), count_entries([*one, *two])) == (1, 2)
    assert count_entries([*one, *two[2:], *two[2:]]) == 3, "lines that no fact explains count"
    assert count_entries(two[1:]) == 2, "a fact without its exchange, and its line"
    impact = ErasureImpact(3, 9, entries=1)
    assert not is_mass_erasure(PrivacySettings(), 3, impact, earlier=3, earlier_entries=1), (
        "the second 不要保存 of a day"
    )
    assert is_mass_erasure(PrivacySettings(), 3, impact, earlier=9, earlier_entries=3)


@pytest.mark.parametrize(
    ("events", "lines", "of", "earlier", "large"),
    [
        (20, 0, 0, 0, False),
        (21, 0, 0, 0, True),
        (1, 3, 4, 0, False),  # a few lines are always allowed
        (1, 4, 12, 0, True),
        (1, 4, 16, 0, False),
        (1, 1, 12, 4, True),
        (1, 0, 12, 15, False),
        (2, 0, 0, 19, True),
    ],
)
def test_what_is_large(events: int, lines: int, of: int, earlier: int, *, large: bool) -> None:
    assert is_mass_erasure(PrivacySettings(), events, ErasureImpact(lines, of), earlier=earlier) is large
