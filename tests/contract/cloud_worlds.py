"""Two worlds in which one contract must hold: the twin in memory, and Supabase's clients on a local project.

A world is a cloud and what an administrator can do behind its back.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Protocol
from uuid import uuid4

import psycopg

from sync.clock import SystemClock
from sync.cloud.memory import MemoryCloud, MemoryServer
from sync.cloud.port import Cloud
from sync.cloud.supabase import SupabaseCloud
from tests.cloud.fixtures import Cloud as LocalCloud
from tests.support import FixedClock


class Person(NamedTuple):
    email: str
    password: str
    user_id: str


class World(Protocol):
    cloud: Cloud

    def new_person(self) -> Person: ...
    def revoke_device(self, person: Person, device_id: str) -> None: ...
    def end_sessions(self, person: Person) -> None:
        """As an administrator who signs a user out everywhere."""
        ...

    def restore(self, person: Person, *, keep: int, epoch: str | None = None) -> None:
        """Go back to a backup of `keep` events; with an `epoch`, to another log."""
        ...

    def fall_silent(self, person: Person, device_id: str) -> None:
        """Let the device be unheard of for an hour."""
        ...

    def document(self, person: Person, device_id: str) -> str | None: ...


class MemoryWorld:
    def __init__(self) -> None:
        self._clock = FixedClock()
        self._server = MemoryServer(self._clock)
        self.cloud: Cloud = MemoryCloud(self._server)

    def new_person(self) -> Person:
        email, password = f"{uuid4().hex}@example.com", uuid4().hex
        return Person(email, password, self._server.add_user(email, password))

    def revoke_device(self, person: Person, device_id: str) -> None:
        self._server.memories[person.user_id].devices[device_id].revoked = True

    def end_sessions(self, person: Person) -> None:  # noqa: ARG002 - the twin ends everybody's
        self._server.revoke_sessions()

    def restore(self, person: Person, *, keep: int, epoch: str | None = None) -> None:
        self._server.restore(person.user_id, keep, epoch=epoch)

    def fall_silent(self, person: Person, device_id: str) -> None:
        self._server.memories[person.user_id].devices[device_id].seen -= timedelta(hours=1).total_seconds()

    def document(self, person: Person, device_id: str) -> str | None:
        found = self._server.memories[person.user_id].documents.get(device_id)
        return None if found is None else found[1].content


@dataclass
class SupabaseWorld:
    local: LocalCloud
    cloud: Cloud

    def new_person(self) -> Person:
        email, password = f"{uuid4().hex}@example.com", uuid4().hex
        return Person(email, password, self.local.sign_up(email, password))

    def revoke_device(self, person: Person, device_id: str) -> None:
        self._run(
            "update ai_memory_devices set revoked_at = now() where user_id = %s and device_id = %s",
            person.user_id,
            device_id,
        )

    def end_sessions(self, person: Person) -> None:
        self._run("delete from auth.sessions where user_id = %s", person.user_id)
        self._run("delete from auth.refresh_tokens where user_id = %s", person.user_id)

    def restore(self, person: Person, *, keep: int, epoch: str | None = None) -> None:
        self._run("delete from ai_memory_events where user_id = %s and seq > %s", person.user_id, keep)
        self._run(
            "update ai_memory_heads set seq = %s, epoch = coalesce(%s, epoch) where user_id = %s",
            keep,
            epoch,
            person.user_id,
        )

    def fall_silent(self, person: Person, device_id: str) -> None:
        self._run(
            "update ai_memory_devices set last_seen_at = now() - interval '1 hour'"
            " where (user_id, device_id) = (%s, %s)",
            person.user_id,
            device_id,
        )

    def document(self, person: Person, device_id: str) -> str | None:
        with psycopg.connect(self.local.database_url) as connection:
            row = connection.execute(
                "select content from ai_memory where user_id = %s and device_id = %s", (person.user_id, device_id)
            ).fetchone()
        return None if row is None else str(row[0])

    def _run(self, statement: str, *values: object) -> None:
        with psycopg.connect(self.local.database_url, autocommit=True) as connection:
            connection.execute(statement.encode(), values)


def supabase_cloud(
    local: LocalCloud, *, url: str | None = None, key: str | None = None, timeout: float = 20.0
) -> Cloud:
    return SupabaseCloud(url or local.url, key or local.publishable_key, timeout=timeout, clock=SystemClock())
