"""What administrators see and erase: counts and times, never content; for the service role alone."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from tests.cloud.fixtures import Cloud as LocalCloud
from tests.cloud.prerequisites import MIGRATIONS
from tests.integration.sql.connections import Account, Cloud, Json, as_role, call, document, event, open_cloud, refusal

VIEWS = [f"ai_memory_admin_{name}" for name in ("users", "devices", "activity", "growth", "stale", "quarantine")]
SECRET = "只有我知道的事"


@pytest.fixture
def cloud(local_cloud: LocalCloud) -> Iterator[Cloud]:
    with open_cloud(local_cloud.database_url) as opened:
        yield opened


@pytest.fixture
def user(cloud: Cloud) -> Account:
    """Two devices, five events, a document, all of them secret."""
    account = cloud.account()
    account.register(p_name="书房", p_public_key=f"ed25519:{b64encode(bytes(32)).decode()}")
    account.register("d2", "r2")
    account.sync([event(n, payload={"text": SECRET}) for n in range(1, 5)], snapshot=document(SECRET, 4))
    account.sync([event(1, replica="r2", device_id="d2", payload={"text": SECRET})], device="d2", replica="r2")
    return account


def seen(cloud: Cloud, view: str, user: Account | None = None) -> list[Json]:
    """A view as the API's service role reads it."""
    connection = cloud.connect()
    with as_role(connection, "service_role", {"role": "service_role"}):
        cursor = connection.cursor(row_factory=dict_row)
        where = " where user_id = %s" if user else ""
        return cursor.execute(f"select * from public.{view}{where}".encode(), [user.user_id] if user else []).fetchall()


def as_admin(cloud: Cloud, function: str, **arguments: Any) -> Any:
    with as_role(cloud.connect(), "service_role", {"role": "service_role"}) as cursor:
        return call(cursor, function, **arguments)


# --- views --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("role", ["anon", "authenticated"])
def test_only_the_service_role_reads_a_view(cloud: Cloud, user: Account, view: str, role: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), as_role(cloud.connect(), role, user.claims) as cursor:
        cursor.execute(f"select * from public.{view}".encode())


@pytest.mark.parametrize("view", VIEWS)
def test_a_grant_too_many_shows_no_other_users_rows(cloud: Cloud, user: Account, view: str) -> None:
    if cloud.admin.info.server_version < 150000:
        pytest.skip("views run as their owner before PostgreSQL 15")
    other = cloud.account()
    with cloud.admin.transaction(force_rollback=True):
        for name in (*VIEWS, "ai_memory_activity"):
            cloud.admin.execute(f"grant select on public.{name} to authenticated".encode())
        with as_role(cloud.admin, "authenticated", other.claims) as cursor:
            assert cursor.execute(f"select * from public.{view}".encode()).fetchall() == []


def test_no_view_holds_content(cloud: Cloud, user: Account) -> None:
    user.call("ai_memory_report", p_device_id="d1", p_codes=Jsonb({"22023": 1}))
    for view in VIEWS:
        rows = seen(cloud, view)
        assert rows or view.endswith("stale")
        assert SECRET not in str(rows)


def test_the_views_may_be_made_again(cloud: Cloud, user: Account) -> None:
    with cloud.admin.transaction():
        cloud.admin.execute("set local session authorization postgres")
        cloud.admin.execute((MIGRATIONS.parent / "admin" / "views.sql").read_bytes())
    assert seen(cloud, "ai_memory_admin_users", user)


def test_users_and_devices_say_who_syncs_and_how_far(cloud: Cloud, user: Account) -> None:
    (told,) = seen(cloud, "ai_memory_admin_users", user)
    assert (told["devices"], told["revoked"], told["events"], told["folded"]) == (2, 0, 5, 0)
    assert told["document_bytes"] == len(SECRET.encode())
    first, second = sorted(seen(cloud, "ai_memory_admin_devices", user), key=lambda row: str(row["device_id"]))
    own = 4  # events that it pushed while it was at the head: it holds them
    assert (first["name"], first["behind"], first["document_bytes"]) == ("书房", 5 - own, len(SECRET.encode()))
    assert (second["name"], second["behind"], second["document_bytes"]) == (None, 5, None)


def test_activity_is_counted_once_when_an_event_arrives_and_stays_when_it_is_folded(
    cloud: Cloud, user: Account
) -> None:
    fifth = event(5)
    for _ in range(2):  # the second time it is known
        user.sync([fifth])
    counted = {row["device_id"]: row["events"] for row in seen(cloud, "ai_memory_admin_activity", user)}
    assert counted == {"d1": 5, "d2": 1}
    stored = "select sum(bytes) from public.ai_memory_events where user_id = %s"
    held = sum(row["bytes"] for row in seen(cloud, "ai_memory_admin_activity", user))
    assert held == cloud.value(stored, user.user_id)
    cloud.admin.execute(
        b"update public.ai_memory_devices set last_seen_at = '2020-01-01' where user_id = %s", [user.user_id]
    )
    as_admin(cloud, "ai_memory_admin_checkpoint", p_user=user.user_id)
    as_admin(cloud, "ai_memory_admin_prune", p_user=user.user_id)
    assert {row["device_id"]: row["events"] for row in seen(cloud, "ai_memory_admin_activity", user)} == counted


