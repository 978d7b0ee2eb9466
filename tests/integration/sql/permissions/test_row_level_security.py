"""Rules of access that are more than one verb on one object; those are in test_sql_matrix.py, of everybody."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from sync.cloud.supabase import schema_version
from tests.cloud.fixtures import Cloud as LocalCloud
from tests.integration.sql.connections import Account, Cloud, Json, as_role, call, document, event, open_cloud, refusal

TABLES = ("ai_memory", "ai_memory_events", "ai_memory_heads", "ai_memory_devices")

CALLS: dict[str, Json] = {
    "ai_memory_sync": {"p_device_id": "d1", "p_replica_id": "r1"},
    "ai_memory_register_device": {"p_device_id": "d1", "p_replica_id": "r1"},
    "ai_memory_rename_device": {"p_device_id": "d1", "p_name": "mine now"},
    "ai_memory_revoke_device": {"p_device_id": "d1"},
    "ai_memory_list_devices": {},
    "ai_memory_forget": {"p_device_id": "d1", "p_event_ids": Jsonb([])},
}

KEY_OF_A = f"ed25519:{'A' * 43}="

UPSERT = """
    insert into public.ai_memory (device_id, content, updated_at) values (%s, %s, now())
    on conflict (user_id, device_id) do update set
        device_id = excluded.device_id, content = excluded.content, updated_at = excluded.updated_at
