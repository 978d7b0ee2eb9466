"""A hostile device takes the ids and numbers of a third one: the third one's own events arrive all the same."""

from datetime import timedelta
from functools import partial
from pathlib import Path

from msgspec.structs import replace
from sqlalchemy import text

from sync.clock import format_hlc, to_unix_ms
from sync.lan.intake import BYTES_A_DAY, EVENTS_A_DAY, DailyIntake
from sync.log import store as log_store
from sync.log.event_types import DEVICE_ADMITTED, DEVICE_REGISTERED, DEVICE_REVOKED, MEMORY_FACT
from sync.log.model import Event
from sync.redaction import KINDS, placeholder
from sync.understanding.projection import FactProjection
from tests.integration.lan.harness import Link, devices, guard_of, meet
from tests.integration.lan.test_authors import insert
from tests.support import REPOSITORY, START, Device, event, new_server

MS = to_unix_ms(START)


async def told_by(device: Device) -> dict[str, tuple[str, bool]]:
    """Each text in the log of a device, with its author and whether that is proven."""
    return {str(one.payload.get("text")): (one.device_id, one.is_proven) for one in await device.events()}


async def named_by(device: Device) -> list[str]:
    return [one.event_id for one in await device.log.quarantine.list_refused()]


async def recorded(device: Device, words: str) -> Event:
    (event_id,) = await device.record_notes(words)
    return next(one for one in await device.events() if one.event_id == event_id)


async def facts_of(device: Device) -> dict[str, str]:
    projection = FactProjection(lambda: device.log.own_device_ids)
    facts = await device.database.read(projection.read)
    return {fact.statement: fact.status.value for fact in facts.facts}


async def register_all(first: Device, *others: Device) -> None:
    """Record on the first device that it has admitted the others."""
    everyone = [first, *others]
    registered = [
        event(
            number,
            replica="rep_reg",
            device=one.log.device_id,
            type=DEVICE_REGISTERED,
            payload={"public_key": await guard_of(one)._key.public_key()},
            hlc=format_hlc(MS + number),
        )
        for number, one in enumerate(everyone, 1)
    ]
    names = [one.log.device_id for one in others]
    await insert(first, *registered, said(first, 9, DEVICE_ADMITTED, {"device_ids": names}, at=50))


def said(by: Device, number: int, kind: str, payload: dict[str, object], *, at: int) -> Event:
    replica, hlc = f"rep_of_{by.log.device_id}", format_hlc(MS + at)
    made = event(number, replica=replica, device=by.log.device_id, type=kind, payload=payload, hlc=hlc)
    return replace(made, extra={"door": "update"})


async def test_the_word_of_the_author_replaces_what_a_peer_put_under_its_id(tmp_path: Path) -> None:
    for place in ({}, {"replica_id": "rep_false", "replica_seq": 1}):
        async with devices(tmp_path / str(len(place)), new_server(), "a", "b", "c") as (a, b, c):
            true = await recorded(c, "真话")
            await insert(b, replace(true, payload={"text": "假话"}, position=0, **place))
            await meet(a, b)
            assert await told_by(a) == {"假话": ("device-c", False)}
            await meet(a, c)
            assert await told_by(a) == {"真话": ("device-c", True)}
            link = await meet(a, c)
            assert not link.records_of(0)
            assert not link.records_of(1)


