"""What the server must do besides saying no: one function each, on the rows of a scene, inside one transaction.

They are the second half of what a broken migration has to get past (see sql_mutants.py); tests of every corner of them
are in the other test_sql_*.py. Those of `RACES` need connections of their own and a database that may be thrown away.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from tests.integration.sql.connections import (
    WAIT_SECONDS,
    Account,
    Cloud,
    Json,
    as_role,
    become,
    call,
    document,
    event,
    eventually,
    refusal,
)
from tests.integration.sql.permissions.fixture_rows import LOST, SHARED, Person, rolled_back
from tests.integration.sql.permissions.matrix import Catalogue
from tests.integration.sql.permissions.stage import Stage, refused

T = TypeVar("T")

KEY: Final = f"ed25519:{'K' * 42}A="


# --- numbering and idempotency ------------------------------------------------------------------------------


def numbers_go_on_without_a_gap(stage: Stage) -> None:
    assert [seq for _, seq in stage.push(6, 7)["acked"]] == [6, 7]
    answer = stage.push(8)
    assert (answer["acked"][0][1], answer["head"]) == (8, 8)


def a_known_event_keeps_its_number(stage: Stage) -> None:
    known = [stage.stored_event(n) for n in (1, 4, 4)]  # one of them folded
    answer = stage.alice.sync(known, **stage.laptop(stage.scene.alice))
    assert ([seq for _, seq in answer["acked"]], answer["head"]) == ([1, 4], 5)


def a_known_event_is_known_under_another_number_and_without_its_payload(stage: Stage) -> None:
    for number in (1, 4):
        changes: list[Json] = [{"replica_id": "rep-new", "replica_seq": 60 + number}, {"payload": {}}]
        for change in changes:
            answer = stage.alice.sync([stage.stored_event(number, **change)], **stage.laptop(stage.scene.alice))
            assert answer["acked"] == [[stage.scene.alice.event_id(number), number]]


def an_id_that_another_event_holds_is_refused(stage: Stage) -> None:
    others: list[Json] = [{"hlc": "0193a5b2c3d4-0001"}, {"type": "message"}, {"payload": {"text": "another"}}]
    for number in (1, 4):
        for other in others:
            _refused_as_taken(stage, [stage.stored_event(number, **other)])
        theirs = stage.stored_event(number, device_id=SHARED, replica_id=f"rep-{SHARED}")
        _refused_as_taken(stage, [theirs], device=SHARED, replica=f"rep-{SHARED}")
    _refused_as_taken(stage, [stage.event(6), stage.event(6, payload={"text": "another"})])
    assert stage.push()["head"] == 5


def an_erased_event_is_known_to_its_author_alone(stage: Stage) -> None:
    alice = stage.scene.alice
    ids = [alice.event_id(n) for n in (1, 4)]
    stage.alice.call("ai_memory_forget", p_device_id=alice.laptop, p_event_ids=Jsonb(ids))
    for number in (1, 4):
        stored = stage.stored_event(number)
        assert stage.alice.sync([stored], **stage.laptop(alice))["acked"] == [[stored["event_id"], number]]
        _refused_as_taken(stage, [stored | {"hlc": "0193a5b2c3d4-0001"}])


def _refused_as_taken(stage: Stage, events: list[Json], **by: Any) -> None:
    fields: set[str | None] = set()
    try:
        stage.alice.sync(events, **(by or stage.laptop(stage.scene.alice)))
    except psycopg.Error as error:
        fields.add(refusal(error)[1].get("field"))
    assert fields == {"event_id_taken"}


def an_id_is_known_to_its_own_account_alone(stage: Stage) -> None:
    for number, seq in ((1, 6), (4, 7)):  # folded, and a row, of alice
        sent = event(number + 50, event_id=stage.scene.alice.event_id(number), device_id=SHARED, replica_id="rep-x")
        for _ in range(2):
            answer = stage.bob.sync([sent], device=SHARED, replica=f"rep-{SHARED}", limit=0)
            assert answer["acked"] == [[sent["event_id"], seq]]


def a_number_of_a_replica_is_taken_once(stage: Stage) -> None:
    for number in (1, 4):
        forked = stage.alice.sync([stage.event(number, event_id="evt_other")], **stage.laptop(stage.scene.alice))
        assert (forked.get("error"), forked["acked"]) == ("device_forked", [])


def a_page_holds_the_callers_events_in_order(stage: Stage) -> None:
    for limit, seqs in ((500, [1, 2, 3, 4, 5]), (3, [1, 2, 3])):
        events = stage.push(limit=limit)["events"]
        assert [e["seq"] for e in events] == seqs
        assert {e["payload"]["text"] for e in events} == {stage.scene.alice.word}


def a_cursor_that_does_not_fit_is_reset(stage: Stage) -> None:
    epoch = stage.push()["epoch"]
    fits = {"after": 4, "after_event": stage.scene.alice.event_id(4), "epoch": epoch}
    assert stage.push(**fits)["reset"] is False
    misfits: list[Json] = [{"after_event": "evt_x"}, {"epoch": "another"}, {"after": 6}, {"epoch": None}]
    for wrong in (*misfits, {"after_ts": "2026-01-01T00:00:00.000Z"}):
        assert stage.push(**(fits | wrong))["reset"] is True, wrong


# --- what may come in ---------------------------------------------------------------------------------------


def an_event_that_breaks_a_rule_is_refused(stage: Stage) -> None:
    faults: list[Json] = [
        {"reach": "local"},
        {"device_id": SHARED},
        {"hlc": "x"},
        {"payload": []},
        {"payload": {"text": "x" * 65536}},
    ]
    for fault in faults:
        bad = stage.event(6, **fault)
        refused("bad_event", lambda bad=bad: stage.alice.sync([bad], **stage.laptop(stage.scene.alice)))  # type: ignore[misc]
    refused("batch_too_large", lambda: stage.push(*range(6, 507)))


def sizes_hold_where_the_functions_are_passed_by(stage: Stage) -> None:
    write = "update public.ai_memory set content = repeat('x', 1048577)"
    refused("23514", lambda: stage.alice.rows(write + " where device_id = %s", stage.scene.alice.laptop))
    blow = "update public.ai_memory_events set payload = jsonb_build_object('t', repeat('x', 65536)) where user_id = %s"
    with stage.admin.transaction():
        refused("23514", lambda: _inner(stage, blow, stage.scene.alice.user_id))


def _inner(stage: Stage, statement: str, *parameters: Any) -> None:
    with stage.admin.transaction():
        stage.do(statement, *parameters)


def text_that_nobody_has_read_is_not_written_over(stage: Stage) -> None:
    alice = stage.scene.alice
    stage.alice.rows("update public.ai_memory set content = '# foreign' where device_id = %s", alice.laptop)
    for through in (1, 99):
        assert stage.push(snapshot=document("# mine\n", through))["snapshot"] == "foreign"
    seen = document("# foreign", 0)["content_sha256"]
    assert stage.push(snapshot=document("# mine\n", 100, base_sha256=seen))["snapshot"] == "written"
    assert stage.push(snapshot=document("# older\n", 50))["snapshot"] == "kept"
    assert stage.push(snapshot=document("# as old\n", 100))["snapshot"] == "stale"
    base = document("# mine\n", 100)["content_sha256"]
    assert stage.push(snapshot=document("# forgotten\n", 100, base_sha256=base))["snapshot"] == "written"
    assert "snapshot" not in stage.push()


def a_document_keeps_its_device(stage: Stage) -> None:
    move = "update public.ai_memory set device_id = 'elsewhere' where device_id = %s"
    refused("identity_fixed", lambda: stage.alice.rows(move, SHARED))


def a_document_is_not_given_away_even_without_its_trigger(stage: Stage) -> None:
    """Without a WHERE: what an UPDATE reads must be readable afterwards as well, and that would hide the policy."""
    bob = stage.scene.bob.user_id
    stage.do("alter table public.ai_memory disable trigger ai_memory_tend_document")
    stage.do("grant update (user_id) on public.ai_memory to authenticated")
    stage.do("delete from public.ai_memory where user_id = %s", bob)  # nothing but the policy is in the way
    stage.do("insert into public.ai_memory_devices (user_id, device_id) values (%s, %s)", bob, stage.scene.alice.laptop)
    refused("42501", lambda: stage.alice.rows("update public.ai_memory set user_id = %s", bob))


# --- limits -----------------------------------------------------------------------------------------


def _limit(stage: Stage, name: str, value: int) -> None:
    stage.as_admin("ai_memory_admin_set_limit", p_name=name, p_value=value)


def a_day_has_limits_of_events_bytes_and_erasures(stage: Stage) -> None:
    alice = stage.scene.alice
    for name, value in (("events_a_day", 7), ("bytes_a_day", 3500)):
        with rolled_back(stage.admin):
            _limit(stage, "history_events", 0)
            _limit(stage, name, value)
            stage.push(6)
            refused("PT429", lambda: stage.push(7, 8, 9, 10, 11, 12, 13))
    _limit(stage, "erasures_a_day", 3)
    ids = [alice.event_id(n) for n in range(1, 6)]
    stage.alice.call("ai_memory_forget", p_device_id=alice.laptop, p_event_ids=Jsonb(ids[:2]))
    wish = stage.event(6, type="payload_forgotten", payload={"event_ids": ids[2:4]})
    refused("PT429", lambda: stage.alice.sync([wish], **stage.laptop(alice)))
    stage.push(7)  # what erases nothing goes on
    assert _texts(stage)[2:5] == [alice.word] * 3


def history_is_free_up_to_its_own_limits(stage: Stage) -> None:
    """Events of the fixture are from years before their device's registration."""
    _limit(stage, "events_a_day", 1)
    today = f"{stage.value('select extract(epoch from now())::bigint') * 1000:012x}-0000"
    with rolled_back(stage.admin):
        stage.push(6, 7, 8)
        stage.alice.sync([stage.event(9, hlc=today), stage.event(10)], **stage.laptop(stage.scene.alice))
        beyond = [stage.event(11, hlc=today), stage.event(12)]
        refused("PT429", lambda: stage.alice.sync(beyond, **stage.laptop(stage.scene.alice)))
    for name, value in (("history_events", 7), ("history_bytes", 4000)):
        with rolled_back(stage.admin):
            _limit(stage, name, value)
            stage.push(6, 7)
            refused("PT429", lambda: stage.push(8, 9, 10))