"""


@pytest.fixture
def cloud(local_cloud: LocalCloud) -> Iterator[Cloud]:
    with open_cloud(local_cloud.database_url) as opened:
        yield opened


@pytest.fixture
def alice(cloud: Cloud) -> Account:
    """Has a row in every table."""
    account = cloud.account()
    account.register(p_name="A's laptop", p_public_key=KEY_OF_A)
    account.sync([event(1, event_id=f"evt_of_{account.user_id}")], snapshot=document("# A's memory\n", 1))
    return account


@pytest.fixture
def bob(cloud: Cloud) -> Account:
    account = cloud.account()
    account.register()
    return account


def denied(account: Account, query: str, *parameters: Any) -> bool:
    try:
        account.rows(query, *parameters)
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def everything_of(cloud: Cloud, account: Account) -> list[tuple[Any, ...]]:
    queries = [f"select t::text from public.{table} as t where user_id = %s order by 1" for table in TABLES]
    return [row for query in queries for row in cloud.admin.execute(query.encode(), [account.user_id]).fetchall()]


# --- the owner and the other --------------------------------------------------------------------------------


def test_bob_reaches_nothing_of_alice_through_any_door(cloud: Cloud, alice: Account, bob: Account) -> None:
    before = everything_of(cloud, alice)
    assert len(before) == len(TABLES)
    answer = bob.sync([event(1, event_id=f"evt_of_{alice.user_id}")], snapshot=document("# B\n", 1))
    assert answer["acked"] == [[f"evt_of_{alice.user_id}", 1]]  # the same id is another event in another account
    assert [e["payload"] for e in answer["events"]] == [event(1)["payload"]]
    assert alice.user_id not in str({**answer, "acked": None, "events": None})
    bob.call("ai_memory_rename_device", p_device_id="d1", p_name="B's")
    bob.call("ai_memory_forget", p_device_id="d1", p_event_ids=Jsonb([f"evt_of_{alice.user_id}"]))
    bob.call("ai_memory_revoke_device", p_device_id="d1")
    bob.rows("update public.ai_memory set content = 'B' where user_id = %s", alice.user_id)
    bob.rows("update public.ai_memory set content = 'B'")
    assert everything_of(cloud, alice) == before


def test_a_device_of_another_user_is_unknown(alice: Account, bob: Account) -> None:
    alice.register("only-a", "r9")
    for function, arguments in CALLS.items():
        if function not in {"ai_memory_register_device", "ai_memory_list_devices"}:
            with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
                bob.call(function, **(arguments | {"p_device_id": "only-a"}))
            assert refusal(caught.value) == ("42501", {"kind": "device_unregistered"})


# --- no user -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", CALLS)
@pytest.mark.parametrize("claims", [None, {"role": "authenticated"}, {"sub": None}], ids=["none", "no sub", "null sub"])
def test_a_call_without_a_user_raises(cloud: Cloud, function: str, claims: Json | None) -> None:
    with (
        pytest.raises(psycopg.errors.InsufficientPrivilege) as caught,
        as_role(cloud.connect(), "authenticated", claims) as cursor,
    ):
        call(cursor, function, **CALLS[function])
    assert refusal(caught.value) == ("42501", {"kind": "not_signed_in"})


def test_an_anonymous_user_writes_and_calls_nothing(cloud: Cloud) -> None:
    guest = cloud.account(is_anonymous=True)
    assert denied(guest, "insert into public.ai_memory (device_id, content) values ('d1', '# guest')")
    for function, arguments in CALLS.items():
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
            guest.call(function, **arguments)
        assert refusal(caught.value) == ("42501", {"kind": "anonymous_user"})
    assert everything_of(cloud, guest) == []


# --- what even the owner may not -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "update public.ai_memory_events set payload = '{}'",
        "delete from public.ai_memory_events",
        "insert into public.ai_memory_events select * from public.ai_memory_events",
        "truncate public.ai_memory_events cascade",
        "update public.ai_memory_heads set seq = 0",
        "insert into public.ai_memory_heads (user_id) values (auth.uid())",
        "delete from public.ai_memory_heads",
        "update public.ai_memory_devices set revoked_at = null",
        "update public.ai_memory_devices set name = 'x'",
        "insert into public.ai_memory_devices (user_id, device_id) values (auth.uid(), 'd2')",
        "delete from public.ai_memory_devices",
        "delete from public.ai_memory",
        "update public.ai_memory set user_id = user_id",
        "update public.ai_memory set id = id",
        "update public.ai_memory set device_id = 'd2'",
        "update public.ai_memory set through_replica_seq = 9",
        "update public.ai_memory set replica_id = 'x'",
        "insert into public.ai_memory (device_id, content, user_id) values ('d2', 'x', auth.uid())",
        "select ai_memory_private.signed_in_user()",
        "select * from auth.users",
    ],
)
def test_the_owner_cannot(alice: Account, statement: str) -> None:
    alice.register("d2", "r2")
    assert denied(alice, statement)


def test_an_owner_cannot_be_named_in_a_body(cloud: Cloud, alice: Account, bob: Account) -> None:
    insert = "insert into public.ai_memory (device_id, content, user_id) values ('d1', 'x', %s)"
    assert denied(bob, insert, alice.user_id)
    assert denied(bob, "update public.ai_memory set user_id = %s", alice.user_id)


# --- the original app's own writing -------------------------------------------------------------------------


def test_the_original_app_upserts_its_document_without_registering(cloud: Cloud) -> None:
    app = cloud.account()
    app.rows(UPSERT, "hardware-1", "# first\n")
    app.rows(UPSERT, "hardware-1", "# second\n")
    found = app.rows("select content, user_id::text, replica_id, content_sha256 from public.ai_memory")
    assert found == [("# second\n", app.user_id, None, document("# second\n", 0)["content_sha256"])]
    assert app.rows("select device_id, replica_id from public.ai_memory_devices") == [("hardware-1", None)]
    assert "error" not in app.register("hardware-1", "r1")  # no device has registered it yet


def test_a_document_over_one_mib_is_refused(cloud: Cloud) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        cloud.account().rows(UPSERT, "d1", "x" * 1_048_577)


# --- devices ------------------------------------------------------------------------------------------------


def test_a_revoked_device_is_refused_at_every_door_for_ever(alice: Account) -> None:
    alice.register("d2", "r2")
    alice.call("ai_memory_revoke_device", p_device_id="d1")
    alice.call("ai_memory_revoke_device", p_device_id="d1")
    for function, arguments in CALLS.items():
        if function not in {"ai_memory_revoke_device", "ai_memory_list_devices"}:
            with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
                alice.call(function, **arguments)
            assert refusal(caught.value) == ("42501", {"kind": "device_revoked"})
    assert denied(alice, UPSERT, "d1", "# revoked\n")
    alice.register("d3", "r3")
    alice.call("ai_memory_revoke_device", p_device_id="d3")
    assert denied(alice, UPSERT, "d3", "# first row of a revoked device\n")
    alice.rows("update public.ai_memory set content = 'x'")  # finds no row it may change
    assert alice.rows("select content from public.ai_memory") == [("# A's memory\n",)]
    assert alice.sync(device="d2", replica="r2")["head"] == 1


def test_a_key_of_a_revoked_device_does_not_come_back(alice: Account, bob: Account) -> None:
    alice.call("ai_memory_revoke_device", p_device_id="d1")
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
        alice.register("d2", "r2", p_public_key=KEY_OF_A)
    assert refusal(caught.value) == ("42501", {"kind": "key_revoked"})
    assert "error" not in bob.register("d2", "r2", p_public_key=KEY_OF_A)  # another account's list says nothing


def test_registering_again_keeps_the_given_name_and_learns_the_rest(alice: Account) -> None:
    alice.call("ai_memory_rename_device", p_device_id="d1", p_name="书房")
    answer = alice.register(p_name="host.local", p_platform="linux", p_app_version="0.2.0")
    assert (answer["name"], answer["head"], answer["schema_version"]) == ("书房", 1, schema_version.REQUIRED_VERSION)
    query = "select name, platform, app_version, public_key from public.ai_memory_devices"
    assert alice.rows(query) == [("书房", "linux", "0.2.0", KEY_OF_A)]


def test_a_key_has_one_form_and_one_device_also_where_the_functions_are_passed_by(cloud: Cloud, alice: Account) -> None:
    alice.register("d2", "r2")
    for key, error in (("key", psycopg.errors.CheckViolation), (KEY_OF_A, psycopg.errors.UniqueViolation)):
        with pytest.raises(error):
            cloud.admin.execute(
                "update public.ai_memory_devices set public_key = %s where (user_id, device_id) = (%s, 'd2')",
                [key, alice.user_id],
            )


def test_the_list_of_devices_is_the_callers_own_and_shows_what_was_revoked(alice: Account, bob: Account) -> None:
    alice.register("d2", "r2", p_name="手机")
    alice.call("ai_memory_revoke_device", p_device_id="d2")
    found = {row["device_id"]: row for row in alice.call("ai_memory_list_devices")}
    assert {device: row["revoked_at"] is not None for device, row in found.items()} == {"d1": False, "d2": True}
    assert found["d1"]["public_key"] == KEY_OF_A
    assert "user_id" not in found["d1"]
    assert [row["device_id"] for row in bob.call("ai_memory_list_devices")] == ["d1"]
    assert bob.call("ai_memory_list_devices")[0]["public_key"] is None


def test_a_name_that_is_too_long_is_refused_by_its_field(alice: Account) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as caught:
        alice.call("ai_memory_rename_device", p_device_id="d1", p_name="长" * 201)
    assert refusal(caught.value) == ("22023", {"kind": "bad_request", "field": "p_name"})


def test_deleting_an_account_deletes_everything_and_later_calls_say_so(cloud: Cloud, alice: Account) -> None:
    cloud.admin.execute("delete from auth.users where id = %s", [alice.user_id])
    assert everything_of(cloud, alice) == []
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
        alice.register()
    assert refusal(caught.value) == ("42501", {"kind": "account_gone"})


def test_a_user_may_read_the_schema_version(alice: Account) -> None:
    assert alice.call("ai_memory_schema_version") == schema_version.REQUIRED_VERSION
