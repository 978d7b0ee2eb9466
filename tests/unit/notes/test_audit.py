"""The audit of notes: events of other programs cannot stop it, and what it records fits into an event."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from sync.log.event_types import MEMORY_QUESTION_ASKED
from sync.log.model import MAX_EVENT_BYTES
from sync.notes.audit import Question, note_payload, question_of, question_to_payload
from sync.notes.model import Action, NoteFile
from sync.notes.note_format import parse_note
from tests.support import event
from tests.unit.notes.test_payloads import GOOD

QUESTION = Question(
    question_id="q-1",
    action=Action.NEW,
    asked_at="2026-11-25T10:00:00.000Z",
    note_id="",
    note_sha256="",
    new_note_id="MEM-1",
    layer="L1",
    payload=GOOD,
)


def test_a_question_comes_back_from_its_event() -> None:
    long = {**GOOD, "evidence": "[REDACTED]" * 300}
    for question in (QUESTION, replace(QUESTION, action=Action.DELETE, payload=None), replace(QUESTION, payload=long)):
        payload = json.loads(json.dumps(question_to_payload(question)))
        assert question_of(event(1, type=MEMORY_QUESTION_ASKED, payload=payload)) == question


@pytest.mark.parametrize(
    "change",
    [
        {"asked_at": "yesterday"},
        {"asked_at": "2026-11-25T10:00:00"},
        {"asked_at": 5},
        {"layer": "L9"},
        {"action": ["new"]},
        {"note_id": {}},
        {"payload": None},
        {"payload": "text"},
        {"payload": {"scene": 1}},
    ],
)
def test_an_event_that_holds_no_question_is_ignored(change: dict[str, Any]) -> None:
    payload = {**question_to_payload(QUESTION), **change}
    assert question_of(event(1, type=MEMORY_QUESTION_ASKED, payload=payload)) is None


@pytest.mark.parametrize("character", ["长", "\x01", "😀"])
def test_what_is_recorded_of_any_note_fits_into_an_event(character: str) -> None:
    note = parse_note(
        f"# {character * 24_000}\n\n## Meta\n\n- Status: {'s' * 70_000}\n\n## One-liner\n\n{character * 24_000}\n"
    )
    recorded = note_payload(NoteFile("MEM-1", "memory/notes/MEM-1.md", "0" * 64, note))
    assert len(json.dumps(recorded, ensure_ascii=False).encode()) < MAX_EVENT_BYTES - 4_096