def a_call_erases_a_bounded_number_of_events(stage: Stage) -> None:
    many = [f"evt_{n}" for n in range(2001)]
    device = stage.scene.alice.laptop
    for ids, kind in ((many, "too_many_erasures"), ({"a": 1}, "bad_request"), (None, "bad_request")):
        refused(kind, lambda i=ids: stage.alice.call("ai_memory_forget", p_device_id=device, p_event_ids=Jsonb(i)))  # type: ignore[misc]
    wish = stage.event(6, type="payload_forgotten", payload={"event_ids": many})
    refused("too_many_erasures", lambda: stage.alice.sync([wish], **stage.laptop(stage.scene.alice)))


def an_account_has_a_bounded_number_of_devices_and_documents(stage: Stage) -> None:
    insert = "insert into public.ai_memory (device_id, content) values (%s, '# x')"
    for name in ("devices", "devices_a_day"):
        with rolled_back(stage.admin):
            _limit(stage, name, 6)
            stage.alice.register("sixth", "rep-6")
            refused("quota", lambda: stage.alice.register("seventh", "rep-7"))
            refused("quota", lambda: stage.alice.rows(insert, "eighth"))
            stage.alice.register("sixth", "rep-6")  # one that is known
    _limit(stage, "documents", 3)
    refused("quota", lambda: stage.alice.rows(insert, "old"))
    stage.alice.rows("update public.ai_memory set content = '# more' where device_id = %s", stage.scene.alice.laptop)


