"""Events of other programs are checked, redacted and limited, and refused as a whole if one is wrong."""

import json
from hashlib import sha256
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from sync.clock import UTC_CLOCK, Clock, SystemClock, utc_offset_minutes
from sync.errors import InvalidInput, TooLarge
from sync.log.envelope import to_wire
from sync.log.ingest import MAX_BATCH_EVENTS, SUMMARY_LENGTH, DraftBuilder
from sync.log.model import GLOBAL_PROJECT, MAX_EVENT_BYTES, EventDraft, Origin, project_id_for
from sync.log.retractions import redacted_payload
from tests.support import REDACTOR, START, FixedClock, event

INTAKE = DraftBuilder(REDACTOR)
WHOLE = DraftBuilder(REDACTOR, store_messages=True)
WORDS = "这是谁也不该在错误里看到的一句话"
SERVER_BYTES = 65_536
BERLIN: Final = ZoneInfo("Europe/Berlin")


def as_postgresql_writes_it(draft: EventDraft) -> int:
    """Return the size of the event on the server, with the fields of the replica at their longest."""
    full = replace(
        event(2**31, replica="r" * 40, device="d" * 128),
        type=draft.type,
        payload=draft.payload.value,
        event_id=draft.event_id or "evt_" + "x" * 36,
        project_id=draft.project_id,
        project_path=draft.project_path,
        session_id=draft.session_id or "s" * 64,
        ts=draft.ts or "2026-02-02T10:00:00.000Z",
        extra=draft.extra.value if draft.extra else {},
        utc_offset=utc_offset_minutes(START),
    )
    return len(json.dumps(to_wire(full), ensure_ascii=False, separators=(", ", ": ")).encode())


def test_a_folder_named_after_a_secret_is_redacted_and_its_project_stays_the_same() -> None:
    path = "/home/我/备份 13812345678/项目"
    found = INTAKE.build({"type": "x", "project_path": path})
    assert found.project_path == "/home/我/备份 [手机号]/项目"
    assert found.project_id == project_id_for(path)


def test_an_event_needs_only_a_type() -> None:
    draft = INTAKE.build({"type": "session_started"})
    assert (draft.type, draft.payload.value, draft.project_id) == ("session_started", {}, GLOBAL_PROJECT)
    assert (draft.event_id, draft.ts, draft.session_id, draft.origin) == (None, None, None, Origin.TOOL)


def test_the_example_event_of_the_seed_is_accepted_unchanged() -> None:
    given = {
        "schema_version": 1,
        "event_id": "evt_20260202_000001",
        "project_id": "proj_abcd1234",
        "project_path": "/abs/path/to/project",
        "session_id": "sess_20260202_001",
        "ts": "2026-02-02T10:00:00.000Z",
        "type": "session_started",
        "payload": {},
    }
    draft = INTAKE.build(given)
    assert {name: getattr(draft, name) for name in given if name not in {"schema_version", "payload"}} == {
        name: value for name, value in given.items() if name not in {"schema_version", "payload"}
    }


def test_a_project_without_an_id_is_named_after_its_path() -> None:
    assert INTAKE.build({"type": "x", "project_path": "/家/项目"}).project_id == project_id_for("/家/项目")


def test_unknown_fields_are_kept_with_messages_and_reserved_fields_are_ignored() -> None:
    ours = {"device_id": "liar", "replica_id": "liar", "replica_seq": 1, "hlc": "x", "seq": 9, "server_ts": "x"}
    draft = WHOLE.build({"type": "x", "future": {"a": [1, None, 2**62]}, "_private": "y", **ours, "reach": "local"})
    assert draft.extra is not None
    assert draft.extra.value == {"future": {"a": [1, None, 2**62]}, "_private": "y"}


def day_of(clock: Clock = UTC_CLOCK, **given: Any) -> tuple[str | None, int | None]:
    draft = DraftBuilder(REDACTOR, clock=clock).build({"type": "x", **given})
    return draft.local_date, draft.utc_offset