async def test_a_fact_of_the_author_replaces_the_false_one_in_what_is_derived(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        await register_all(a, b, c)
        await meet(a, b)
        await meet(a, c)
        await insert(c, said(c, 1, MEMORY_FACT, {"content": "我对花生过敏", "evidence": ["x"]}, at=100))
        await meet(c, b)
        change = text(f"update events set payload = :false where type = '{MEMORY_FACT}'")
        await b.database.write(lambda to: to.execute(change, {"false": '{"content":"我能吃花生","evidence":["x"]}'}))
        await meet(b, a)
        assert await facts_of(a) == {"我能吃花生": "candidate"}
        await meet(c, a)
        assert await facts_of(a) == {"我对花生过敏": "active"}


async def test_a_signed_copy_over_a_third_device_replaces_the_false_one(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b", "c", "d") as (a, b, c, d):
        await register_all(c, a, b, d)
        for other in (a, b, d):
            await meet(c, other)
        true = await recorded(c, "真话")
        await insert(b, replace(true, payload={"text": "假话"}, position=0))
        await meet(a, b)
        await meet(c, d)
        await meet(d, a)
        assert (await told_by(a))["真话"] == ("device-c", True)
        assert "假话" not in await told_by(a)


async def test_two_proven_events_of_one_id_are_named_and_the_held_one_stays(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        true = await recorded(c, "真话")
        await insert(b, event(9, replica="rep_b9", device="device-b", event_id=true.event_id, payload={"text": "抢占"}))
        await meet(a, b)
        await meet(a, c)
        assert await told_by(a) == {"抢占": ("device-b", True)}
        assert await named_by(a) == [true.event_id]
        assert (await a.log.outbox()).quarantined == 1
        assert await a.log.quarantine.release(None, "dropped") == [true.event_id]
        assert await named_by(a) == []


async def test_an_unproven_event_with_the_id_of_an_own_one_is_named_and_the_own_one_is_still_sent(
    tmp_path: Path,
) -> None:
    async with devices(tmp_path, new_server(), "a", "b") as (a, b):
        await a.log_in()
        own = await recorded(a, "真话")
        await insert(b, event(9, replica="rep_b9", device="device-x", event_id=own.event_id, payload={"text": "抢占"}))
        await meet(a, b)
        assert await named_by(a) == [own.event_id]
        assert await a.log.quarantine.release(None, "dropped") == [own.event_id]
        assert (await a.log.outbox()).pending == 1
        await a.replicator.sync_now()
        assert [one.server_seq for one in await a.events() if one.event_id == own.event_id] == [1]


async def test_a_corrected_copy_that_comes_before_its_correction_is_applied_is_no_clash(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "c") as (a, c):
        said_here = await recorded(c, "电话 13800138000")
        await meet(a, c)
        corrected = {"text": f"电话 {placeholder(KINDS[0])}"}
        await c.database.write(log_store.replace_payload, said_here.event_id, corrected)
        await c.database.write(log_store.renumber_as_new_replica, [said_here.position], c.clock)
        await meet(a, c)
        assert await named_by(a) == []


async def test_numbers_that_a_peer_used_before_their_device_keep_nothing_away(tmp_path: Path) -> None:
    """Before and among the third device's own numbers, and after a hostile device has them once more."""
    for squatted in (range(1, 6), range(2, 3), range(6, 9)):
        folder = tmp_path / str(squatted)
        async with devices(folder, new_server(), "a", "b", "c", "d") as (a, b, c, d):
            for name in ("device-b", "device-c"):
                await insert(b, *(squatting(c, number, name) for number in squatted))
            await meet(a, b)
            await meet(d, b)
            true = await c.record_notes(*"一二三四五")
            await meet(a, c)
            assert set(true) <= await a.event_ids()
            await meet(a, d)
            await meet(b, a)
            await meet(d, a)
            assert set(true) <= await d.event_ids()
            true += await c.record_notes("六", "七")
            await meet(a, c)
            await meet(a, d)
            assert set(true) <= await a.event_ids() & await d.event_ids()
            assert all(one.is_proven for one in await a.events() if one.event_id in true)


def squatting(victim: Device, number: int, device_id: str) -> Event:
    name = f"evt_false_{device_id}_{number}"
    place = number if device_id == "device-b" else number + 100
    return event(place, replica=victim.replica_id, device=device_id, event_id=name, payload={"text": name})


async def test_numbers_of_this_device_s_replica_are_its_own(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        await insert(b, *(event(number, replica=a.replica_id, device="device-b") for number in (1, 2, 3)))
        await meet(b, c)
        await a.record_notes("一")
        await meet(a, c)
        await a.record_notes("二")
        await meet(c, a)
        assert len(await a.event_ids()) == len(await c.event_ids()) == 5
        assert [one.replica_seq for one in await a.events() if one.replica_id == a.replica_id] == [1, 2]


async def test_what_a_revoked_device_dated_after_its_end_is_not_its_word(tmp_path: Path) -> None:
    async with devices(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        await register_all(a, b, c)
        await meet(a, b)
        await meet(a, c)
        await insert(b, said(b, 1, MEMORY_FACT, {"content": "我住在天津", "evidence": ["x"]}, at=90))
        await insert(b, said(b, 2, MEMORY_FACT, {"content": "我喜欢跑步", "evidence": ["x"]}, at=900))
        await meet(b, c)
        assert await facts_of(c) == {"我住在天津": "active", "我喜欢跑步": "active"}
        await insert(a, said(a, 20, DEVICE_REVOKED, {"device_id": "device-b"}, at=500))
        await meet(c, a)
        assert await facts_of(c) == {"我住在天津": "active", "我喜欢跑步": "candidate"}
        assert set((await facts_of(a)).values()) == {"candidate"}, "what came after the end over another device"


async def test_a_peer_brings_as_much_as_the_server_takes_in_a_day_and_goes_on_tomorrow(tmp_path: Path) -> None:
    for limits in ({"events": 150}, {"size": 60_000}):
        async with devices(tmp_path / next(iter(limits)), new_server(), "a", "b") as (a, b):
            told: list[int] = []
            link = Link(a, b)
            link.sides[0].intake = DailyIntake(a.clock, **limits)
            link.sides[0].on_limit = partial(told.append, 1)
            await insert(b, *(squatting(b, number, "device-b") for number in range(1, 2_001)))
            await link.start()
            await link.run_until_quiet()
            first = await a.database.read(log_store.newest_position)
            assert 0 < first <= 1_000
            assert told
            assert not link.sides[0].is_level
            await link.note_changes()
            await link.run_until_quiet()
            assert await a.database.read(log_store.newest_position) == first
            a.clock.advance(timedelta(days=1).total_seconds())
            await link.note_changes()
            await link.run_until_quiet()
            assert await a.database.read(log_store.newest_position) > first


def test_the_limits_of_a_day_are_those_of_the_server() -> None:
    tables = (REPOSITORY / "sql/migrations/20261125000100_ai_memory_tables.sql").read_text("utf-8")
    assert f"('events_a_day', {EVENTS_A_DAY}," in tables
    assert f"('bytes_a_day', {BYTES_A_DAY}," in tables
