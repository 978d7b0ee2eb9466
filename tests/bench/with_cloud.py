"""What is measured against a local cloud: a first pull of a long history, and a sidecar at rest beside a server.

The cloud runs on the same machine and shares its processors, so the first pull is given beside two floors of the same
run: the same pages asked for by a bare HTTP client, and the same rows put into the same tables by bare `executemany`.
"""

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx
import psycopg

from sync.cloud.exchange import PULL_EVENTS
from tests.bench import measures
from tests.bench.measures import Row
from tests.cloud.fixtures import Cloud, running_cloud
from tests.cloud.history import write_history
from tests.sidecar import Home, Sidecar

HISTORY: Final = 100_000  # events; some years of a person who talks a lot
PATIENCE_MS: Final = 600_000
EVENTS_PER_SECOND: Final = 5_000


def rows(folder: Path) -> Iterator[Row]:
    """Everything that needs a cloud, one after another on one cloud."""
    with running_cloud() as cloud:
        yield from first_pull(folder, cloud)
        yield from idle(folder, cloud)


def idle(folder: Path, cloud: Cloud) -> Iterator[Row]:
    """A sidecar that is logged in and level, and that nobody asks anything, at the usual pace of polling."""
    email, password, _ = _user(cloud)
    with Sidecar(_home(folder / "idle-cloud", cloud)) as sidecar:
        sidecar.log_in(email, password)
        sidecar.update("你好", "好的")
        sidecar.call("sync/now")
        yield from measures.at_rest(sidecar, "with cloud", most_mb=90)


def first_pull(folder: Path, cloud: Cloud, count: int = HISTORY) -> Iterator[Row]:
    """A device that joins an account with a long history, until it holds all of it."""
    email, password, user_id = _user(cloud)
    home = _home(folder / "first-pull", cloud)
    with Sidecar(home) as sidecar:
        sidecar.log_in(email, password)
        sidecar.call("sync/now")
        write_history(cloud, user_id, count)
        began = time.perf_counter()
        pulled = sidecar.wait(sidecar.send("sync/now", timeoutMs=PATIENCE_MS), within=PATIENCE_MS / 1000)["pulled"]
        ours = time.perf_counter() - began
    assert pulled == count, f"{pulled} of {count} events arrived"
    floor = _raw_pages(cloud, email, password, count) + _raw_inserts(home, folder / "raw-inserts.db", count)
    rate = count / ours
    target = f">= {EVENTS_PER_SECOND}"
    yield Row(f"first pull of {count:,} events", rate, "events/s", count / floor, target, rate >= EVENTS_PER_SECOND)


def _user(cloud: Cloud) -> tuple[str, str, str]:
    email, password = f"{uuid4().hex}@example.com", uuid4().hex
    return email, password, cloud.sign_up(email, password)


def _home(folder: Path, cloud: Cloud) -> Home:
    return Home(folder, SUPABASE_URL=cloud.url, SUPABASE_KEY=cloud.publishable_key)


def _raw_pages(cloud: Cloud, email: str, password: str, count: int) -> float:
    """Seconds that a bare client needs for the same pages, read as JSON and thrown away."""
    headers = {"apikey": cloud.publishable_key}
    with httpx.Client(base_url=cloud.url, headers=headers, trust_env=False, timeout=30) as http:
        login = http.post("/auth/v1/token?grant_type=password", json={"email": email, "password": password}).json()
        http.headers["Authorization"] = f"Bearer {login['access_token']}"
        asked: dict[str, Any] = {
            "p_device_id": "device-a",
            "p_replica_id": _replica_of(cloud, login["user"]["id"]),
            "p_limit": PULL_EVENTS,
            "p_after": 0,
        }
        began = time.perf_counter()
        while asked["p_after"] < count:
            answer = json.loads(http.post("/rest/v1/rpc/ai_memory_sync", json=asked).content)
            last = answer["events"][-1]
            asked |= {"p_after": last["seq"], "p_after_event": last["event_id"], "p_epoch": answer["epoch"]}
        return time.perf_counter() - began


def _replica_of(cloud: Cloud, user_id: str) -> str:
    with psycopg.connect(cloud.database_url) as connection:
        found = connection.execute(
            "select replica_id from public.ai_memory_devices where user_id = %s and device_id = 'device-a'", [user_id]
        ).fetchone()
    assert found is not None
    return str(found[0])


def _raw_inserts(home: Home, path: Path, count: int) -> float:
    """Seconds for the same rows in the same tables, a page a durable commit."""
    source = sqlite3.connect(home.database)
    target = sqlite3.connect(path, isolation_level=None)
    for (statement,) in source.execute("select sql from sqlite_master where tbl_name = 'events' and sql is not null"):
        target.execute(statement)
    target.execute("pragma journal_mode = wal")
    target.execute("pragma synchronous = full")
    held = source.execute("select * from events order by position limit ?", [count]).fetchall()
    places = ", ".join("?" * len(held[0]))
    began = time.perf_counter()
    for start in range(0, len(held), PULL_EVENTS):
        target.execute("begin immediate")
        target.executemany(f"insert into events values ({places})", held[start : start + PULL_EVENTS])
        target.execute("commit")
    taken = time.perf_counter() - began
    source.close()
    target.close()
    return taken
