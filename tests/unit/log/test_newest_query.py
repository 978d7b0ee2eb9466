"""The query for the newest events of other devices finds what a plain sort finds."""

import random
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from sync.db.engine import Database
from sync.log import store
from sync.log.model import Event
from tests.support import event

DEVICES = ("device-a", "device-b", "设备", "device-d")
TYPES = ("exchange_recorded", "entry_added", "tool_call")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "memory.db")
    yield opened
    await opened.close()


def scattered(chance: random.Random, count: int) -> list[Event]:
    """Devices with two replicas each, in no order, many under the same HLC."""
    return [
        event(
            number,
            replica=f"rep_{chance.randrange(3)}",
            device=chance.choice(DEVICES),
            type=chance.choice(TYPES),
            hlc=f"0193a5b2c3d4-{chance.randrange(count // 4):04x}",
        )
        for number in range(1, count + 1)
    ]


@pytest.mark.parametrize("besides", [(), ("device-a",), ("device-a", "设备"), DEVICES])
@pytest.mark.parametrize("types", [TYPES[:1], TYPES[:2], TYPES, ("nothing",)])
async def test_the_newest_are_those_of_a_plain_sort(
    database: Database, types: tuple[str, ...], besides: tuple[str, ...]
) -> None:
    found = scattered(random.Random(7), 200)
    await database.write(lambda connection: store.insert_events(connection, found))
    wanted = sorted(
        (one for one in found if one.type in types and one.device_id not in besides),
        key=lambda one: (one.hlc, one.replica_id, one.replica_seq),
        reverse=True,
    )
    for limit in (1, 7, 1000):
        newest = await database.read(partial(store.read_newest, types=types, limit=limit, excluded_devices=besides))
        assert [one.event_id for one in newest] == [one.event_id for one in wanted[:limit]]


async def test_an_empty_log_has_no_newest(database: Database) -> None:
    assert await database.read(lambda connection: store.read_newest(connection, TYPES, limit=5)) == []
