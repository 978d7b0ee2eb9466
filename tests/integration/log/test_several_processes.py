"""Several processes append to one database: every event once, numbered without gaps, in one order."""

import asyncio
import json
import multiprocessing
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

from sync.clock import SystemClock
from sync.db.engine import Database
from sync.log import store
from sync.log.log import EventLog
from sync.log.model import Event, Query
from tests.sidecar import Home
from tests.support import REPOSITORY, draft

PROCESSES, EACH = 4, 50

RECORD_FOR_EVER = """
import asyncio, sys
from pathlib import Path
from tests.integration.log.test_several_processes import opened
from tests.support import draft
async def main():
    log = await opened(Path(sys.argv[1]))
    while True:
        for item in await asyncio.gather(*(log.record([draft("a"), draft("b")]) for _ in range(8))):
            print(item[0].event.event_id, item[1].event.event_id, flush=True)
asyncio.run(main())
"""


async def opened(path: Path) -> EventLog:
    clock = SystemClock()
    database = await Database.open(path)
    await database.write(lambda connection: store.ensure_replica_id(connection, clock))
    return EventLog(database, clock, device_id="device-a", session_id="s")


def record_many(path: str) -> list[tuple[str, int]]:
    """Append in another process; return the acknowledged ids."""

    async def run() -> list[tuple[str, int]]:
        log = await opened(Path(path))
        answers = await asyncio.gather(*(log.append([draft(f"{number}")]) for number in range(EACH)))
        await log.database.close()
        return [(item.event.event_id, item.event.replica_seq) for (item,) in answers]

    return asyncio.run(run())


async def events_of(path: Path) -> list[Event]:
    log = await opened(path)
    page = await log.read(Query(limit=100_000))
    await log.database.close()
    return list(page.events)


async def test_concurrent_processes_number_one_log_without_gaps(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        told = await asyncio.to_thread(pool.map, record_many, [str(path)] * PROCESSES, 1)
    answered = dict(pair for answers in told for pair in answers)
    events = await events_of(path)
    assert len(answered) == PROCESSES * EACH
    assert {event.event_id: event.replica_seq for event in events} == answered
    assert [event.replica_seq for event in events] == list(range(1, PROCESSES * EACH + 1))
    assert all(earlier.hlc < later.hlc for earlier, later in pairwise(events))
    assert len({event.replica_id for event in events}) == 1


async def test_a_killed_process_loses_no_acknowledged_event_and_leaves_no_part_of_one(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    child = subprocess.Popen(  # noqa: ASYNC220 - it starts in a millisecond
        [sys.executable, "-c", RECORD_FOR_EVER, str(path)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    told = [await asyncio.to_thread(child.stdout.readline) for _ in range(60)]
    child.send_signal(signal.SIGKILL)
    rest, _ = await asyncio.to_thread(child.communicate)
    whole = [line.split() for line in (*told, *rest.splitlines(keepends=True)) if line.endswith("\n")]
    answered = {event_id for pair in whole for event_id in pair}
    events = await events_of(path)
    ids = [event.event_id for event in events]
    assert answered <= set(ids)
    assert len(ids) % 2 == 0, "a call is all or nothing"
    assert [event.replica_seq for event in events] == list(range(1, len(ids) + 1))
    with sqlite3.connect(path) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        assert connection.execute("select count(*) from deliveries where state = 'pending'").fetchone() == (len(ids),)
    connection.close()


def test_commands_started_at_once_each_append_their_events(tmp_path: Path) -> None:
    home = Home(tmp_path)

    def append(number: int) -> Any:
        batch = [{"type": "note_taken", "event_id": f"evt_{number}_{part}", "payload": {}} for part in range(5)]
        return home.json("events", "append-batch", json.dumps(batch))

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(append, range(4)))
    assert sum(len(answer["eventIds"]) for answer in answers) == 20
    read = home.json("events", "read", "{}")
    assert sorted(event["replica_seq"] for event in read["events"]) == list(range(1, 21))
    again = append(2)
    assert sorted(again["duplicates"]) == [f"evt_2_{part}" for part in range(5)]
