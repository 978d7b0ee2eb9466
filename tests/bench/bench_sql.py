"""What one call costs the server beside a million events of ten thousand users: `python -m tests.bench.bench_sql`.

Times are PostgreSQL's own (EXPLAIN ANALYZE of the whole call), so neither network nor client is in them. Takes minutes.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from psycopg.types.json import Jsonb

from tests.cloud.database import postgres
from tests.integration.sql.connections import Account, Reader, event, migrate, open_cloud
from tests.integration.sql.many_users import ManyUsers

CALL = b"explain (analyze, format json) select public.ai_memory_sync("


def cost(person: Account, arguments: bytes, *values: Any) -> float:
    with person.request() as cursor:
        row = cursor.execute(CALL + arguments + b")", values).fetchone()
    assert row is not None
    return float(row[0][0]["Execution Time"])


def show(what: str, measure: Callable[[], float], times: int) -> None:
    found = sorted(measure() for _ in range(times))
    print(f"{what:<34} median {statistics.median(found):7.2f} ms   best {found[0]:7.2f} ms", flush=True)


def calls(crowd: ManyUsers, number: int) -> None:
    person = crowd.account(number)
    reader = Reader(person)
    while reader.pull()["head"] > reader.after:
        pass
    place = (reader.after, reader.after_event, reader.epoch)
    show("poll that finds nothing", lambda: cost(person, b"'d1', 'r1', null, %s, %s, %s", *place), 300)
    show("pull of 100 events", lambda: cost(person, b"'d1', 'r1', null, 0, null, null, 100"), 30)
    sent = 1_000_000

    def push(count: int) -> float:
        nonlocal sent
        sent += count
        batch = Jsonb([event(sent + n) for n in range(count)])
        return cost(person, b"'d1', 'r1', %s, 0, null, null, 0", batch)

    show("push of 1 event", lambda: push(1), 50)
    show("push of 500 events", lambda: push(500), 10)


def fold(crowd: ManyUsers, users: int) -> None:
    admin = crowd.cloud.admin
    admin.execute("update ai_memory_devices set last_seen_at = now() - interval '1 year'")
    steps = "select count(ai_memory_admin_{}(user_id)) from (select user_id from ai_memory_heads limit %s) as chosen"
    for step in ("checkpoint", "prune"):
        start = time.perf_counter()
        admin.execute(steps.format(step).encode(), [users])
        print(f"{step} of {users * crowd.each} events {time.perf_counter() - start:.1f} s", flush=True)
    sizes = "select pg_total_relation_size('ai_memory_checkpoints') / sum(through_seq - from_seq + 1) from "
    print("bytes of a folded event:", crowd.cloud.value(sizes + "ai_memory_checkpoints"), flush=True)


async def main(users: int, each: int) -> None:
    async with postgres.running_server() as server:
        with open_cloud(server.url) as cloud:
            migrate(cloud.admin)
            crowd = ManyUsers(cloud, users, each)
            start = time.perf_counter()
            crowd.insert_users()
            print(f"{users * each} events of {users} users, made in {time.perf_counter() - start:.0f} s", flush=True)
            size = cloud.value("select sum(pg_total_relation_size(inhrelid)) from pg_inherits")
            print(f"bytes of an event with its indexes: {size / (users * each):.0f}", flush=True)
            calls(crowd, 77)
            fold(crowd, users // 10)
            calls(crowd, 78)


if __name__ == "__main__":
    asyncio.run(main(*[int(value) for value in sys.argv[1:3]] or (10_000, 100)))