def test_growth_adds_up(cloud: Cloud, user: Account) -> None:
    before = seen(cloud, "ai_memory_admin_growth")[-1]
    other = cloud.account()
    other.register()
    other.sync([event(1), event(2)])
    after = seen(cloud, "ai_memory_admin_growth")[-1]
    assert after["events"] - before["events"] >= 2
    assert after["new_users"] - before["new_users"] >= 1
    assert after["events_in_all"] >= after["events"]


def test_stale_names_only_the_silent_and_the_slow(cloud: Cloud, user: Account) -> None:
    assert seen(cloud, "ai_memory_admin_stale", user) == []
    silent = "update public.ai_memory_devices set last_seen_at = now() - interval '9 days' where user_id = %s"
    cloud.admin.execute((silent + " and device_id = 'd2'").encode(), [user.user_id])
    cloud.admin.execute(b"update public.ai_memory_heads set seq = 5000 where user_id = %s", [user.user_id])
    found = {row["device_id"]: (row["why"], row["silent_days"]) for row in seen(cloud, "ai_memory_admin_stale", user)}
    assert found == {"d1": ("behind", 0), "d2": ("silent", 9)}
    user.call("ai_memory_revoke_device", p_device_id="d2")
    assert [row["device_id"] for row in seen(cloud, "ai_memory_admin_stale", user)] == ["d1"]


# --- what devices say ---------------------------------------------------------------------------------------


def test_a_device_says_what_it_has_set_aside(cloud: Cloud, user: Account) -> None:
    user.call("ai_memory_report", p_device_id="d1", p_codes=Jsonb({"22023": 2, "413": 1}))
    told = {row["code"]: row["events"] for row in seen(cloud, "ai_memory_admin_quarantine", user)}
    assert told == {"22023": 2, "413": 1}
    assert seen(cloud, "ai_memory_admin_users", user)[0]["quarantined"] == 3
    user.call("ai_memory_report", p_device_id="d1", p_codes=Jsonb({}))
    assert seen(cloud, "ai_memory_admin_quarantine", user) == []


@pytest.mark.parametrize("codes", [[], "x", {"a b": 1}, {"22023": "1"}, {"22023": -1}, {"22023": 1.5}, {"x" * 33: 1}])
def test_a_report_is_counts_by_code_and_nothing_else(user: Account, codes: Any) -> None:
    with pytest.raises(psycopg.DataError) as caught:
        user.call("ai_memory_report", p_device_id="d1", p_codes=Jsonb(codes))
    assert caught.value.sqlstate in {"22023", "22P02"}


def test_a_report_is_the_devices_own(cloud: Cloud, user: Account) -> None:
    other = cloud.account()
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
        other.call("ai_memory_report", p_device_id="d1", p_codes=Jsonb({"22023": 1}))
    assert refusal(caught.value) == ("42501", {"kind": "device_unregistered"})
    assert seen(cloud, "ai_memory_admin_quarantine", user) == []


# --- erasing a user -----------------------------------------------------------------------------------------


def left_of(cloud: Cloud, user: Account) -> dict[str, int]:
    tables = ("ai_memory", "ai_memory_events", "ai_memory_heads", "ai_memory_checkpoints", "ai_memory_activity")
    count = "select count(*) from public.{} where user_id = %s"
    return {name: found for name in tables if (found := cloud.value(count.format(name), user.user_id))}


def purge(cloud: Cloud, user: Account, **more: Any) -> Json:
    told: Json = as_admin(cloud, "ai_memory_admin_purge", p_user=user.user_id, **more)
    return told


