"""A thousand users on the local cloud: how long a round takes, and what it costs the server's processors.

The users are bare HTTP clients: each call is what a device's round sends, with a valid token. At rest a device polls
every two minutes; by use it sends an update 40 times in a day of twelve hours, which one other device pulls.
"""

import asyncio
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx
import jwt
import psycopg

from tests.bench.measurement import Measurement
from tests.bench.process_client import cpu_seconds
from tests.cloud.fixtures import Cloud, running_cloud
from tests.integration.sql.connections import event

USERS: Final = 1_000
SECONDS: Final = 20.0
POLLS_A_SECOND: Final = 1 / 120  # of a device at rest, with realtime or alone
UPDATES_A_SECOND: Final = 40 / (12 * 3600)  # of a user; each is a push and a pull
BUSY: Final = 10  # times the expected rate
MOST_MS: Final = 500.0


@dataclass
class SimulatedDevice:
    """A user's device: its token, and the cursor that it asks from."""

    headers: dict[str, str]
    sent: int = 0
    cursor: tuple[int, str | None, str | None] = (0, None, None)


def rows(users: int = USERS, seconds: float = SECONDS) -> Iterator[Measurement]:
    """The time of a round and the processor time that the server spent on it, at the expected rate and at ten times."""
    with running_cloud() as cloud:
        devices = _add_users(cloud, users)
        expected = users * (POLLS_A_SECOND + 2 * UPDATES_A_SECOND)
        for name, rate in (("at rest", expected), (f"at {BUSY} times that", BUSY * expected)):
            before = sum(map(cpu_seconds, _processes(cloud)))
            times = asyncio.run(_run_load(cloud, devices, rate, seconds))
            spent = sum(map(cpu_seconds, _processes(cloud))) - before
            p95 = statistics.quantiles(times, n=20)[18] * 1000
            where = f"of {users:,} users, {name}"
            yield Measurement(f"round p95 {where}", p95, "ms", None, f"<= {MOST_MS:g} ms", p95 <= MOST_MS)
            yield Measurement(f"server CPU {where}", spent / len(times) * 1000, "ms/round", None, "reported", met=True)


def _add_users(cloud: Cloud, count: int) -> list[SimulatedDevice]:
    ids = [str(uuid4()) for _ in range(count)]
    with psycopg.connect(cloud.database_url) as connection, connection.cursor() as cursor:
        cursor.executemany("insert into auth.users (id) values (%s)", [[user] for user in ids])
        cursor.executemany(
            "insert into public.ai_memory_devices (user_id, device_id, replica_id) values (%s, 'd1', 'r1')",
            [[user] for user in ids],
        )
    return [SimulatedDevice(_headers(cloud, user)) for user in ids]


def _headers(cloud: Cloud, user: str) -> dict[str, str]:
    claims = {"sub": user, "role": "authenticated", "aud": "authenticated", "exp": int(time.time()) + 3600}
    token = jwt.encode(claims, cloud.jwt_secret, algorithm="HS256")
    return {"apikey": cloud.publishable_key, "Authorization": f"Bearer {token}"}


def _processes(cloud: Cloud) -> tuple[int, ...]:
    """The server's processes; PostgreSQL's back ends are children of its postmaster."""
    children = [
        int(child)
        for pid in cloud.pids
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        if int(child) not in cloud.pids
    ]
    return (*cloud.pids, *children)


async def _run_load(cloud: Cloud, devices: list[SimulatedDevice], rate: float, seconds: float) -> list[float]:
    """Calls at this rate whether or not earlier ones are answered, as independent devices make them."""
    chance = random.Random(1)
    share = UPDATES_A_SECOND / (POLLS_A_SECOND + 2 * UPDATES_A_SECOND)
    loop = asyncio.get_running_loop()
    async with httpx.AsyncClient(base_url=cloud.url, trust_env=False, timeout=60) as http:
        calls: list[asyncio.Task[float]] = []
        start = at = loop.time()
        while at < start + seconds:
            await asyncio.sleep(max(0.0, at - loop.time()))
            device = chance.choice(devices)
            calls.append(asyncio.create_task(_round(http, device, sends=chance.random() < share)))
            at += chance.expovariate(rate)
        return await asyncio.gather(*calls)


async def _round(http: httpx.AsyncClient, device: SimulatedDevice, *, sends: bool) -> float:
    """One request of a device; seconds until the answer."""
    device.sent += sends
    after, name, epoch = device.cursor
    arguments: dict[str, Any] = {"p_device_id": "d1", "p_replica_id": "r1", "p_after": after}
    arguments |= {"p_after_event": name, "p_epoch": epoch, "p_events": [event(device.sent)] if sends else []}
    began = time.perf_counter()
    reply = await http.post("/rest/v1/rpc/ai_memory_sync", json=arguments, headers=device.headers)
    took = time.perf_counter() - began
    answer = reply.raise_for_status().json()
    for pulled in answer["events"]:
        device.cursor = (pulled["seq"], pulled["event_id"], answer["epoch"])
    return took