def deep_json_is_refused(stage: Stage) -> None:
    deep: Any = "word"
    for _ in range(120):
        deep = [deep]
    bad = stage.event(6, payload={"a": deep})
    refused("bad_event", lambda: stage.alice.sync([bad], **stage.laptop(stage.scene.alice)))


def a_document_has_a_possible_time(stage: Stage) -> None:
    update = "update public.ai_memory set updated_at = %s where device_id = %s"
    for time in ("infinity", "-infinity", "294000-01-01"):
        refused("bad_request", lambda t=time: stage.alice.rows(update, t, stage.scene.alice.laptop))  # type: ignore[misc]
    of = "select updated_at between now() - interval '1 minute' and now() + interval '1 minute' from public.ai_memory"
    for time in ("2099-01-01", "0001-01-01"):
        stage.alice.rows(update, time, stage.scene.alice.laptop)
        assert stage.value(f"{of} where device_id = %s", stage.scene.alice.laptop), time


def a_device_is_not_behind_by_what_it_holds(stage: Stage) -> None:
    alice = stage.scene.alice
    place = {"after": 5, "after_event": alice.event_id(5), "epoch": stage.push(limit=0)["epoch"]}
    behind = "select behind from public.ai_memory_admin_devices where user_id = %s and device_id = %s"
    for own in ((), (6, 7)):
        stage.push(*own, **place)
        assert stage.value(behind, alice.user_id, alice.laptop) == 0


# --- devices ------------------------------------------------------------------------------------------------


