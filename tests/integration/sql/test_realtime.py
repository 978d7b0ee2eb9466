"""The poke in SQL: when it is sent, who may hear it, and that it never costs a push."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.cloud.fixtures import Cloud as LocalCloud
from tests.integration.sql.connections import Account, Cloud, Json, as_role, event, open_cloud
from tests.sidecar import REPOSITORY

MIGRATION = REPOSITORY / "sql" / "migrations" / "20261125000500_ai_memory_realtime.sql"
PROBE = "insert into realtime.messages (topic, extension, private, payload) values (%s, %s, true, '{}')"


@pytest.fixture
def cloud(local_cloud: LocalCloud) -> Iterator[Cloud]:
    with open_cloud(local_cloud.database_url) as opened:
        yield opened


@pytest.fixture
def alice(cloud: Cloud) -> Account:
    account = cloud.account()
    account.register()
    return account


def topic_of(account: Account) -> str:
    return f"ai_memory:{account.user_id}"


def pokes(cloud: Cloud, account: Account) -> list[Json]:
    found = cloud.admin.execute(
        "select payload, event, private, extension from realtime.messages where topic = %s order by inserted_at",
        [topic_of(account)],
    ).fetchall()
    assert {row[1:] for row in found} <= {("head", True, "broadcast")}
    return [row[0] for row in found]


# --- when ---------------------------------------------------------------------------------------------------


def test_a_push_pokes_with_the_number_of_the_head_and_nothing_else(cloud: Cloud, alice: Account) -> None:
    alice.sync([event(1), event(2)])
    alice.sync([event(3)])
    assert pokes(cloud, alice) == [{"head": 2}, {"head": 3}]


def test_a_call_that_does_not_raise_the_head_sends_no_broadcast(cloud: Cloud, alice: Account) -> None:
    known = event(1)
    alice.sync([known])
    alice.sync([known])
    alice.sync()
    cloud.admin.execute("update public.ai_memory_heads set epoch = 'another' where user_id = %s", [alice.user_id])
    cloud.admin.execute("update public.ai_memory_heads set seq = 0 where user_id = %s", [alice.user_id])
    assert pokes(cloud, alice) == [{"head": 1}]


def test_a_push_that_is_rolled_back_sends_no_broadcast(cloud: Cloud, alice: Account) -> None:
    with pytest.raises(psycopg.DataError):
        alice.sync([event(1), event(2, hlc="no time")])
    assert pokes(cloud, alice) == []


# --- never at the price of a push ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "disturbance",
    [
        "drop function realtime.send(jsonb, text, text, boolean)",
        "drop schema realtime cascade",
        "alter table realtime.messages rename to elsewhere",
        "revoke execute on function realtime.send(jsonb, text, text, boolean) from public",
        """create or replace function realtime.send(payload jsonb, event text, topic text, private boolean default true)
           returns void language plpgsql as $$ begin raise exception 'no'; end $$""",
    ],
    ids=["no function", "no schema", "no table", "no right", "an error"],
)
def test_a_push_goes_through_whatever_becomes_of_the_poke(cloud: Cloud, alice: Account, disturbance: str) -> None:
    with cloud.admin.transaction(force_rollback=True):
        cloud.admin.execute("revoke supabase_realtime_admin from postgres")
        cloud.admin.execute(disturbance.encode())
        same = Account(cloud.admin, alice.user_id, alice.claims)
        assert same.sync([event(1)])["head"] == 1


def test_a_push_waits_only_a_moment_for_a_lock_on_the_messages(cloud: Cloud, alice: Account) -> None:
    blocker = cloud.connect()
    with blocker.transaction(force_rollback=True):
        blocker.execute("lock table realtime.messages in access exclusive mode")
        alice.connection.execute("set statement_timeout = '3s'")  # less than the push itself would wait for a lock
        assert alice.sync([event(1)])["head"] == 1
    assert pokes(cloud, alice) == []


# --- who ----------------------------------------------------------------------------------------------------


def may_receive(cloud: Cloud, role: str, claims: Json | None, topic: str, extension: str = "broadcast") -> bool:
    """As Realtime finds out: a row of the topic, looked for by the user, and rolled back."""
    with cloud.admin.transaction(force_rollback=True):
        cloud.admin.execute(PROBE, [topic, extension])
        with as_role(cloud.admin, role, claims) as cursor:
            cursor.execute("select set_config('realtime.topic', %s, true)", [topic])
            return cursor.execute("select from realtime.messages where topic = %s", [topic]).fetchone() is not None


def may_send(cloud: Cloud, role: str, claims: Json | None, topic: str) -> bool:
    with cloud.admin.transaction(force_rollback=True):
        try:
            with as_role(cloud.admin, role, claims) as cursor:
                cursor.execute("select set_config('realtime.topic', %s, true)", [topic])
                cursor.execute(PROBE, [topic, "broadcast"])
        except psycopg.errors.InsufficientPrivilege:
            return False
        return True


def matrix(cloud: Cloud, alice: Account) -> dict[str, tuple[str, Json | None]]:
    return {
        "herself": ("authenticated", alice.claims),
        "another user": ("authenticated", cloud.account().claims),
        "her anonymous twin": ("authenticated", alice.claims | {"is_anonymous": True}),
        "nobody": ("authenticated", {"role": "authenticated"}),
        "the anon key": ("anon", {"role": "anon"}),
        "the anon key with her name": ("anon", alice.claims | {"role": "anon"}),
    }


@pytest.mark.parametrize("lax", [False, True], ids=["our policies", "a project that lets everybody do everything"])
def test_only_the_user_receives_on_their_topic_and_no_user_sends(cloud: Cloud, alice: Account, lax: bool) -> None:
    with cloud.admin.transaction(force_rollback=True):
        if lax:
            cloud.admin.execute("create policy lax on realtime.messages for all using (true) with check (true)")
        people, topic = matrix(cloud, alice), topic_of(alice)
        assert {name for name, who in people.items() if may_receive(cloud, *who, topic)} == {"herself"}
        assert {name for name, who in people.items() if may_send(cloud, *who, topic)} == set()
        role, claims = people["herself"]
        assert may_receive(cloud, role, claims, topic_of(alice), "presence") is lax
        for other in ("room:1", "ai-memory:x"):
            assert may_receive(cloud, role, claims, other) is lax, "other topics are the project's own business"
            assert may_send(cloud, role, claims, other) is lax


def test_the_project_s_users_cannot_call_what_makes_the_policies(cloud: Cloud, alice: Account) -> None:
    for function in ("allow_realtime", "poke"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            alice.rows(f"select ai_memory_private.{function}()")


# --- sooner or later ----------------------------------------------------------------------------------------


def run_as_postgres(cloud: Cloud, statement: str) -> object:
    with cloud.admin.transaction():
        cloud.admin.execute("set local session authorization postgres")
        done = cloud.admin.execute(statement.encode())
        answer = done.fetchone() if done.description else None
        cloud.admin.execute("reset session authorization")
        return answer


def policies(cloud: Cloud) -> list[str]:
    found = cloud.admin.execute("select policyname from pg_policies where tablename = 'messages' order by 1").fetchall()
    return [row[0] for row in found]


OURS = ["ai_memory_nobody_sends", "ai_memory_not_anon", "ai_memory_only_own", "ai_memory_receive"]


def undone(cloud: Cloud) -> None:
    cloud.admin.execute("drop trigger ai_memory_heads_poke on public.ai_memory_heads")
    cloud.admin.execute("drop function ai_memory_private.poke(), ai_memory_private.allow_realtime()")


def test_the_migration_runs_where_there_is_no_realtime_and_it_can_be_allowed_later(cloud: Cloud) -> None:
    with cloud.admin.transaction(force_rollback=True):
        undone(cloud)
        cloud.admin.execute("alter schema realtime rename to not_yet")
        run_as_postgres(cloud, Path(MIGRATION).read_text("utf-8"))
        answer = run_as_postgres(cloud, "select ai_memory_private.allow_realtime()")
        assert answer == ("this project has no Realtime; devices poll",)
        cloud.admin.execute("alter schema not_yet rename to realtime")
        for name in OURS:
            cloud.admin.execute(f"drop policy {name} on realtime.messages".encode())
        for _ in range(2):
            assert run_as_postgres(cloud, "select ai_memory_private.allow_realtime()") == (
                "devices hear of changes at once",
            )
            assert policies(cloud) == OURS


def test_a_role_that_may_make_no_policies_is_warned_and_devices_poll(cloud: Cloud, alice: Account) -> None:
    with cloud.admin.transaction(force_rollback=True):
        cloud.admin.execute("revoke supabase_realtime_admin from postgres")
        answer = run_as_postgres(cloud, "select ai_memory_private.allow_realtime()")
        assert answer == ("the policies could not be made; devices poll",)
    assert policies(cloud) == OURS


@pytest.mark.parametrize(
    "statement",
    [
        "alter table realtime.messages disable row level security",
        "alter table realtime.messages add column mine text",
        "create table realtime.mine (id int)",
        "comment on policy ai_memory_receive on realtime.messages is 'ours'",
    ],
)
def test_the_local_cloud_lets_postgres_do_no_more_than_make_policies(cloud: Cloud, statement: str) -> None:
    with cloud.admin.transaction(force_rollback=True), pytest.raises(psycopg.errors.InsufficientPrivilege):
        run_as_postgres(cloud, statement)
