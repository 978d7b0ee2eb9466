"""Whatever ids and numbers a hostile device uses first, honest devices end with each other's events, and unforked."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sync.log.model import Event
from tests.integration.lan.harness import devices, guard_of, meet
from tests.integration.lan.test_authors import insert
from tests.proof import examples
from tests.support import Device, event, new_server

NAMES = ("a", "c", "d")  # the honest ones

squatter = st.tuples(
    st.sampled_from(NAMES),  # whose replica
    st.integers(1, 9),
    st.sampled_from(("device-a", "device-b", "device-c", "device-x")),  # the author that it names
    st.booleans(),  # under the id of an event that is known by then
)
step = st.one_of(
    squatter,
    st.tuples(st.sampled_from(NAMES)),  # records
    st.tuples(st.sampled_from(NAMES), st.sampled_from((*NAMES, "b"))),  # meets
)


async def run(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with devices(Path(folder), new_server(), *NAMES, "b") as opened:
            by_name = dict(zip((*NAMES, "b"), opened, strict=True))
            keys = {one.log.device_id: await guard_of(one)._key.public_key() for one in opened}
            for one in opened:
                await insert(one, *(registered(name, key) for name, key in keys.items()))
            true: dict[str, str] = {}
            for number, action in enumerate(steps):
                match action:
                    case (str() as name,):
                        (event_id,) = await by_name[name].record_notes(f"真 {number}")
                        true[event_id] = f"真 {number}"
                    case (str() as name, str() as other) if name != other:
                        await meet(by_name[name], by_name[other])
                    case (str() as victim, int() as at, str() as author, bool() as is_known):
                        await squat(by_name["b"], by_name[victim], at, author, sorted(true)[-1:] if is_known else [])
                    case _:
                        pass
            honest = [by_name[name] for name in NAMES]
            for left in honest:
                for right in honest:
                    if left is not right:
                        await meet(left, right)
            for one in honest:
                told = {item.event_id: item for item in await one.events()}
                here = {name for name, item in told.items() if item.payload.get("text") == true.get(name)}
                lacking = true.keys() - here
                taken = {item.event_id for item in await one.log.quarantine.list_refused()}
                assert lacking <= taken, "its own device's word is here, or the clash of two proven ones is named"
                assert all(told[name].is_proven for name in true.keys() - lacking)


def registered(name: str, key: str) -> Event:
    number = int.from_bytes(name.encode()) % 1_000 + 1
    kind, payload = "device_registered", {"public_key": key}
    return event(number, replica="rep_reg", device=name, type=kind, payload=payload, event_id=f"evt_{name}")


async def squat(by: Device, victim: Device, number: int, author: str, known: list[str]) -> None:
    name = known[0] if known else f"evt_false_{victim.log.device_id}_{number}_{author}"
    place = (victim.replica_id, number)
    held = await by.events()
    if name in {one.event_id for one in held} or place in {one.replica_key for one in held}:
        return
    await insert(by, event(number, replica=place[0], device=author, event_id=name, payload={"text": "假"}))


@settings(max_examples=examples(12))
@given(st.lists(step, max_size=24))
def test_no_squatter_keeps_an_event_away_or_parts_two_honest_devices(steps: list[tuple[Any, ...]]) -> None:
    asyncio.run(run(steps))