def a_device_of_another_account_is_unknown(stage: Stage) -> None:
    theirs = {"p_device_id": stage.scene.alice.laptop}
    refused("device_unregistered", lambda: stage.bob.sync(**stage.laptop(stage.scene.alice)))
    for function, more in (
        ("ai_memory_rename_device", {"p_name": "x"}),
        ("ai_memory_revoke_device", {}),
        ("ai_memory_forget", {"p_event_ids": Jsonb([])}),
        ("ai_memory_report", {"p_codes": Jsonb({})}),
    ):
        refused("device_unregistered", lambda f=function, m=more: stage.bob.call(f, **theirs, **m))  # type: ignore[misc]


def a_live_replica_keeps_its_device(stage: Stage) -> None:
    device = {"p_device_id": stage.scene.alice.laptop, "p_replica_id": "rep-clone"}
    assert stage.alice.sync(device=device["p_device_id"], replica="rep-clone").get("error") == "device_conflict"
    for takeover in (None, "rep-guess"):
        answer = stage.alice.call("ai_memory_register_device", **device, p_takeover=takeover)
        assert answer.get("error") == "device_conflict"
    mine = f"rep-{stage.scene.alice.laptop}"
    assert "error" not in stage.alice.call("ai_memory_register_device", **device, p_takeover=mine)


def in_session(account: Account, session: str) -> Account:
    return Account(account.connection, account.user_id, {**account.claims, "session_id": session})


def proof(letter: str) -> str:
    """A secret that a device shows."""
    return letter * 64


def a_takeover_needs_the_proof(stage: Stage) -> None:
    mine, thief = in_session(stage.alice, "s-mine"), in_session(stage.alice, "s-thief")
    mine.register("proved", "rep-1", p_public_key=KEY, p_proof=proof("a"))
    thief.register("thief", "rep-t", p_public_key=KEY.replace("K", "T"), p_proof=proof("b"))
    for shown in ({}, {"p_proof": proof("b")}):
        assert thief.register("proved", "rep-2", p_takeover="rep-1", **shown).get("error") == "device_conflict"
    assert thief.sync(device="proved", replica="rep-1").get("error") == "device_conflict"
    assert "error" not in mine.sync(device="proved", replica="rep-1")
    told = in_session(stage.alice, "s-new").register("proved", "rep-2", p_proof=proof("a"))
    assert (told.get("error"), told["proven"], told["replica_id"]) == ("device_conflict", True, "rep-1")
    assert "error" not in mine.register("proved", "rep-2", p_takeover="rep-1", p_proof=proof("a"))
    refused("22023", lambda: mine.register("proved", "rep-2", p_proof="short"))


def a_document_of_a_device_with_a_key_is_written_by_its_session(stage: Stage) -> None:
    mine, thief = in_session(stage.alice, "s-mine"), in_session(stage.alice, "s-thief")
    mine.register("proved", "rep-1", p_public_key=KEY, p_proof=proof("a"))
    thief.register("thief", "rep-t", p_public_key=KEY.replace("K", "T"), p_proof=proof("b"))
    insert = "insert into public.ai_memory (device_id, content) values ('proved', %s)"
    update = "update public.ai_memory set content = %s where device_id = 'proved'"
    upsert = f"{insert} on conflict (user_id, device_id) do update set content = excluded.content"
    for other in (thief, stage.alice):
        refused("42501", lambda o=other: o.rows(insert, "# planted"))  # type: ignore[misc]
    mine.rows(insert, "# mine")
    stage.do("update public.ai_memory_devices set last_seen_at = now() - interval '2 days' where device_id = 'proved'")
    assert "error" not in thief.register("proved", "rep-2")  # a device that is silent may be taken, its text may not
    for statement in (update, upsert):
        for other in (thief, stage.alice):
            refused("42501", lambda o=other, s=statement: o.rows(s, "# planted"))  # type: ignore[misc]
        mine.rows(statement, "# mine again")
    stage.bob.rows(insert, "# without a key there")


def a_silent_device_is_taken_without_a_proof_by_its_own_machine_first(stage: Stage) -> None:
    mine, thief = in_session(stage.alice, "s-mine"), in_session(stage.alice, "s-thief")
    mine.register("proved", "rep-1", p_proof=proof("a"))
    thief.register("thief", "rep-t", p_public_key=KEY, p_proof=proof("b"))
    silent = "update public.ai_memory_devices set last_seen_at = now() - interval '1 hour' where device_id = 'proved'"
    stage.do(silent)
    assert thief.register("proved", "rep-2").get("error") == "device_conflict"
    assert "error" not in in_session(stage.alice, "s-new").register("proved", "rep-2", p_proof=proof("c"))


