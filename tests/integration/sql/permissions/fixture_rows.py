"""The actors of the permission tests, and rows of three people in every table.

So "sees nothing" is checked on a table that has rows. The superuser or the people themselves create everything in the
ordinary way; checks run inside a transaction that is rolled back.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from psycopg.types.json import Jsonb

from tests.integration.sql.connections import Account, Connection, Cursor, Json, as_role, call, document, event

SHARED: Final = "shared"  # two accounts on one machine: alice and bob both have a device of this id
LOST: Final = "lost"  # a device of alice that was revoked, with its document
STOLEN: Final = "00000000-0000-4000-8000-000000000001"  # the session of that device
LOST_BARE: Final = "lost-bare"  # another that was revoked before it wrote one


LOST_KEY: Final = f"ed25519:{'L' * 42}A="


@dataclass(frozen=True)
class Person:
    name: str
    user_id: str

    @property
    def word(self) -> str:
        """A word in every payload and document of this person, and nowhere else."""
        return f"word-of-{self.name}-{self.user_id[:8]}"

    @property
    def laptop(self) -> str:
        return f"laptop-{self.name}"

    @property
    def marks(self) -> tuple[str, ...]:
        return (self.user_id, self.word, self.laptop, f"of {self.name}")

    def event_id(self, number: int) -> str:
        return f"evt_{self.name}_{number}_{self.user_id[:8]}"

    def claims(self, **more: Any) -> Json:
        return {"sub": self.user_id, "role": "authenticated", **more}


@dataclass(frozen=True)
class Actor:
    """A caller. `person` owns the token; `device` is the one that the caller claims to be."""

    name: str
    role: str
    claims: Json | None
    person: Person | None
    device: str

    @property
    def new_device(self) -> str:
        return LOST_BARE if self.device == LOST else "new"


@dataclass(frozen=True)
class FixtureRows:
    alice: Person
    bob: Person
    guest: Person  # an anonymous user with rows, from a time when they were allowed
    stray: int  # legacy_id of an unclaimed row

    @property
    def people(self) -> tuple[Person, ...]:
        return (self.alice, self.bob, self.guest)

    def victim_of(self, actor: Actor) -> Person:
        return self.bob if actor.person == self.alice else self.alice

    def names_in(self, text: str) -> set[str]:
        """The people who own rows in it."""
        return {p.name for p in self.people if any(mark in text for mark in p.marks)}


def actors(scene: FixtureRows) -> tuple[Actor, ...]:
    alice, bob, guest = scene.people
    # What people may write into their own profile must never count as who they are.
    liar = bob.claims(user_metadata={"sub": alice.user_id, "user_id": alice.user_id, "role": "service_role"})
    return (
        Actor("owner", "authenticated", alice.claims(), alice, alice.laptop),
        Actor("other user", "authenticated", liar, bob, SHARED),
        Actor("anon key", "anon", {"role": "anon"}, None, alice.laptop),
        Actor("anonymous user", "authenticated", guest.claims(is_anonymous=True), guest, guest.laptop),
        Actor("revoked device", "authenticated", alice.claims(), alice, LOST),
        Actor("session of a revoked device", "authenticated", alice.claims(session_id=STOLEN), alice, alice.laptop),
        Actor("expired token", "authenticated", None, None, alice.laptop),
        Actor("service role", "service_role", {"role": "service_role"}, None, alice.laptop),
    )


def insert_fixture_rows(admin: Connection) -> FixtureRows:
    """Three new people with rows in every table; committed."""
    alice, bob, guest = (Person(name, str(uuid4())) for name in ("alice", "bob", "guest"))
    for person in (alice, bob, guest):
        admin.execute("insert into auth.users (id) values (%s)", [person.user_id])
        _insert_live_rows(Account(admin, person.user_id, person.claims()), person)
        _write_checkpoint(admin, person)
        _insert_legacy_row(admin, person.laptop, person.word, person.user_id)
    owner = Account(admin, alice.user_id, alice.claims())
    stolen = Account(admin, alice.user_id, alice.claims(session_id=STOLEN))
    stolen.register(LOST, f"rep-{LOST}", p_public_key=LOST_KEY)
    owner.register(LOST_BARE, f"rep-{LOST_BARE}")
    owner.sync(device=LOST, replica=f"rep-{LOST}", snapshot=document(f"# {alice.word}\n", 1))
    for device in (LOST, LOST_BARE):
        owner.call("ai_memory_revoke_device", p_device_id=device)
    # Keep every device recently seen, so that a call writes only its own change.
    admin.execute("update public.ai_memory_devices set last_seen_at = now() + interval '1 day'")
    admin.execute(
        "update public.ai_memory_devices set last_seen_at = now() - interval '60 days' where device_id = 'old'"
    )
    return FixtureRows(alice, bob, guest, stray=_insert_legacy_row(admin, "stray", "nobody's", None))


def _insert_live_rows(account: Account, person: Person) -> None:
    for device in (person.laptop, SHARED, "old"):
        account.register(device, f"rep-{device}", p_name=f"{device} of {person.name}")
    account.call("ai_memory_report", p_device_id=person.laptop, p_codes=Jsonb({"22023": 2}))
    events = [
        event(
            n,
            event_id=person.event_id(n),
            device_id=person.laptop,
            replica=f"rep-{person.laptop}",
            payload={"text": person.word},
        )
        for n in range(1, 6)
    ]
    account.sync(
        events, device=person.laptop, replica=f"rep-{person.laptop}", snapshot=document(f"# {person.word}\n", 1)
    )
    account.sync(device=SHARED, replica=f"rep-{SHARED}", snapshot=document(f"# shared, {person.word}\n", 1))


def _write_checkpoint(admin: Connection, person: Person) -> None:
    """Two events in a checkpoint, one of them still a row as well, three that are rows only."""
    admin.execute("update public.ai_memory_devices set cursor_seq = 2 where user_id = %s", [person.user_id])
    with as_role(admin, "service_role", {"role": "service_role"}) as cursor:
        assert call(cursor, "ai_memory_admin_checkpoint", p_user=person.user_id)["floor"] == 2
        assert call(cursor, "ai_memory_admin_prune", p_user=person.user_id, p_most=1) == 1
    admin.execute("update public.ai_memory_devices set cursor_seq = 4 where user_id = %s", [person.user_id])


def _insert_legacy_row(admin: Connection, device: str, content: str, owner: str | None) -> int:
    row = admin.execute(
        "insert into public.ai_memory_legacy (device_id, user_id, content, claimed_by, moved_at) "
        "values (%s, %s, %s, %s, case when %s then now() end) returning legacy_id",
        [device, owner, content, owner, owner is not None],
    ).fetchone()
    assert row is not None
    return int(row[0])


@contextmanager
def rolled_back(connection: Connection) -> Iterator[Cursor]:
    """A transaction, or part of one, of which nothing stays; not the role either."""
    with connection.transaction(force_rollback=True), connection.cursor() as cursor:
        yield cursor