def test_a_purge_goes_in_steps_and_leaves_nothing_but_revoked_ids(cloud: Cloud, user: Account) -> None:
    cloud.admin.execute(
        b"update public.ai_memory_devices set last_seen_at = '2020-01-01' where user_id = %s", [user.user_id]
    )
    as_admin(cloud, "ai_memory_admin_checkpoint", p_user=user.user_id)
    first = purge(cloud, user, p_most=2)
    assert (first["events"], first["done"]) == (2, False)
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
        user.sync([event(9)])
    assert refusal(caught.value) == ("42501", {"kind": "device_revoked"})
    steps = [first]
    while not steps[-1]["done"]:
        steps.append(purge(cloud, user, p_most=2))
        assert len(steps) < 10
    assert (sum(s["events"] for s in steps), sum(s["folded"] for s in steps), steps[-1]["documents"]) == (5, 5, 1)
    assert left_of(cloud, user) == {}
    ids = user.rows("select device_id, name, public_key, revoked_at is null from public.ai_memory_devices order by 1")
    assert ids == [("d1", None, None, False), ("d2", None, None, False)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        user.register()  # the same device does not bring its copy back
    assert purge(cloud, user) == {"events": 0, "folded": 0, "documents": 0, "devices": 0, "done": True}


def test_a_purge_can_take_the_account_along(cloud: Cloud, user: Account) -> None:
    assert purge(cloud, user, p_account=True)["done"] is True
    assert left_of(cloud, user) == {}
    assert cloud.value("select count(*) from auth.users where id = %s", user.user_id) == 0
    assert cloud.value("select count(*) from public.ai_memory_devices where user_id = %s", user.user_id) == 0


def test_a_purge_touches_no_other_user(cloud: Cloud, user: Account) -> None:
    other = cloud.account()
    other.register()
    other.sync([event(1)], snapshot=document("# b\n", 1))
    before = left_of(cloud, other)
    purge(cloud, user, p_account=True)
    assert left_of(cloud, other) == before
    assert other.sync([event(2)])["head"] == 2


def test_erasing_is_the_administrators_alone(cloud: Cloud, user: Account) -> None:
    for role in ("anon", "authenticated"):
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege),
            as_role(cloud.connect(), role, user.claims) as cursor,
        ):
            call(cursor, "ai_memory_admin_purge", p_user=user.user_id)


# --- folding by itself --------------------------------------------------------------------------------------

# What pg_cron has, as far as it is called.
PG_CRON = """
    create schema cron;
    grant usage on schema cron to postgres;
    create table cron.job (jobid bigserial, jobname text unique, schedule text, command text, username text);
    grant all on cron.job, cron.job_jobid_seq to postgres;
    create function cron.schedule(job_name text, schedule text, command text) returns bigint language sql as $$
        insert into cron.job (jobname, schedule, command, username) values ($1, $2, $3, current_user)
        on conflict (jobname) do update set schedule = excluded.schedule, command = excluded.command returning jobid $$;
    create function cron.unschedule(job_id bigint) returns boolean language sql as $$
        with gone as (delete from cron.job where jobid = $1 returning 1) select count(*) = 1 from gone $$;
"""


def test_without_pg_cron_the_answer_says_what_to_do(cloud: Cloud) -> None:
    assert "xiaobai-memory admin checkpoint" in as_admin(cloud, "ai_memory_admin_schedule_folding")


def test_with_pg_cron_one_command_folds_every_night_and_one_ends_it(cloud: Cloud) -> None:
    cloud.admin.execute(PG_CRON.encode())
    try:
        as_admin(cloud, "ai_memory_admin_schedule_folding")
        as_admin(cloud, "ai_memory_admin_schedule_folding", p_schedule="0 4 * * *", p_days=60)
        assert cloud.admin.execute("select schedule, command, username from cron.job").fetchall() == [
            ("0 4 * * *", "call ai_memory_private.fold(60)", "postgres")
        ]
        as_admin(cloud, "ai_memory_admin_schedule_folding", p_schedule=None)
        assert cloud.value("select count(*) from cron.job") == 0
    finally:
        cloud.admin.execute("drop schema cron cascade")


def test_what_the_timer_calls_folds_and_prunes_whoever_has_many_events(cloud: Cloud) -> None:
    busy, quiet = cloud.account(), cloud.account()
    for account, count in ((busy, 501), (quiet, 3)):
        account.register()
        for start in range(0, count, 500):
            answer = account.sync([event(n) for n in range(start + 1, min(start + 500, count) + 1)])
        last = answer["acked"][-1]
        account.sync(after=last[1], after_event=last[0], epoch=answer["epoch"])
    owner = cloud.connect()
    owner.execute("set session authorization postgres")
    owner.execute("call ai_memory_private.fold(30)")
    rows = "select count(*) from public.ai_memory_events where user_id = %s"
    assert [cloud.value(rows, account.user_id) for account in (busy, quiet)] == [0, 3]
    assert len(busy.sync(limit=1000)["events"]) == 501


def test_the_owner_says_how_often_devices_poll(cloud: Cloud) -> None:
    account = cloud.account()
    account.register()
    assert account.sync()["poll_seconds"] is None
    as_admin(cloud, "ai_memory_admin_set_limit", p_name="poll_seconds", p_value=120)
    try:
        assert account.sync()["poll_seconds"] == 120
    finally:
        as_admin(cloud, "ai_memory_admin_set_limit", p_name="poll_seconds", p_value=0)