def test_an_event_with_a_time_has_the_local_day_that_it_names() -> None:
    given: dict[str, Any] = {"ts": "2026-02-02T20:00:00.000Z", "local_date": "2026-02-03", "utc_offset": 480}
    assert day_of(**given) == ("2026-02-03", 480)
    assert day_of(**{**given, "ts": None}) == (None, None), "it is of the day on which it is recorded"


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"local_date": "2026-02-30", "utc_offset": 0},
        {"local_date": "20260203", "utc_offset": 0},
        {"local_date": 7, "utc_offset": 0},
        {"local_date": "2026-02-05"},
        {"local_date": "2026-02-05", "utc_offset": 1441},
        {"local_date": "2026-02-05", "utc_offset": True},
    ],
)
def test_an_invalid_local_day_is_replaced_by_that_of_the_users_zone(named: dict[str, Any]) -> None:
    assert day_of(FixedClock(), ts="2026-01-31T20:00:00Z", **named) == ("2026-02-01", 480)
    assert day_of(SystemClock(BERLIN), ts="2025-07-31T22:30:00Z", **named) == ("2025-08-01", 120)
    assert day_of(SystemClock(BERLIN), ts="2025-12-31T22:30:00Z", **named) == ("2025-12-31", 60)
    assert day_of(FixedClock(), ts="9999-12-31T23:59:59Z", **named) == (None, None)


@pytest.mark.parametrize("length", [1, 128])
def test_foreign_ids_have_at_most_128_characters(length: int) -> None:
    assert INTAKE.build({"type": "x", "event_id": "字" * length}).event_id == "字" * length


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({}, "type"),
        ({"type": ""}, "type"),
        ({"type": "x" * 129}, "type"),
        ({"type": "a\nb"}, "type"),
        ({"type": 5}, "type"),
        ({"type": None}, "type"),
        ({"payload": [WORDS]}, "payload"),
        ({"payload": WORDS}, "payload"),
        ({"payload": None}, "payload"),
        ({"payload": {"a": float("nan")}}, "a"),
        ({"payload": {"a": "half \ud800 a pair"}}, "a"),
        ({"schema_version": 2}, "schema_version"),
        ({"schema_version": "1"}, "schema_version"),
        ({"schema_version": True}, "schema_version"),
        ({"event_id": "x" * 129}, "event_id"),
        ({"event_id": "a\u0000b"}, "event_id"),
        ({"event_id": "a\u202eb"}, "event_id"),
        ({"event_id": 7}, "event_id"),
        ({"project_id": "x" * 257}, "project_id"),
        ({"project_id": "a\tb"}, "project_id"),
        ({"project_path": "/" + "x" * 4096}, "project_path"),
        ({"project_path": "/a\u0000b"}, "project_path"),
        ({"session_id": "x" * 257}, "session_id"),
        ({"ts": "2026-02-02"}, "ts"),
        ({"ts": "2026-02-02T10:00:00"}, "ts"),
        ({"ts": "2026-13-02T10:00:00Z"}, "ts"),
        ({"ts": "2026-02-02\u000010:00:00Z"}, "ts"),
        ({"ts": "0001-01-01T00:00:00+08:00"}, "ts"),
        ({"ts": "9999-12-31T23:59:59-08:00"}, "ts"),
        ({"ts": "2026-02-02T10:00:00." + "0" * 60 + "Z"}, "ts"),
        ({"ts": 1_770_000_000}, "ts"),
        ({"ts": WORDS}, "ts"),
        ({"origin": WORDS}, "origin"),
        ({"origin": "assistant"}, "origin"),
    ],
)
def test_a_wrong_value_is_refused_under_the_name_of_its_field(wrong: dict[str, Any], field: str) -> None:
    given = {"type": "x", **wrong} if wrong else {}
    with pytest.raises(InvalidInput) as caught:
        INTAKE.build(given)
    assert caught.value.field == field
    assert WORDS not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("wrong", [None, [], "x", 5, [{"type": "x"}]])