def revoking_a_device_ends_its_sessions(stage: Stage) -> None:
    alice = stage.scene.alice
    sessions = [str(uuid4()) for _ in range(2)]
    for session in sessions:
        stage.do("insert into auth.sessions (id, user_id) values (%s, %s)", session, alice.user_id)
    lost, kept = (in_session(stage.alice, session) for session in sessions)
    kept.register("kept", "rep-k", p_public_key=KEY.replace("K", "M"))
    lost.register("stolen", "rep-s", p_public_key=KEY)
    lost.register("another", "rep-a", p_public_key=KEY.replace("K", "N"))  # the session stays that of the first
    told = kept.call("ai_memory_revoke", p_device_id="stolen")
    assert told == {"known": 1, "ended": 1, "error": None}
    left = "select array_agg(id::text) from auth.sessions where id::text = any (%s)"
    assert stage.value(left, sessions) == sessions[1:]
    for attempt in (
        lambda: lost.register("another", "rep-a"),
        lambda: lost.register("one more", "rep-m"),
        lambda: lost.sync(device="another", replica="rep-a"),
        lambda: lost.call("ai_memory_list_devices"),
    ):
        refused("device_revoked", attempt)
    assert lost.rows("select 1 from public.ai_memory_heads") == []
    assert kept.rows("select 1 from public.ai_memory_heads") == [(1,)]


def a_key_belongs_to_one_device_and_dies_with_it(stage: Stage) -> None:
    stage.alice.register("keyed", "rep-keyed", p_public_key=KEY)
    refused("key_in_use", lambda: stage.alice.register("second", "rep-2", p_public_key=KEY))
    stage.alice.call("ai_memory_revoke_device", p_device_id="keyed")
    refused("key_revoked", lambda: stage.alice.register("second", "rep-2", p_public_key=KEY))
    refused("22023", lambda: stage.alice.register("second", "rep-2", p_public_key="no key"))


def a_revoked_device_stays_revoked(stage: Stage) -> None:
    refused("device_revoked", lambda: stage.alice.register(LOST, f"rep-{LOST}"))
    date = "select revoked_at from public.ai_memory_devices where user_id = %s and device_id = %s"
    lost = (stage.scene.alice.user_id, LOST)
    revoked = stage.value(date, *lost)
    stage.alice.call("ai_memory_revoke_device", p_device_id=LOST)
    assert revoked == stage.value(date, *lost)


# --- forgetting, folding, erasing ---------------------------------------------------------------------------


def what_is_forgotten_is_gone_from_rows_and_checkpoints(stage: Stage) -> None:
    alice = stage.scene.alice
    ids = [alice.event_id(n) for n in (1, 4)]
    stage.alice.call("ai_memory_forget", p_device_id=alice.laptop, p_event_ids=Jsonb(ids))
    assert _texts(stage) == [None, alice.word, alice.word, None, alice.word]
    wish = stage.event(6, type="payload_forgotten", payload={"event_ids": [alice.event_id(n) for n in (2, 5)]})
    stage.alice.sync([wish], **stage.laptop(alice))
    assert _texts(stage)[:5] == [None, None, alice.word, None, None]


def nobody_forgets_what_is_anothers(stage: Stage) -> None:
    ids = [stage.scene.alice.event_id(n) for n in range(1, 6)]
    wish = event(60, type="payload_forgotten", payload={"event_ids": ids}, device_id=SHARED, replica_id="rep-x")
    stage.bob.sync([wish], device=SHARED, replica=f"rep-{SHARED}")
    stage.bob.call("ai_memory_forget", p_device_id=SHARED, p_event_ids=Jsonb(ids))
    assert _texts(stage) == [stage.scene.alice.word] * 5


def _texts(stage: Stage) -> list[str | None]:
    return [pulled["payload"].get("text") for pulled in stage.push()["events"]]


def the_floor_waits_for_the_slowest_device(stage: Stage) -> None:
    user = stage.scene.alice.user_id
    slow = "update public.ai_memory_devices set cursor_seq = 3 where user_id = %s and device_id = %s"
    stage.do(slow, user, SHARED)
    told = stage.as_admin("ai_memory_admin_checkpoint", p_user=user)
    assert (told["floor"], told["held_by"]) == (3, SHARED)
    stage.as_admin("ai_memory_admin_prune", p_user=user)
    assert stage.value("select min(seq) from public.ai_memory_events where user_id = %s", user) == 4


