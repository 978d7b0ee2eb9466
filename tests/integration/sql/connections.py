"""Requests to the database as PostgREST makes them (one transaction, the role, the claims), and a reader's cursor.

Every test makes accounts of its own, so tests share one database without seeing each other.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from tests.cloud.prerequisites import MIGRATIONS

Json = dict[str, Any]
Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]

WAIT_SECONDS = 60.0  # a bound for a broken program


@contextmanager
def as_role(connection: Connection, role: str, claims: Json | None) -> Iterator[Cursor]:
    """One request: everything inside is one transaction of `role` with these claims of the token."""
    with connection.transaction(), connection.cursor() as cursor:
        become(cursor, role, claims)
        yield cursor


def become(cursor: Cursor, role: str, claims: Json | None) -> None:
    """For the rest of the transaction; `none` is the superuser again."""
    cursor.execute(
        "select set_config('request.jwt.claims', %s, true), set_config('role', %s, true)",
        [json.dumps(claims) if claims is not None else "", role],
    )


def call(cursor: Cursor, function: str, **arguments: Any) -> Any:
    """Call a function of schema public by named arguments, as an rpc does."""
    names = sql.SQL(", ").join(sql.SQL("{} => {}").format(sql.Identifier(k), sql.Placeholder(k)) for k in arguments)
    cursor.execute(sql.SQL("select public.{}({})").format(sql.Identifier(function), names), arguments)
    row = cursor.fetchone()
    assert row is not None
    return row[0]


def refusal(error: psycopg.Error) -> tuple[str | None, Json]:
    """SQLSTATE and the JSON in DETAIL."""
    return error.sqlstate, json.loads(error.diag.message_detail or "{}")


def event(number: int, *, replica: str = "r1", **changes: Any) -> Json:
    """A whole, valid event; `number` is its replica_seq."""
    return {
        "schema_version": 1,
        "event_id": f"evt_{uuid4()}",
        "project_id": "proj_abcd1234",
        "project_path": "/家/项目",
        "session_id": None,
        "ts": "2026-02-02T10:00:00.000Z",
        "type": "exchange_recorded",
        "payload": {"summary": "喜欢简洁的回答"},
        "device_id": "d1",
        "replica_id": replica,
        "replica_seq": number,
        "hlc": "0193a5b2c3d4-0000",
        "origin": "user-typed",
        "reach": "cloud",
        "local_date": "2026-02-02",
        "utc_offset": 480,
    } | changes


def document(content: str, through: int, **changes: Any) -> Json:
    digest = hashlib.sha256(content.encode()).hexdigest()
    return {"content": content, "content_sha256": digest, "through_replica_seq": through} | changes


def eventually(fact: Callable[[], bool], what: str) -> None:
    """Wait until the database says so; fail, naming what did not happen."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not fact():
        assert time.monotonic() < deadline, f"did not happen: {what}"
        time.sleep(0.005)


@dataclass
class Account:
    """A user and one connection that makes their requests."""

    connection: Connection
    user_id: str
    claims: Json

    @contextmanager
    def request(self) -> Iterator[Cursor]:
        with as_role(self.connection, "authenticated", self.claims) as cursor:
            yield cursor

    def call(self, function: str, **arguments: Any) -> Any:
        with self.request() as cursor:
            return call(cursor, function, **arguments)

    def rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self.request() as cursor:
            cursor.execute(query.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    def register(self, device: str = "d1", replica: str = "r1", **more: Any) -> Json:
        answer: Json = self.call("ai_memory_register_device", p_device_id=device, p_replica_id=replica, **more)
        return answer

    def sync(self, events: Sequence[Json] = (), *, device: str = "d1", replica: str = "r1", **more: Any) -> Json:
        """`more` are the other arguments without their p_."""
        arguments = {f"p_{name}": Jsonb(value) if name == "snapshot" else value for name, value in more.items()}
        answer: Json = self.call(
            "ai_memory_sync", p_device_id=device, p_replica_id=replica, p_events=Jsonb(list(events)), **arguments
        )
        return answer


@dataclass
class Reader:
    """A device's cursor: refuses a gap, as the client does."""

    account: Account
    device: str = "d1"
    replica: str = "r1"
    after: int = 0
    after_event: str | None = None
    epoch: str | None = None
    events: list[Json] = field(default_factory=list)

    def pull(self, **more: Any) -> Json:
        answer = self.account.sync(
            device=self.device,
            replica=self.replica,
            after=self.after,
            after_event=self.after_event,
            epoch=self.epoch,
            **more,
        )
        assert answer["reset"] is False
        self.epoch = answer["epoch"]
        for pulled in answer["events"]:
            assert pulled["seq"] == self.after + 1, "a number is missing"
            self.after, self.after_event = pulled["seq"], pulled["event_id"]
            self.events.append(pulled)
        return answer


@dataclass(frozen=True)
class Cloud:
    """The database behind the local cloud; `admin` owns the tables. Connections live as long as the test."""

    url: str
    admin: Connection
    connections: ExitStack

    def connect(self) -> Connection:
        return self.connections.enter_context(psycopg.connect(self.url, autocommit=True))

    def account(self, **claims: Any) -> Account:
        """A new user; `claims` are added to those of the token."""
        user_id = str(uuid4())
        self.admin.execute("insert into auth.users (id) values (%s)", [user_id])
        return Account(self.connect(), user_id, {"sub": user_id, "role": "authenticated"} | claims)

    def again(self, account: Account) -> Account:
        """The same user over another connection."""
        return Account(self.connect(), account.user_id, account.claims)

    def is_blocked(self, account: Account) -> bool:
        return bool(self.value("select cardinality(pg_blocking_pids(%s)) > 0", account.connection.info.backend_pid))

    def value(self, query: str, *parameters: Any) -> Any:
        row = self.admin.execute(query.encode(), parameters).fetchone()
        return row[0] if row else None


@contextmanager
def open_cloud(url: str) -> Iterator[Cloud]:
    with ExitStack() as connections:
        yield Cloud(url, connections.enter_context(psycopg.connect(url, autocommit=True)), connections)


def migrate(admin: Connection) -> None:
    """Apply the migrations as `supabase db push` does: one transaction each."""
    for path in sorted(MIGRATIONS.glob("*.sql")):
        with admin.transaction():
            admin.execute("set local session authorization postgres")
            admin.execute(path.read_text("utf-8").encode())
