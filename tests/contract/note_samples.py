"""Answers about notes with fixed values, for the golden JSON."""

from typing import Any, Final

from sync.contract import notes
from sync.notes.audit import Question
from sync.notes.model import Action, Layer, NoteFile, ScoreCard
from sync.notes.note_format import parse_note
from sync.notes.queries import NoteList, Retrieved, SessionNotes, SharedNotes
from sync.notes.ranking import RankedNote
from sync.notes.service import NoteOutcome, RememberResult

_BASE: Final = ".xiaobai"
_TEXT: Final = """\
# 选择数据库时：用 PostgreSQL

## Meta

- **Id**: MEM-1
- **Kind**: decision
- **Strength**: validated
- **Audience**: team
- **Supersedes**: MEM-0

## When to load

- 选择数据库时

## One-liner

在选择数据库中优先用 PostgreSQL。
"""
_NOTE: Final = NoteFile("MEM-1", "memory/notes/MEM-1.md", "0" * 64, parse_note(_TEXT))
_BARE: Final = NoteFile("部署", "memory/notes/share/部署.md", "1" * 64, parse_note("先备份。\n"))
_RANKED: Final = RankedNote(_NOTE, 0.87654321, 0.5, 0.9)
_ASKED: Final = "2026-11-25T10:00:00.000Z"
_QUESTION: Final = Question("q-1", Action.REPLACE, _ASKED, "MEM-1", "0" * 64, "MEM-2")
_REPLACEMENT: Final = NoteOutcome(
    "needsConfirmation",
    Action.REPLACE,
    "the same scene with another conclusion, and the user chose",
    "MEM-1",
    layer=Layer.BOTH,
    card=ScoreCard(2, 1, 2, 1, 2),
    is_estimated=True,
    question=_QUESTION,
    diff="--- before\n+++ after",
)
_WRITTEN: Final = NoteOutcome(
    "written", Action.NEW, "written", "MEM-1", _NOTE.file, Layer.WEAK_L1, ScoreCard(2, 1, 0, 1, 0)
)
_DELETION: Final = NoteOutcome(
    "needsConfirmation",
    Action.DELETE,
    note_id="MEM-1",
    question=Question("q-2", Action.DELETE, _ASKED, "MEM-1", "0" * 64, "MEM-3"),
    diff="-先备份。",
)
_HINT: Final = "还没有任何记忆。"


def note_samples() -> dict[str, list[Any]]:
    """What each function of `sync.contract.notes` answers, by its name."""
    found = Retrieved((_RANKED, RankedNote(_BARE, 0.2, 0.4, None)), _BASE, is_empty=False, covered=_RANKED)
    nothing = Retrieved((), _BASE, is_empty=True)
    listed = NoteList((_NOTE, _BARE), _BASE, ("MEM-1: its row was missing",))
    return {
        "notes.outcome_to_json": [notes.outcome_to_json(one) for one in (_WRITTEN, _REPLACEMENT, _DELETION)],
        "notes.question_to_json": [notes.question_to_json(_REPLACEMENT), notes.question_to_json(_DELETION)],
        "notes.remembered_to_json": [
            notes.remembered_to_json(RememberResult((_WRITTEN,), ("a notice",), is_empty=False), _HINT),
            notes.remembered_to_json(RememberResult((), (), is_empty=True), _HINT),
        ],
        "notes.note_to_json": [notes.note_to_json(_NOTE, _BASE), notes.note_to_json(_BARE, ".cursor/.lingxi")],
        "notes.note_list_to_json": [notes.note_list_to_json(listed), notes.note_list_to_json(listed, with_text=True)],
        "notes.reminder_to_json": [notes.reminder_to_json(_RANKED, _BASE)],
        "notes.retrieved_to_json": [notes.retrieved_to_json(found, _HINT), notes.retrieved_to_json(nothing, _HINT)],
        "notes.sniffed_to_json": [notes.sniffed_to_json(found), notes.sniffed_to_json(nothing)],
        "notes.shared_to_json": [
            notes.shared_to_json(SharedNotes(["MEM-1.md"], ["MEM-2.md"], {"MEM-3.md": "another text is there"}, 4)),
            notes.shared_to_json(SharedNotes()),
        ],
        "notes.session_to_json": [notes.session_to_json(SessionNotes("约定\n- 优先用 PostgreSQL。", (_NOTE,), _BASE))],
    }
