"""Two worlds in which one contract must hold: the twin in memory, and Supabase's clients on a local project.

A world is a cloud and what an administrator can do behind its back.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Protocol
from uuid import uuid4

import psycopg

from sync.clock import SystemClock
from sync.cloud.contact import Contact, parse_contact
from sync.cloud.fake.server import FakeCloud, FakeServer
from sync.cloud.port import Cloud
from sync.cloud.supabase.cloud import SupabaseCloud
from tests.cloud.fixtures import Cloud as LocalCloud
from tests.support import FixedClock


class AccountHolder(NamedTuple):
    email: str
    password: str
    user_id: str

    @property
    def contact(self) -> Contact:
        return parse_contact(email=self.email)


def new_number() -> str:
    """Of a range that no operator has."""
    return f"+86100{uuid4().int % 10**8:08}"


class CloudBackend(Protocol):
    cloud: Cloud

    def new_person(self) -> AccountHolder: ...
    def code_sent_to(self, contact: Contact) -> str:
        """What a person reads in the newest message."""
        ...

    def age_code(self, contact: Contact, seconds: float) -> None:
        """Let the last message be so much older."""
        ...

    def new_contact(self, kind: str) -> Contact:
        """Of somebody who has no account."""
        return (
            parse_contact(email=f"{uuid4().hex}@example.com") if kind == "email" else parse_contact(phone=new_number())
        )

    def revoke_device(self, person: AccountHolder, device_id: str) -> None: ...
    def end_sessions(self, person: AccountHolder) -> None:
        """As an administrator who signs a user out everywhere."""
        ...

    def restore(self, person: AccountHolder, *, keep: int, epoch: str | None = None) -> None:
        """Go back to a backup of `keep` events; with an `epoch`, to another log."""
        ...

    def age_last_seen(self, person: AccountHolder, device_id: str) -> None:
        """Let the device be unheard of for an hour."""
        ...

    def fold_events(self, person: AccountHolder) -> None:
        """As an administrator who folds everything into a checkpoint and prunes."""
        ...

    def reported_refusals(self, person: AccountHolder, device_id: str) -> dict[str, int]:
        """What an administrator sees of a device's quarantine."""
        ...

    def document(self, person: AccountHolder, device_id: str) -> str | None: ...
    def write_document(self, person: AccountHolder, device_id: str, content: str) -> None:
        """As the original app does, past `sync`."""
        ...


class FakeBackend(CloudBackend):
    def __init__(self) -> None:
        self._clock = FixedClock()
        self._server = FakeServer(self._clock)
        self.cloud: Cloud = FakeCloud(self._server)

    def new_person(self) -> AccountHolder:
        email, password = f"{uuid4().hex}@example.com", uuid4().hex
        return AccountHolder(email, password, self._server.add_user(email, password))

    def code_sent_to(self, contact: Contact) -> str:
        return self._server.accounts.code_sent_to(contact)

    def age_code(self, contact: Contact, seconds: float) -> None:  # noqa: ARG002 - the twin's clock is everybody's
        self._clock.advance(seconds)

    def revoke_device(self, person: AccountHolder, device_id: str) -> None:
        self._server.user_logs[person.user_id].devices[device_id].revoked_at = self._clock.now().timestamp()

    def end_sessions(self, person: AccountHolder) -> None:  # noqa: ARG002 - the twin ends everybody's
        self._server.accounts.revoke_sessions()

    def restore(self, person: AccountHolder, *, keep: int, epoch: str | None = None) -> None:
        self._server.restore(person.user_id, keep, epoch=epoch)

    def age_last_seen(self, person: AccountHolder, device_id: str) -> None:
        self._server.user_logs[person.user_id].devices[device_id].last_seen -= timedelta(hours=1).total_seconds()

    def reported_refusals(self, person: AccountHolder, device_id: str) -> dict[str, int]:
        return self._server.user_logs[person.user_id].devices[device_id].refused

    def fold_events(self, person: AccountHolder) -> None:
        """Nobody may notice, so the twin has nothing to do."""

    def document(self, person: AccountHolder, device_id: str) -> str | None:
        found = self._server.user_logs[person.user_id].documents.get(device_id)
        return None if found is None else found.content

    def write_document(self, person: AccountHolder, device_id: str, content: str) -> None:
        self._server.write_document(person.user_id, device_id, content)


@dataclass
class SupabaseBackend(CloudBackend):
    local: LocalCloud
    cloud: Cloud

    def new_person(self) -> AccountHolder:
        email, password = f"{uuid4().hex}@example.com", uuid4().hex
        return AccountHolder(email, password, self.local.sign_up(email, password))

    def code_sent_to(self, contact: Contact) -> str:
        return self.local.code_sent_to(contact.value)

    def age_code(self, contact: Contact, seconds: float) -> None:
        self.local.age_code(contact.value, seconds)

    def revoke_device(self, person: AccountHolder, device_id: str) -> None:
        self._run(
            "update ai_memory_devices set revoked_at = now() where user_id = %s and device_id = %s",
            person.user_id,
            device_id,
        )

    def end_sessions(self, person: AccountHolder) -> None:
        self._run("delete from auth.sessions where user_id = %s", person.user_id)
        self._run("delete from auth.refresh_tokens where user_id = %s", person.user_id)

    def restore(self, person: AccountHolder, *, keep: int, epoch: str | None = None) -> None:
        self._run("delete from ai_memory_events where user_id = %s and seq > %s", person.user_id, keep)
        self._run(
            "update ai_memory_heads set seq = %s, epoch = coalesce(%s, epoch) where user_id = %s",
            keep,
            epoch,
            person.user_id,
        )

    def age_last_seen(self, person: AccountHolder, device_id: str) -> None:
        self._run(
            "update ai_memory_devices set last_seen_at = now() - interval '1 hour'"
            " where (user_id, device_id) = (%s, %s)",
            person.user_id,
            device_id,
        )

    def reported_refusals(self, person: AccountHolder, device_id: str) -> dict[str, int]:
        query = "select code, events from ai_memory_admin_quarantine where (user_id, device_id) = (%s, %s)"
        with psycopg.connect(self.local.database_url) as connection:
            return dict(connection.execute(query, (person.user_id, device_id)).fetchall())

    def fold_events(self, person: AccountHolder) -> None:
        self._run(
            "update ai_memory_devices set last_seen_at = now() - interval '1 year' where user_id = %s", person.user_id
        )
        self._run("select ai_memory_admin_checkpoint(%s)", person.user_id)
        self._run("select ai_memory_admin_prune(%s)", person.user_id)

    def document(self, person: AccountHolder, device_id: str) -> str | None:
        with psycopg.connect(self.local.database_url) as connection:
            row = connection.execute(
                "select content from ai_memory where user_id = %s and device_id = %s", (person.user_id, device_id)
            ).fetchone()
        return None if row is None else str(row[0])

    def write_document(self, person: AccountHolder, device_id: str, content: str) -> None:
        self._run(
            "insert into ai_memory (user_id, device_id, content) values (%s, %s, %s)"
            " on conflict (user_id, device_id) do update set content = excluded.content",
            person.user_id,
            device_id,
            content,
        )

    def _run(self, statement: str, *values: object) -> None:
        with psycopg.connect(self.local.database_url, autocommit=True) as connection:
            connection.execute(statement.encode(), values)


def supabase_cloud(
    local: LocalCloud, *, url: str | None = None, key: str | None = None, timeout: float = 20.0
) -> Cloud:
    return SupabaseCloud(url or local.url, key or local.publishable_key, timeout=timeout, clock=SystemClock())
