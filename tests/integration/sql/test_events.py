"""What an event may be, what comes back of it, and how much goes into one call."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.cloud.fixtures import Cloud as LocalCloud
from tests.integration.sql.connections import Account, Cloud, Json, Reader, event, open_cloud, refusal

ASTRAL = "\U00020bb7"  # a character outside the basic plane


@pytest.fixture
def cloud(local_cloud: LocalCloud) -> Iterator[Cloud]:
    with open_cloud(local_cloud.database_url) as opened:
        yield opened


@pytest.fixture
def user(cloud: Cloud) -> Account:
    account = cloud.account()
    account.register()
    return account


# --- there and back -----------------------------------------------------------------------------------------


def test_an_event_comes_back_value_for_value(user: Account) -> None:
    payload = {
        "text": f"我的生日是 3 月 5 日 \t\n\u2028 {ASTRAL} \\u0000 \"'",
        "": {"深": [[[{"null": None, "yes": True, "no": False}]], [], {}]},
        "integers": [0, -1, 2**53 + 1, 2**80, -(2**64)],
        "floats": [0.1, -2.5, 1e-7, 3.141592653589793, 1.0],
    }
    unknown = {"importance": 0.75, "future": {"a": [1, {"b": None}]}, "note": None}
    sent = event(1, payload=payload, session_id="s" * 256, ts="2026-02-02 10:00 +8 (as typed)") | unknown
    answer = user.sync([sent])
    (back,) = answer["events"]
    assert {key: back[key] for key in sent} == sent
    assert set(back) - set(sent) == {"seq", "server_ts"}
    assert back["payload"]["integers"] == payload["integers"]


def test_a_float_with_an_exponent_keeps_its_value_though_not_its_spelling(user: Account) -> None:
    (back,) = user.sync([event(1, payload={"n": 1.5e300})])["events"]
    assert float(back["payload"]["n"]) == 1.5e300


def test_missing_envelope_fields_come_back_as_null_and_the_replica_of_the_call(user: Account) -> None:
    least = {
        key: value
        for key, value in event(1).items()
        if key in {"schema_version", "event_id", "ts", "type", "payload", "replica_seq", "hlc", "origin"}
    }
    (back,) = user.sync([least])["events"]
    assert (back["device_id"], back["replica_id"], back["reach"]) == ("d1", "r1", "cloud")
    absent = ["project_id", "project_path", "session_id", "local_date", "utc_offset"]
    assert [back[key] for key in absent] == [None] * 5


def test_the_server_alone_says_owner_number_and_time(cloud: Cloud, user: Account) -> None:
    other = cloud.account()
    lies: Json = {"user_id": other.user_id, "seq": 99, "server_ts": "2099-01-01T00:00:00.000Z", "forgotten_at": "x"}
    answer = user.sync([event(1) | lies])
    (back,) = answer["events"]
    assert back["seq"] == 1
    assert "user_id" not in back
    assert "forgotten_at" not in back
    age = datetime.now(UTC) - datetime.fromisoformat(back["server_ts"])
    assert abs(age.total_seconds()) < 60
    assert len(back["server_ts"]) == len("2026-11-21T20:00:22.790Z")
    owner = cloud.value("select user_id::text from public.ai_memory_events where event_id = %s", back["event_id"])
    assert owner == user.user_id


def test_a_forgotten_event_is_blank_keeps_its_number_and_stays_blank(user: Account) -> None:
    kept, secret = event(1), event(2, payload={"summary": "秘密"}, hint="秘密")
    user.sync([kept, secret])
    ids = Jsonb([secret["event_id"], "evt_unknown"])
    assert user.call("ai_memory_forget", p_device_id="d1", p_event_ids=ids) == 1
    assert user.call("ai_memory_forget", p_device_id="d1", p_event_ids=ids) == 0
    first, second = user.sync([secret])["events"]
    assert first["payload"] == kept["payload"]
    assert (second["seq"], second["payload"], "hint" in second) == (2, {}, False)
    assert second["forgotten_at"].endswith("Z")


# --- refusals that name the event ---------------------------------------------------------------------------

BAD_FIELDS: list[tuple[str, Any]] = [
    ("event_id", ""),
    ("event_id", 7),
    ("event_id", "e" * 129),
    ("replica_id", ""),
    ("replica_id", ["r1"]),
    ("replica_seq", 0),
    ("replica_seq", -1),
    ("replica_seq", 1.5),
    ("replica_seq", "1"),
    ("replica_seq", 10**18),
    ("replica_seq", None),
    ("device_id", "another"),
    ("schema_version", "1"),
    ("schema_version", None),
    ("schema_version", 10**9),
    ("project_id", 5),
    ("project_path", "p" * 4097),
    ("session_id", {}),
    ("ts", None),
    ("ts", "t" * 65),
    ("type", None),
    ("type", ""),
    ("payload", None),
    ("payload", []),
    ("payload", "text"),
    ("hlc", "0193a5b2c3d4_0000"),
    ("hlc", "0193A5B2C3D4-0000"),
    ("hlc", None),
    ("origin", None),
    ("reach", "local"),
    ("local_date", "2026-13-01"),
    ("local_date", "2026-1-1"),
    ("utc_offset", 1441),
    ("utc_offset", 1.5),
    ("utc_offset", "480"),
]


@pytest.mark.parametrize(("name", "value"), BAD_FIELDS)
def test_a_bad_event_is_refused_by_name_and_nothing_is_stored(user: Account, name: str, value: Any) -> None:
    bad = event(2) | {name: value}
    with pytest.raises(psycopg.Error) as caught:
        user.sync([event(1), bad, event(3)])
    state, detail = refusal(caught.value)
    assert (state, detail["kind"], detail["field"]) == ("22023", "bad_event", name)
    assert detail.get("event_id") == (str(bad["event_id"])[:128])
    assert caught.value.diag.message_hint
    assert user.sync()["head"] == 0


@pytest.mark.parametrize("element", [None, 5, "evt", [1]])
def test_an_event_that_is_no_object_is_refused(user: Account, element: Any) -> None:
    with pytest.raises(psycopg.Error) as caught:
        user.sync([element])
    assert refusal(caught.value) == ("22023", {"kind": "bad_event", "field": "event"})


def test_two_events_under_one_number_in_a_batch_are_refused(user: Account) -> None:
    first, second = event(1), event(1)
    with pytest.raises(psycopg.Error) as caught:
        user.sync([first, second])
    state, detail = refusal(caught.value)
    assert (state, detail["field"]) == ("22023", "replica_seq")
    assert detail["event_id"] in {first["event_id"], second["event_id"]}


def test_an_event_over_64_kib_is_refused_by_name_and_one_of_60_kib_passes(user: Account) -> None:
    fits = event(1, payload={"text": "x" * 60 * 1024})
    assert user.sync([fits])["head"] == 1
    large = event(2, payload={"text": "x" * 64 * 1024})
    with pytest.raises(psycopg.Error) as caught:
        user.sync([large])
    detail = {"kind": "bad_event", "field": "size", "event_id": large["event_id"]}
    assert refusal(caught.value) == ("22023", detail)


def test_a_nul_escape_in_a_json_string_is_refused_for_good(user: Account) -> None:
    batch = json.dumps([event(1, payload={"text": "a\0b"})])
    with pytest.raises(psycopg.errors.UntranslatableCharacter):
        user.call("ai_memory_sync", p_device_id="d1", p_replica_id="r1", p_events=Jsonb(batch))


@pytest.mark.parametrize("events", [{"event_id": "x"}, 5])
def test_events_that_are_no_array_are_refused(user: Account, events: Any) -> None:
    with pytest.raises(psycopg.Error) as caught:
        user.call("ai_memory_sync", p_device_id="d1", p_replica_id="r1", p_events=Jsonb(events))
    assert refusal(caught.value) == ("22023", {"kind": "bad_request"})


@pytest.mark.parametrize("replica", [None, "", "r" * 129])
def test_a_call_without_a_proper_replica_is_refused(user: Account, replica: Any) -> None:
    for function in ("ai_memory_sync", "ai_memory_register_device"):
        with pytest.raises(psycopg.Error) as caught:
            user.call(function, p_device_id="d1", p_replica_id=replica)
        assert refusal(caught.value) == ("22023", {"kind": "bad_request", "field": "p_replica_id"})


# --- how much at once ---------------------------------------------------------------------------------------


def test_500_events_go_in_one_call_and_501_do_not(user: Account) -> None:
    batch = [event(n) for n in range(1, 502)]
    with pytest.raises(psycopg.Error) as caught:
        user.sync(batch)
    assert refusal(caught.value) == ("22023", {"kind": "batch_too_large"})
    assert len(user.sync(batch[:500])["acked"]) == 500


def test_more_than_2_mib_do_not_go_in_one_call(user: Account) -> None:
    batch = [event(n, payload={"text": "x" * 60_000}) for n in range(1, 36)]
    with pytest.raises(psycopg.Error) as caught:
        user.sync(batch)
    assert refusal(caught.value) == ("22023", {"kind": "batch_too_large"})
    assert len(user.sync(batch[:34], limit=0)["acked"]) == 34


def test_a_page_is_cut_by_count_and_at_a_thousand(user: Account) -> None:
    for start in (0, 500, 1000):
        user.sync([event(start + n) for n in range(1, 501)], limit=0)
    sizes = [len(user.sync(limit=limit)["events"]) for limit in (-5, 0, 1, 7, None, 1000, 5000)]
    assert sizes == [0, 0, 1, 7, 500, 1000, 1000]


def test_a_page_is_cut_by_bytes_but_never_empty_and_nothing_is_skipped(user: Account) -> None:
    for start in range(0, 60, 30):
        user.sync([event(start + n, payload={"text": "x" * 60_000}) for n in range(1, 31)], limit=0)
    reader = Reader(user)
    sizes = []
    while reader.after < 60:
        answer = reader.pull(limit=1000)
        sizes.append(len(answer["events"]))
        assert answer["events"]
        assert len(json.dumps(answer)) < 1_048_576 + 65_536 + 1_000
    assert sizes == [18, 18, 18, 6]
