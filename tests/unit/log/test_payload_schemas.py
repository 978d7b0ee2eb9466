"""Payloads of known event types: known fields are checked by name, everything else is kept."""

from typing import Any

import pytest

from sync.errors import InvalidInput
from sync.log.event_catalogue import DEVICE_LOCAL_TYPES
from sync.log.ingest import DraftBuilder
from sync.log.payload_schemas import PAYLOAD_SCHEMAS
from sync.redaction import Redactor
from tests.support import REDACTOR

INTAKE = DraftBuilder(REDACTOR, store_messages=True)
GOOD: list[tuple[str, dict[str, Any]]] = [
    ("session_started", {"title": "重构"}),
    ("session_finalized", {"reason": "idle", "tags": ["api"]}),
    ("session_ended", {}),
    ("message", {"role": "user", "content": "你好"}),
    ("message", {"role": "assistant", "content": [{"type": "text", "text": "好的"}]}),
    ("tool_call", {"tool": "Shell", "details": {"command": "make test", "exit_code": 2}, "stage": "test"}),
    ("memory_fact", {"fact_type": "decision", "content": "用 FastAPI", "tags": ["api"]}),
    ("user_feedback", {"feedback_type": "rejection", "content": "不要这样"}),
]


@pytest.mark.parametrize(("kind", "payload"), GOOD)
def test_known_and_unknown_fields_of_a_payload_are_accepted(kind: str, payload: dict[str, Any]) -> None:
    said = {**payload, "of_tomorrow": {"a": [1, None]}, "role_of": "x"}
    assert INTAKE.build({"type": kind, "payload": said}).payload.value == said


@pytest.mark.parametrize("kind", sorted(PAYLOAD_SCHEMAS))
def test_every_field_may_be_missing_or_null(kind: str) -> None:
    nothing = dict.fromkeys(PAYLOAD_SCHEMAS[kind].__struct_fields__)
    for payload in ({}, {name: None for name in nothing if name != "content"}):
        assert INTAKE.build({"type": kind, "payload": payload}).payload.value == payload


@pytest.mark.parametrize(
    ("kind", "payload", "field"),
    [
        ("message", {"role": "robot"}, "payload.role"),
        ("message", {"role": 1}, "payload.role"),
        ("message", {"content": 5}, "payload.content"),
        ("tool_call", {"tool": ["Read"]}, "payload.tool"),
        ("tool_call", {"details": "ls"}, "payload.details"),
        ("tool_call", {"details": {"command": 3}}, "payload.details.command"),
        ("tool_call", {"details": {"exit_code": "1"}}, "payload.details.exit_code"),
        ("tool_call", {"stage": 1}, "payload.stage"),
        ("memory_fact", {"fact_type": "guess"}, "payload.fact_type"),
        ("memory_fact", {"content": {}}, "payload.content"),
        ("memory_fact", {"tags": "api"}, "payload.tags"),
        ("memory_fact", {"tags": ["api", 4]}, "payload.tags[1]"),
        ("user_feedback", {"feedback_type": "praise"}, "payload.feedback_type"),
        ("user_feedback", {"content": 1}, "payload.content"),
        ("session_started", {"tags": {}}, "payload.tags"),
        ("session_finalized", {"reason": 1}, "payload.reason"),
        ("session_meta", {"title": 1}, "payload.title"),
    ],
)
def test_a_wrong_known_field_is_refused_by_its_name(kind: str, payload: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        INTAKE.build({"type": kind, "payload": payload})
    assert caught.value.field == field
    assert field in caught.value.message


def test_the_hint_names_the_accepted_values() -> None:
    with pytest.raises(InvalidInput) as caught:
        INTAKE.build({"type": "user_feedback", "payload": {"feedback_type": "praise"}})
    assert all(word in caught.value.hint for word in ("correction", "approval", "rejection"))
    assert "praise" not in caught.value.message + caught.value.hint


def test_unknown_types_are_accepted_unchanged() -> None:
    payload = {"role": 7, "tags": "x"}
    assert INTAKE.build({"type": "of_tomorrow", "payload": payload}).payload.value == payload


def test_in_a_batch_the_index_is_named_too() -> None:
    with pytest.raises(InvalidInput) as caught:
        INTAKE.build_batch([{"type": "message"}, {"type": "message", "payload": {"role": "robot"}}])
    assert caught.value.field == "events[1].payload.role"


@pytest.mark.parametrize("kind", [*sorted(DEVICE_LOCAL_TYPES), "memory_fact", "message", "of_tomorrow"])
def test_with_redaction_off_only_device_local_payloads_are_unredacted(kind: str) -> None:
    raw = "打给 13812345678"
    intake = DraftBuilder(REDACTOR, store_messages=True, local_redactor=Redactor(enabled=False))
    draft = intake.build({"type": kind, "payload": {"content": raw}, "project_path": f"/{raw}", "more": raw})
    kept = raw if kind in DEVICE_LOCAL_TYPES else "打给 [手机号]"
    assert draft.extra is not None
    assert (draft.payload.value["content"], draft.project_path, draft.extra.value["more"]) == (kept, f"/{kept}", kept)
