"""What a call reads does not grow with the log: counted in steps of SQLite's machine, so that no load disturbs it.

Each call is made on a short log and on one five times as long; a walk through the log, or through an index of it,
would take five times the steps. `make bench` measures the same with a million events, in time.
"""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from sync.app import App
from sync.db.engine import Database, Transaction
from sync.document.capture.exchange_events import ExchangeInput
from sync.document.read.cold_load import ColdLoad
from sync.document.read.other_devices import EXCHANGE_EVENTS
from sync.log.model import Query
from sync.open_app import AppMode, open_app
from tests.bulk_log import fill_log
from tests.support import START, app_settings, event, new_server, open_device

SHORT: Final = 6_000  # more of every type than a digest reads
LONG: Final = 30_000
MOST_TIMES: Final = 1.5  # a deeper tree and other lengths; a scan would be five times
STEP: Final = 50  # steps of SQLite's machine between two counts


@asynccontextmanager
async def long_memory(folder: Path, count: int) -> AsyncIterator[App]:
    """Open a device with a log of this size, without a cloud; half of the events are pending."""
    settings = app_settings(folder)
    async with open_app(settings, AppMode.HELPER) as app:
        await app.memory_service.update(ExchangeInput("你好", "好的"))
        await app.reconcile_memory_file()
        database = app.profile.database
    fill_log(database, "device-a", count)
    async with open_app(settings, AppMode.HELPER) as app:
        assert await app.log.find_problems() == []
        yield app


async def steps(database: Database, work: Callable[[], Awaitable[Any]]) -> int:
    """Return how many `STEP`s both connections of a database needed for this work."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    def watch(connection: Transaction) -> None:
        driver: Any = connection.connection.driver_connection
        driver.set_progress_handler(count, STEP)

    await database.write(watch)
    await database.read(watch)
    before = counted
    await work()
    return counted - before


CALLS: Final[dict[str, Callable[[App], Awaitable[Any]]]] = {
    "load": lambda app: app.memory_service.load(wait_ms=0),
    "update": lambda app: app.memory_service.update(ExchangeInput("又一个问题", "又一个回答")),
    "status": lambda app: app.status(),
    "settle": lambda app: app.reconcile_memory_file(),
    "outbox": lambda app: app.log.outbox(),
    "newest of the others": lambda app: app.log.newest(EXCHANGE_EVENTS, 50, excluded_devices={"device-a"}),
    "tail": lambda app: app.log.tail(Query(limit=20)),
    "tail of two types": lambda app: app.log.tail(Query(types=("tool_call", "entry_added"), limit=20)),
    "read of two types": lambda app: app.log.read(Query(types=("tool_call", "entry_added"), limit=20)),
    "read of a type that is not there": lambda app: app.log.read(Query(types=("nothing",))),
    "tail of types that are not there": lambda app: app.log.tail(Query(types=("nothing", "never"), limit=20)),
}


async def test_calls_read_as_much_of_a_long_log_as_of_a_short_one(tmp_path: Path) -> None:
    async with long_memory(tmp_path / "short", SHORT) as short, long_memory(tmp_path / "long", LONG) as long:
        for name, call in CALLS.items():
            few = await steps(short.log.database, partial(call, short))
            many = await steps(long.log.database, partial(call, long))
            assert many <= few * MOST_TIMES + 2, name


async def test_the_first_answer_reads_as_much_of_a_long_log_as_of_a_short_one(tmp_path: Path) -> None:
    counts = []
    for count in (SHORT, LONG):
        folder = tmp_path / f"{count}"
        async with long_memory(folder, count) as app:
            database = app.profile.database
        glimpse = ColdLoad(database, folder / "memory.md", "device-a", includes_other_devices=True, has_cloud=False)
        counts.append(steps_of_cold_load(glimpse))
    assert counts[1] <= counts[0] * MOST_TIMES + 2


def steps_of_cold_load(glimpse: ColdLoad) -> int:
    """The first answer is made with a connection of its own."""
    counted: list[int] = []

    class Watched(sqlite3.Connection):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            self.set_progress_handler(lambda: counted.append(1), STEP)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sync.encryption.driver.sqlite3.connect", partial(sqlite3.connect, factory=Watched))
        assert glimpse.load(scope="user", max_chars=None) is not None
    return len(counted)


async def test_a_round_with_the_cloud_reads_as_much_of_a_long_log_as_of_a_short_one(tmp_path: Path) -> None:
    counts = {count: await steps_of_rounds(tmp_path / f"{count}", count) for count in (SHORT, LONG)}
    for few, many in zip(counts[SHORT], counts[LONG], strict=True):
        assert many <= few * MOST_TIMES + 2, counts


async def steps_of_rounds(folder: Path, count: int) -> list[int]:
    """Poll without news, push one event, pull twenty."""
    server = new_server()
    async with open_device(folder, server) as device:
        await device.log_in()
        await device.replicator.sync_now()
    (memory,) = server.user_logs.values()
    memory.floor, memory.events = memory.head + count, []
    fill_log(folder / "memory.db", "device-a", count, head=memory.floor - count)
    async with open_device(folder, server) as device:
        await device.log_in()
        assert await device.log.find_problems() == []
        poll = await steps(device.database, device.replicator.sync_now)
        await device.record_notes("一")
        push = await steps(device.database, device.replicator.sync_now)
        last = memory.head
        memory.events += [
            event(number, replica="rep_b", device="device-b", server_seq=last + number, server_ts=START.isoformat())
            for number in range(1, 21)
        ]
        pull = await steps(device.database, device.replicator.sync_now)
        return [poll, push, pull]