def only_what_a_checkpoint_holds_is_pruned(stage: Stage) -> None:
    user = stage.scene.alice.user_id
    stage.do("delete from public.ai_memory_checkpoints where user_id = %s", user)
    assert stage.as_admin("ai_memory_admin_prune", p_user=user) == 0


def an_erased_user_is_gone_and_stays_gone(stage: Stage) -> None:
    alice = stage.scene.alice
    for _ in range(3):
        told = stage.as_admin("ai_memory_admin_purge", p_user=alice.user_id)
    assert told["done"]
    for table in ("ai_memory", "ai_memory_events", "ai_memory_checkpoints", "ai_memory_heads", "ai_memory_activity"):
        assert stage.value(f"select count(*) from public.{table} where user_id = %s", alice.user_id) == 0
    refused("device_revoked", lambda: stage.push(9))
    assert stage.value("select count(*) from public.ai_memory_events where user_id = %s", stage.scene.bob.user_id) == 4


def a_deleted_account_takes_everything_along(stage: Stage) -> None:
    user = stage.scene.alice.user_id
    stage.do("delete from auth.users where id = %s", user)
    tables = dict.fromkeys(("", "_events", "_heads", "_devices", "_checkpoints", "_activity"), "user_id")
    for table, owner in (tables | {"_legacy": "claimed_by"}).items():
        assert stage.value(f"select count(*) from public.ai_memory{table} where {owner} = %s", user) == 0, table


# --- rows of the original app -------------------------------------------------------------------------------


def an_unconfirmed_number_names_nobody(stage: Stage) -> None:
    stage.do("update auth.users set phone = '8613812345678' where id = %s", stage.scene.bob.user_id)
    stage.do("update public.ai_memory_legacy set user_id = '13812345678' where legacy_id = %s", stage.scene.stray)
    assert stage.as_admin("ai_memory_admin_match_legacy") == 0


def a_claim_writes_over_nothing(stage: Stage) -> None:
    alice = stage.scene.alice
    stage.do("update public.ai_memory_legacy set device_id = %s where legacy_id = %s", alice.laptop, stage.scene.stray)
    told = stage.as_admin("ai_memory_admin_claim_legacy", p_legacy_id=stage.scene.stray, p_user=alice.user_id)
    assert told == {"moved": False, "kept_because": "device_has_document"}
    assert alice.word in stage.value(
        "select string_agg(content, '') from public.ai_memory where device_id = %s", alice.laptop
    )


# --- pokes --------------------------------------------------------------------------------------------------


def a_topic_is_heard_by_its_user_alone_and_nobody_sends(stage: Stage) -> None:
    """Also if another policy of the project allows everything on all broadcasts."""
    stage.do("create policy somebodys on realtime.messages for all using (true) with check (true)")
    alice, bob, guest = stage.scene.people
    stage.do("delete from realtime.messages")
    stage.push(6)  # pokes
    assert [_received_messages(stage, "authenticated", person.claims(), alice) for person in (alice, bob)] == [
        True,
        False,
    ]
    assert not _received_messages(stage, "anon", {"role": "anon"}, alice)
    assert not _received_messages(stage, "authenticated", guest.claims(is_anonymous=True), guest)
    for role, claims in (("authenticated", alice.claims()), ("anon", None)):
        refused("42501", lambda role=role, claims=claims: _can_send(stage, role, claims))  # type: ignore[misc]


def _received_messages(stage: Stage, role: str, claims: Json | None, person: Person) -> bool:
    with as_role(stage.admin, role, claims) as cursor:
        cursor.execute("select set_config('realtime.topic', %s, true)", [f"ai_memory:{person.user_id}"])
        cursor.execute("select count(*) from realtime.messages where topic = realtime.topic()")
        return bool(cursor.fetchall()[0][0])


def _can_send(stage: Stage, role: str, claims: Json | None) -> None:
    topic = f"ai_memory:{stage.scene.alice.user_id}"
    with as_role(stage.admin, role, claims) as cursor:
        cursor.execute("select set_config('realtime.topic', %s, true)", [topic])
        cursor.execute("insert into realtime.messages (topic, extension) values (%s, 'broadcast')", [topic])


# --- how it is made -----------------------------------------------------------------------------------------


