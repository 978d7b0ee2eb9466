"""The two backends of one contract: the fake server, and Supabase's clients on a local project.

A backend is a cloud and what an administrator can do to it.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Protocol
from uuid import uuid4

import psycopg

from sync.clock import SystemClock
from sync.cloud.contact import Contact, parse_contact
from sync.cloud.port import Cloud
from sync.cloud.supabase.cloud import SupabaseCloud
from tests.cloud.fixtures import Cloud as LocalCloud
from tests.fake_cloud.server import FakeCloud, FakeServer
from tests.support import FixedClock


class AccountHolder(NamedTuple):
    email: str
    password: str
    user_id: str

    @property
    def contact(self) -> Contact:
        return parse_contact(email=self.email)


def new_number() -> str:
    """A number of a range that no operator has."""
    return f"+86100{uuid4().int % 10**8:08}"


class CloudBackend(Protocol):
    cloud: Cloud

    def new_person(self) -> AccountHolder: ...
    def code_sent_to(self, contact: Contact) -> str:
        """The code in the newest message."""
        ...

    def age_code(self, contact: Contact, seconds: float) -> None:
        """Make the last message older."""
        ...

    def new_contact(self, kind: str) -> Contact:
        """A contact without an account."""
        return (
            parse_contact(email=f"{uuid4().hex}@example.com") if kind == "email" else parse_contact(phone=new_number())
        )

    def revoke_device(self, person: AccountHolder, device_id: str) -> None: ...
    def end_sessions(self, person: AccountHolder) -> None:
        """Sign a user out everywhere, as an administrator."""
        ...

    def restore(self, person: AccountHolder, *, keep: int, epoch: str | None = None) -> None:
        """Go back to a backup of `keep` events; with an `epoch`, to another log."""
        ...

    def age_last_seen(self, person: AccountHolder, device_id: str) -> None:
        """Make the device silent for an hour."""
        ...

    def fold_events(self, person: AccountHolder) -> None:
        """Fold everything into a checkpoint and prune, as an administrator."""
        ...

    def reported_refusals(self, person: AccountHolder, device_id: str) -> dict[str, int]:
        """The quarantine of a device, as an administrator sees it."""
        ...

    def document(self, person: AccountHolder, device_id: str) -> str | None: ...
    def write_document(self, person: AccountHolder, device_id: str, content: str) -> None:
        """Write a document as the original app does."""
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

    def age_code(self, contact: Contact, seconds: float) -> None:  # noqa: ARG002 - one clock for all
        self._clock.advance(seconds)

    def revoke_device(self, person: AccountHolder, device_id: str) -> None:
        self._server.user_logs[person.user_id].devices[device_id].revoked_at = self._clock.now().timestamp()

    def end_sessions(self, person: AccountHolder) -> None:  # noqa: ARG002 - ends all sessions
        self._server.accounts.revoke_sessions()

    def restore(self, person: AccountHolder, *, keep: int, epoch: str | None = None) -> None:
        self._server.restore(person.user_id, keep, epoch=epoch)

    def age_last_seen(self, person: AccountHolder, device_id: str) -> None:
        self._server.user_logs[person.user_id].devices[device_id].last_seen -= timedelta(hours=1).total_seconds()

    def reported_refusals(self, person: AccountHolder, device_id: str) -> dict[str, int]:
        return self._server.user_logs[person.user_id].devices[device_id].refused

    def fold_events(self, person: AccountHolder) -> None:
        """Clients must not notice, so the fake server does nothing."""

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
