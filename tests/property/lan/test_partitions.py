"""Three devices that meet in any order, with broken links, erasures and a cloud that comes late, agree at the end."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from sync.log.event_types import PAYLOAD_FORGOTTEN
from sync.log.model import EventDraft, named_event_ids
from tests.integration.lan.harness import Link, devices, meet
from tests.proof import examples
from tests.support import REDACTOR, Device, new_server

device = st.integers(0, 2)
pair = st.tuples(device, device).filter(lambda two: two[0] != two[1])
step = st.one_of(
    st.tuples(st.just("record"), device),
    st.tuples(st.just("erase"), device),
    st.tuples(st.just("meet"), pair),
    st.tuples(st.just("break"), pair, st.lists(st.integers(0, 1), max_size=12)),
    st.tuples(st.just("sync"), device),
)


async def follow(steps: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with devices(Path(folder), new_server(), "a", "b", "c") as three:
            for one in three:
                await one.log_in()
            for number, (kind, who, *more) in enumerate(steps):
                await take(three, kind, who, more, number)
            await level(three)
            without_cloud = [await contents(one) for one in three]
            assert without_cloud[0] == without_cloud[1] == without_cloud[2]
            for _ in range(3):
                for one in three:
                    await one.replicator.sync_now()
            for one in three:
                assert await contents(one) == without_cloud[0], "the cloud brings nothing twice and nothing else"
                assert (await one.log.outbox()).pending == 0


async def take(three: list[Device], kind: object, who: object, more: list[object], number: int) -> None:
    match kind, who:
        case "record", int():
            await three[who].record_notes(f"第 {number} 条")
        case "erase", int():
            ids = sorted(item.event_id for item in await three[who].events() if item.type != PAYLOAD_FORGOTTEN)
            if ids:
                request = REDACTOR.clean_payload_with_ids("event_ids", [ids[number % len(ids)]], {})
                await three[who].log.append([EventDraft(PAYLOAD_FORGOTTEN, request)])
        case "meet", (int(left), int(right)):
            await meet(three[left], three[right])
        case "break", (int(left), int(right)):
            link = Link(three[left], three[right])
            await link.start()
            for side in more[0]:  # type: ignore[attr-defined]
                await link.deliver_one(side)
        case "sync", int():
            await three[who].replicator.sync_now()


async def level(three: list[Device]) -> None:
    for left, right in ((0, 1), (1, 2), (0, 1)):
        link = await meet(three[left], three[right])
        assert all(side.is_level for side in link.sides)


async def contents(one: Device) -> list[tuple[str, str, int]]:
    """Ids and numbers of what was not erased. An erased event need not reach a device that never had it."""
    events = await one.events()
    assert len({item.event_id for item in events}) == len(events)
    erased = {name for item in events for name in named_event_ids(item)}
    return sorted((item.event_id, item.replica_id, item.replica_seq) for item in events if item.event_id not in erased)


@settings(max_examples=examples(25))
@given(st.lists(step, max_size=14))
def test_every_event_is_once_everywhere_whoever_met_whom(steps: list[tuple[object, ...]]) -> None:
    asyncio.run(follow(steps))