def every_table_has_row_level_security_and_every_function_a_fixed_search_path(stage: Stage) -> None:
    ours = "(relnamespace = 'ai_memory_private'::regnamespace or starts_with(relname, 'ai_memory'))"
    assert (
        stage.value(
            f"select array_agg(relname) from pg_class where relkind in ('r', 'p') and {ours} and not relrowsecurity"
        )
        is None
    )
    loose = """
        select array_agg(proname) from pg_proc
        where (pronamespace = 'ai_memory_private'::regnamespace
            or (pronamespace = 'public'::regnamespace and starts_with(proname, 'ai_memory')))
        -- a procedure that commits may have no settings; it runs with the rights of its caller, the owner
        and not (
            proname = 'ai_memory_schema_version' or (prokind = 'p' and not prosecdef)
            or coalesce('search_path=""' = any (proconfig), false)
        )
    """
    assert stage.value(loose) is None


def nobody_gets_into_the_private_schema(stage: Stage) -> None:
    """Neither into the schema nor, if usage was granted, at anything in it."""
    roles = "unnest(array['public', 'anon', 'authenticated', 'service_role']) as role"
    schema = "has_schema_privilege(role, 'ai_memory_private', 'usage')"
    assert stage.value(f"select array_agg(role) from {roles} where {schema}") is None
    inside = """
        select array_agg(name || ' ' || privilege_type || ' ' || grantee::regrole) from (
            select relname as name, (aclexplode(coalesce(relacl, acldefault('r', relowner)))).*
            from pg_class where relnamespace = 'ai_memory_private'::regnamespace and relkind in ('r', 'p', 'v', 'm')
            union all
            select proname, (aclexplode(coalesce(proacl, acldefault('f', proowner)))).*
            from pg_proc where pronamespace = 'ai_memory_private'::regnamespace
        ) as granted
        where grantee = 0 or grantee::regrole::text in ('anon', 'authenticated', 'service_role')
    """
    assert stage.value(inside) is None


def nobody_has_a_sequence_and_views_run_as_their_caller(stage: Stage) -> None:
    sequences = """
        select array_agg(relname || ' ' || role)
        from pg_class, unnest(array['anon', 'authenticated', 'service_role']) as role
        where relkind = 'S' and starts_with(relname, 'ai_memory')
            and (has_sequence_privilege(role, oid, 'usage') or has_sequence_privilege(role, oid, 'update')
                or has_sequence_privilege(role, oid, 'select'))
    """
    assert stage.value(sequences) is None
    views = """
        select array_agg(relname) from pg_class where relkind = 'v' and relnamespace = 'public'::regnamespace
            and starts_with(relname, 'ai_memory') and current_setting('server_version_num')::integer >= 150000
            and not coalesce(reloptions && array['security_invoker=on', 'security_invoker=true'], false)
    """
    assert stage.value(views) is None


def no_view_shows_what_people_wrote(stage: Stage) -> None:
    with stage.admin.cursor() as cursor:
        become(cursor, "none", None)
        catalogue = Catalogue.read(cursor)
        for view in (*catalogue.views, *catalogue.writable):
            cursor.execute(sql.SQL("select t::text from public.{} as t").format(sql.Identifier(view)))
            assert not [row for row in cursor.fetchall() if stage.scene.alice.word in row[0]], view


BEHAVIOURS: Final[tuple[Callable[[Stage], None], ...]] = (
    numbers_go_on_without_a_gap,
    a_known_event_keeps_its_number,
    a_known_event_is_known_under_another_number_and_without_its_payload,
    an_id_that_another_event_holds_is_refused,
    an_erased_event_is_known_to_its_author_alone,
    an_id_is_known_to_its_own_account_alone,
    a_number_of_a_replica_is_taken_once,
    a_page_holds_the_callers_events_in_order,
    a_cursor_that_does_not_fit_is_reset,
    an_event_that_breaks_a_rule_is_refused,
    sizes_hold_where_the_functions_are_passed_by,
    text_that_nobody_has_read_is_not_written_over,
    a_document_keeps_its_device,
    a_document_is_not_given_away_even_without_its_trigger,
    a_device_of_another_account_is_unknown,
    a_live_replica_keeps_its_device,
    a_day_has_limits_of_events_bytes_and_erasures,
    history_is_free_up_to_its_own_limits,
    a_call_erases_a_bounded_number_of_events,
    an_account_has_a_bounded_number_of_devices_and_documents,
    deep_json_is_refused,
    a_document_has_a_possible_time,
    a_device_is_not_behind_by_what_it_holds,
    nobody_has_a_sequence_and_views_run_as_their_caller,
    a_takeover_needs_the_proof,
    a_document_of_a_device_with_a_key_is_written_by_its_session,
    a_silent_device_is_taken_without_a_proof_by_its_own_machine_first,
    revoking_a_device_ends_its_sessions,
    a_key_belongs_to_one_device_and_dies_with_it,
    a_revoked_device_stays_revoked,
    what_is_forgotten_is_gone_from_rows_and_checkpoints,
    nobody_forgets_what_is_anothers,
    the_floor_waits_for_the_slowest_device,
    only_what_a_checkpoint_holds_is_pruned,
    an_erased_user_is_gone_and_stays_gone,
    a_deleted_account_takes_everything_along,
    an_unconfirmed_number_names_nobody,
    a_claim_writes_over_nothing,
    a_topic_is_heard_by_its_user_alone_and_nobody_sends,
    every_table_has_row_level_security_and_every_function_a_fixed_search_path,
    nobody_gets_into_the_private_schema,
    no_view_shows_what_people_wrote,
)


