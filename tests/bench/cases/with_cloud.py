"""Measurements against a local cloud: push, first pull of a long history, an idle sidecar.

The cloud runs on the same machine and shares its processors, so push and pull are given beside what a bare client needs
for the same events through the same server: bulk upserts into, and selects from, a plain table that belongs to its
user. The floor of the pull also holds the same rows put into the same SQLite tables by bare `executemany`.
"""

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

import httpx
import psycopg

from sync.cloud.replication.sync_round import PULL_EVENTS
from sync.settings.sections import SyncSettings
from tests.bench.cases import one_device
from tests.bench.measurement import Measurement
from tests.cloud.database.bulk_history import write_history
from tests.cloud.fixtures import Cloud, running_cloud
from tests.sidecar import Home, Sidecar, TimedSidecar

HISTORY: Final = 100_000  # events; some years of a person who talks a lot
PUSHED: Final = 5_000
APPENDED: Final = 100  # at once
PUSH_EVENTS: Final = int(SyncSettings().push_events)
PATIENCE_MS: Final = 600_000
EVENTS_PER_SECOND: Final = 5_000
ASKED_ONLY: Final = {"SYNC__REALTIME": "false", "SYNC__POLL_SECONDS": "3600"}  # syncs only on request

_PLAIN: Final = """
create table public.bench_events (
  user_id uuid not null default auth.uid(),
  seq bigint not null,
  event jsonb not null,
  primary key (user_id, seq)
);
alter table public.bench_events enable row level security;
create policy own on public.bench_events to authenticated
  using (user_id = (select auth.uid())) with check (user_id = (select auth.uid()));
revoke all on public.bench_events from anon, authenticated;
grant select, insert, update on public.bench_events to authenticated;
"""
_SAME: Final = """
insert into public.bench_events (user_id, seq, event)
select user_id, seq, to_jsonb(one) - 'user_id' from public.ai_memory_events as one
where user_id = %(user)s and seq > %(after)s
"""


class User(NamedTuple):
    email: str
    password: str
    user_id: str


def rows(folder: Path) -> Iterator[Measurement]:
    """Everything that needs a cloud, one after another on one cloud."""
    with running_cloud() as cloud:
        with psycopg.connect(cloud.database_url) as connection:
            connection.execute(_PLAIN)
        cloud.reload_schema()
        yield from push(folder, cloud)
        yield from first_pull(folder, cloud)
        yield from idle(folder, cloud)


def idle(folder: Path, cloud: Cloud) -> Iterator[Measurement]:
    """An idle sidecar that is logged in and caught up, with the default polling."""
    user = new_user(cloud)
    with TimedSidecar(home_of(folder / "idle-cloud", cloud)) as sidecar:
        sidecar.log_in(user.email, user.password)
        sidecar.update("今天的安排", "好的")
        sidecar.call("sync/now")
        yield from one_device.at_rest(sidecar, "with cloud", most_mb=95)


def push(folder: Path, cloud: Cloud, count: int = PUSHED) -> Iterator[Measurement]:
    """What was recorded before the first login, until the server holds all of it."""
    user = new_user(cloud)
    home = home_of(folder / "push", cloud, **ASKED_ONLY)
    events = [
        {"type": "memory_fact", "payload": {"text": f"第 {number} 件事" + "回答" * 30}} for number in range(count)
    ]
    with TimedSidecar(home) as sidecar:
        for start in range(0, count, APPENDED):
            sidecar.call("events/appendBatch", events=events[start : start + APPENDED])
        began = time.perf_counter()
        sidecar.log_in(user.email, user.password)
        while sidecar.call("sync/status")["pending"]:
            sync_now(sidecar)
        ours = time.perf_counter() - began
    held = _rows_on_server(cloud, user, after=0)
    with bare_client(cloud, user) as http:
        floor = _upserts(http, held)
    rate = count / ours
    yield Measurement(f"push of {count:,} events", rate, "events/s", len(held) / floor, "reported", met=True)