def test_an_event_is_an_object(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        INTAKE.build(wrong)


TELLING = "sk-ant-" + "a1B2" * 8
RANDOM = "a4ayc_80_OGda4BO" + "_1o_V0etpOqiLx1JwB5S3beHW0s"  # a SHA-256 in base64url


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("event_id", "chat:13800138000"),
        ("session_id", "13800138000"),
        ("session_id", "zhang@example.com"),
        ("project_id", TELLING),
        ("type", TELLING),
    ],
)
def test_an_id_that_looks_like_a_secret_is_refused_by_its_field_and_not_repeated(field: str, value: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        INTAKE.build({"type": "x", field: value})
    assert caught.value.field == field
    assert "SHA-256" in caught.value.hint
    assert value not in caught.value.message + caught.value.hint
    assert getattr(INTAKE.build({"type": "x", field: value}, ids_are_known=True), field) == value


@pytest.mark.parametrize(
    "name",
    [
        "evt_20260202_000001",
        "6a1f0c2e-8d1b-4c59-9f5e-0b7f3f1d2a4c",
        "01J9ZQ3V7T8M5N2K4P6R8S0W2Y",
        "V1StGXR8_Z5jdHi6B-myT",
        sha256(b"x").hexdigest(),
        "1760000000000",
        "msg_4539578763621486",  # with the check digit of a card, by chance
        "会话-1",
        RANDOM,
        "g4HjWxtt9D9SwXe9NDIl1Pq08NCKnmjq",
    ],
)
def test_ids_as_programs_generate_them_are_accepted(name: str) -> None:
    draft = INTAKE.build({"type": "x", "event_id": name, "session_id": name, "project_id": name})
    assert (draft.event_id, draft.session_id, draft.project_id) == (name, name, name)
    assert INTAKE.with_safe_ids({"type": "x", "event_id": name, "session_id": name}) == {
        "type": "x",
        "event_id": name,
        "session_id": name,
    }


def test_an_event_of_another_installation_gets_the_digest_of_an_id_that_is_refused() -> None:
    given = {"type": "x", "event_id": "chat:13800138000", "session_id": "13800138000", "project_id": "proj_abcd1234"}
    renamed = INTAKE.with_safe_ids(given)
    draft = INTAKE.build(renamed)
    assert INTAKE.with_safe_ids(given) == INTAKE.with_safe_ids(renamed) == renamed
    assert (draft.event_id or "").startswith("evt_")
    assert (draft.session_id or "").startswith("sess_")
    assert draft.project_id == "proj_abcd1234"


def test_an_erasure_request_names_event_ids_unredacted() -> None:
    for wish in (INTAKE.build_erasure([RANDOM, "evt_1"]), INTAKE.build_expiry([RANDOM, "evt_1"])):
        assert wish.payload.value == {"event_ids": [RANDOM, "evt_1"]}


def test_redaction_of_a_retracting_event_keeps_its_event_ids() -> None:
    forgotten = event(1, type="payload_forgotten", payload={"event_ids": [RANDOM], "why": "13812345678"})
    redacted = event(2, type="payload_redacted", payload={"event_id": RANDOM, "payload": {"a": "13812345678"}})
    plain = event(3, type="x", payload={"event_id": RANDOM})
    assert redacted_payload(forgotten, REDACTOR).value == {"event_ids": [RANDOM], "why": "[手机号]"}
    assert redacted_payload(redacted, REDACTOR).value == {"event_id": RANDOM, "payload": {"a": "[手机号]"}}
    assert redacted_payload(plain, REDACTOR).value == {"event_id": "[密钥]"}


def test_an_event_of_up_to_60_kib_is_accepted() -> None:
    WHOLE.build({"type": "x", "payload": {"text": "x" * (MAX_EVENT_BYTES - 1000)}})
    with pytest.raises(TooLarge) as caught:
        WHOLE.build({"type": "x", "payload": {"text": "字" * (MAX_EVENT_BYTES // 3)}})
    assert caught.value.field == "payload"
    with pytest.raises(TooLarge):
        WHOLE.build({"type": "x", "unknown": "x" * MAX_EVENT_BYTES})


@pytest.mark.parametrize(
    "wanted",
    [
        {"payload": {"many": [1] * 29_000}},
        {"payload": {str(number): 1 for number in range(6_000)}},
        {"payload": {"text": "\n" * 30_000}},
        {"payload": {"text": "\u0001" * 10_000}},
        {"payload": {"text": "x" * 55_000}, "project_path": "/" + "长" * 4_000},
        {"payload": {"text": "x" * 60_000}, "unknown": "y" * 1_000},
    ],
    ids=["small elements", "small pairs", "newlines", "control characters", "long path", "unknown fields"],
)
def test_the_server_accepts_what_ingest_accepts(wanted: dict[str, Any]) -> None:
    try:
        draft = INTAKE.build({"type": "x", **wanted})
    except TooLarge:
        return
    assert as_postgresql_writes_it(draft) <= SERVER_BYTES


def test_a_batch_is_all_or_nothing_and_the_wrong_event_is_named() -> None:
    good = {"type": "x"}
    assert len(WHOLE.build_batch([good] * 3)) == 3
    with pytest.raises(InvalidInput) as caught:
        WHOLE.build_batch([good, {"type": "x", "ts": "never"}, good])
    assert caught.value.field == "events[1].ts"
    with pytest.raises(TooLarge) as large:
        WHOLE.build_batch([good, {"type": "x", "payload": {"text": "x" * MAX_EVENT_BYTES}}])
    assert large.value.field == "events[1].payload"


@pytest.mark.parametrize("wrong", [[], {}, None, "x", {"type": "x"}, [{"type": "x"}] * (MAX_BATCH_EVENTS + 1)])
def test_a_batch_is_an_array_of_one_to_a_thousand_events(wrong: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        INTAKE.build_batch(wrong)
    assert caught.value.field == "events"


def test_a_long_message_is_cut_unless_originals_are_stored() -> None:
    content = "这是一条很长的消息。" * 50
    given = {"type": "message", "payload": {"role": "user", "content": content, "more": 1}}
    kept = INTAKE.build(given).payload.value
    assert kept == {
        "role": "user",
        "content": content[:SUMMARY_LENGTH] + "...",
        "more": 1,
        "content_length": len(content),
    }
    whole = DraftBuilder(REDACTOR, store_messages=True).build(given).payload.value
    assert whole == given["payload"]
    short = {"type": "message", "payload": {"role": "assistant", "content": "好的"}}
    assert INTAKE.build(short).payload.value == short["payload"]


CANARY = "第三者的原话"
UNLISTED: Final[dict[str, dict[str, Any]]] = {
    "message": {"role": "user", "content": CANARY, "text": CANARY, "parts": [{"type": "text", "text": CANARY}]},
    "session_finalized": {"title": "题目", "messages": [{"role": "user", "content": CANARY}], "note": CANARY},
    "tool_call": {"tool": "Bash", "output": CANARY, "details": {"command": "ls", "stdout": CANARY, "exit_code": 0}},
    "memory_fact": {"content": "用 FastAPI", "context": CANARY},
}


@pytest.mark.parametrize("kind", sorted(UNLISTED))
def test_without_stored_messages_only_listed_fields_of_a_program_stay(kind: str) -> None:
    given = {"type": kind, "payload": UNLISTED[kind], "aside": CANARY, "version": "1.2"}
    draft = INTAKE.for_other_programs().build_appended(given)
    assert draft.extra is not None
    assert draft.extra.value == {"version": "1.2"}
    assert (
        draft.payload.value
        == {
            "message": {"content_length": len(CANARY), "role": "user"},
            "session_finalized": {"title": "题目"},
            "tool_call": {"tool": "Bash", "details": {"command": "ls", "exit_code": 0}},
            "memory_fact": {"content": "用 FastAPI"},
        }[kind]
    )
    assert WHOLE.build(given).payload.value == UNLISTED[kind]


def test_a_message_that_was_cut_before_stays_as_it_is() -> None:
    given = {"type": "message", "payload": {"role": "user", "content": "这是一条很长的消息。" * 50}}
    once = INTAKE.build(given).payload.value
    assert INTAKE.build({"type": "message", "payload": once}).payload.value == once


@pytest.mark.parametrize("length", [None, 7, True, "10000"])
@pytest.mark.parametrize("content", [WORDS * 20 + "...", "好" * 99 + "....."])
def test_a_long_message_that_claims_to_be_cut_is_cut(content: str, length: object) -> None:
    kept = INTAKE.build({"type": "message", "payload": {"content": content, "content_length": length}}).payload.value
    assert (kept["content"], kept["content_length"]) == (content[:SUMMARY_LENGTH] + "...", len(content))


@pytest.mark.parametrize("content", [[{"type": "text", "text": WORDS * 20}], {"text": WORDS * 20}])
def test_a_message_in_parts_is_cut_as_well(content: object) -> None:
    kept = INTAKE.build({"type": "message", "payload": {"role": "user", "content": content}}).payload.value
    assert WORDS * 8 not in json.dumps(kept, ensure_ascii=False)
    assert kept["content_length"] >= len(WORDS * 20)


def test_a_message_is_redacted_before_it_is_cut() -> None:
    key = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
    content = "字" * (SUMMARY_LENGTH - 10) + key + "字" * 100
    kept = INTAKE.build({"type": "message", "payload": {"content": content}}).payload.value["content"]
    assert key[:8] not in kept


def test_nul_is_removed_from_payloads() -> None:
    assert INTAKE.build({"type": "x", "payload": {"a\u0000": "b\u0000c"}}).payload.value == {"a": "bc"}


def test_secrets_in_unknown_fields_are_redacted_too() -> None:
    draft = WHOLE.build({"type": "x", "note": "我的手机号是13812345678"})
    assert draft.extra is not None
    assert "13812345678" not in json.dumps(draft.extra.value, ensure_ascii=False)