# --- races: committed, on a database that is thrown away ----------------------------------------------------


def two_writers_get_two_numbers(cloud: Cloud) -> None:
    first, second = _two_connections(cloud)
    with ThreadPoolExecutor(1) as pool:
        with first.connection.transaction():
            assert first.sync([event(1)], limit=0)["acked"][0][1] == 1
            sent = [event(1, replica="r2", device_id="d2")]
            waiting = _run_once_blocked(cloud, second, pool.submit(second.sync, sent, device="d2", replica="r2"))
        assert waiting.result(WAIT_SECONDS)["acked"][0][1] == 2


def a_key_does_not_slip_past_its_revoking(cloud: Cloud) -> None:
    first, second = _two_connections(cloud)
    first.register(p_public_key=KEY)
    with ThreadPoolExecutor(1) as pool:
        with first.connection.transaction():
            first.call("ai_memory_revoke_device", p_device_id="d1")
            waiting = _run_once_blocked(cloud, second, pool.submit(second.register, "d3", "r3", p_public_key=KEY))
        refused("key_revoked", lambda: waiting.result(WAIT_SECONDS))


def a_device_too_many_does_not_slip_past_the_count(cloud: Cloud) -> None:
    """One that a client inserts with its document, beside one that registers."""
    first, second = _two_connections(cloud)
    set_limit = "update public.ai_memory_limits set value = %s where name = 'devices'"
    cloud.admin.execute(set_limit, [3])
    try:
        with ThreadPoolExecutor(1) as pool:
            with first.connection.transaction():
                first.rows("insert into public.ai_memory (device_id, content) values ('d3', '# x')")
                waiting = _run_once_blocked(cloud, second, pool.submit(second.register, "d4", "r4"))
            refused("quota", lambda: waiting.result(WAIT_SECONDS))
    finally:
        cloud.admin.execute(set_limit, [100])


def what_is_being_folded_is_forgotten_all_the_same(cloud: Cloud) -> None:
    first, second = _two_connections(cloud)
    ids = [first.sync([event(n)])["acked"][0][0] for n in (1, 2)]
    cloud.admin.execute("update public.ai_memory_devices set cursor_seq = 2 where user_id = %s", [first.user_id])
    with ThreadPoolExecutor(1) as pool:
        with as_role(cloud.connect(), "service_role", {"role": "service_role"}) as cursor:
            assert call(cursor, "ai_memory_admin_checkpoint", p_user=first.user_id)["folded"] == len(ids)
            forget = pool.submit(second.call, "ai_memory_forget", p_device_id="d2", p_event_ids=Jsonb(ids))
            waiting = _run_once_blocked(cloud, second, forget)
        waiting.result(WAIT_SECONDS)
    assert [pulled["payload"] for pulled in first.sync()["events"]] == [{}, {}]


def _run_once_blocked(cloud: Cloud, account: Account, work: Future[T]) -> Future[T]:
    """Once it waits for the other transaction, or has not waited at all."""
    eventually(lambda: work.done() or cloud.is_blocked(account), "somebody waits")
    return work


def _two_connections(cloud: Cloud) -> tuple[Account, Account]:
    """One person over two connections, with a device each."""
    first = cloud.account()
    second = cloud.again(first)
    first.register()
    second.register("d2", "r2")
    return first, second


RACES: Final[tuple[Callable[[Cloud], None], ...]] = (
    two_writers_get_two_numbers,
    a_key_does_not_slip_past_its_revoking,
    a_device_too_many_does_not_slip_past_the_count,
    what_is_being_folded_is_forgotten_all_the_same,
)