def first_pull(folder: Path, cloud: Cloud, count: int = HISTORY) -> Iterator[Measurement]:
    """A device that joins an account with a long history, until it has pulled all of it."""
    user = new_user(cloud)
    home = home_of(folder / "first-pull", cloud, **ASKED_ONLY)
    with TimedSidecar(home) as sidecar:
        sidecar.log_in(user.email, user.password)
        sidecar.call("sync/now")
        after = sidecar.call("sync/status")["cloud"]["head"]
        write_history(cloud, user.user_id, count)
        began = time.perf_counter()
        wait_until_synced(sidecar, after + count)
        ours = time.perf_counter() - began
    with psycopg.connect(cloud.database_url) as connection:
        connection.execute(_SAME, {"user": user.user_id, "after": after})
    with bare_client(cloud, user) as http:
        floor = _selects(http, after, after + count) + _inserts(home, folder / "raw-inserts.db", count)
    rate = count / ours
    target = f">= {EVENTS_PER_SECOND}"
    yield Measurement(
        f"first pull of {count:,} events", rate, "events/s", count / floor, target, rate >= EVENTS_PER_SECOND
    )


def wait_until_synced(sidecar: Sidecar, head: int) -> None:
    """Rounds until the log is held up to `head`; the first may join one that began before there was so much."""
    while sidecar.call("sync/status")["cloud"]["cursor"] < head:
        sync_now(sidecar)


def sync_now(sidecar: Sidecar) -> None:
    sidecar.wait_for_response(sidecar.send("sync/now", timeoutMs=PATIENCE_MS), timeout=PATIENCE_MS / 1000)


def new_user(cloud: Cloud) -> User:
    email, password = f"{uuid4().hex}@example.com", uuid4().hex
    return User(email, password, cloud.sign_up(email, password))


def home_of(folder: Path, cloud: Cloud, **settings: str) -> Home:
    return Home(folder, SUPABASE_URL=cloud.url, SUPABASE_KEY=cloud.publishable_key, **settings)


@contextmanager
def bare_client(cloud: Cloud, user: User) -> Iterator[httpx.Client]:
    """A client that speaks as this user and does nothing else."""
    headers = {"apikey": cloud.publishable_key}
    with httpx.Client(base_url=cloud.url, headers=headers, trust_env=False, timeout=30) as http:
        credentials = {"email": user.email, "password": user.password}
        login = http.post("/auth/v1/token?grant_type=password", json=credentials).raise_for_status().json()
        http.headers["Authorization"] = f"Bearer {login['access_token']}"
        yield http


def _rows_on_server(cloud: Cloud, user: User, after: int) -> list[Mapping[str, Any]]:
    """The events of a user as rows of the plain table."""
    question = (
        "select seq, to_jsonb(one) - 'user_id' from public.ai_memory_events as one where user_id = %s and seq > %s"
    )
    with psycopg.connect(cloud.database_url) as connection:
        return [{"seq": seq, "event": event} for seq, event in connection.execute(question, [user.user_id, after])]


def _upserts(http: httpx.Client, held: Sequence[Mapping[str, Any]]) -> float:
    """Seconds for the same events in batches of the same size."""
    prefer = {"Prefer": "resolution=merge-duplicates,return=minimal"}
    began = time.perf_counter()
    for start in range(0, len(held), PUSH_EVENTS):
        batch = held[start : start + PUSH_EVENTS]
        http.post("/rest/v1/bench_events?on_conflict=user_id,seq", json=batch, headers=prefer).raise_for_status()
    return time.perf_counter() - began


def _selects(http: httpx.Client, after: int, last: int) -> float:
    """Seconds for the same events in pages of the same size, read as JSON and thrown away."""
    began = time.perf_counter()
    while after < last:
        path = f"/rest/v1/bench_events?select=seq,event&order=seq&seq=gt.{after}&limit={PULL_EVENTS}"
        after = json.loads(http.get(path).raise_for_status().content)[-1]["seq"]
    return time.perf_counter() - began


def _inserts(home: Home, path: Path, count: int) -> float:
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
    seconds = time.perf_counter() - began
    source.close()
    target.close()
    return seconds
