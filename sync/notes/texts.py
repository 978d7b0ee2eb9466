"""What notes tell a model or a user: the retrieval convention, the notes of a session, the cold-start hint. Pure."""

from collections.abc import Sequence
from typing import Final

from sync.context.budgets import SESSION_NOTE_CHARS
from sync.notes.model import ACTIVE, STRONG, NoteFile
from sync.notes.note_draft import pointer, reminder
from sync.redaction.prompt_fence import neutralise
from sync.texts.language import Language
from sync.texts.table import text

REMINDER_CHARS: Final = 200
COLD_START: Final = (
    "There are no notes yet. Begin with a few constraints or don'ts that matter most; later retrieval uses them."
)
CONVENTION: Final = (
    "Convention of the project's notes: before each answer, notes/retrieve (`xiaobai-memory notes retrieve MESSAGE`)"
    " can be asked once; without a match nothing is said of notes, with one at most two notes inform the answer."
    " Calls that write carry the conversation's id."
)
_ALWAYS: Final = frozenset({"always", "总是", "始终", "每次", "每次会话"})


def is_loaded_at_start(file: NoteFile) -> bool:
    """Whether a note is given at each session's start: active, and strong or marked to load always."""
    note = file.note
    marked = any(line.casefold().strip(" 。.") in _ALWAYS for line in note.when_to_load)
    return note.status == ACTIVE and (note.meta.get("Strength", "").casefold() in STRONG or marked)


def session_text(files: Sequence[NoteFile], base: str, fence: str, language: Language) -> tuple[str, list[NoteFile]]:
    """The convention and one line for each note marked to load that fits `SESSION_NOTE_CHARS`; the notes that fit.

    Nothing without notes.
    """
    if not files:
        return "", []
    loaded = [file for file in files if is_loaded_at_start(file)]
    lines, given = [text(CONVENTION, language)], list[NoteFile]()
    left = SESSION_NOTE_CHARS - len(lines[0])
    for file in loaded:
        reminded = f"{reminder(file.note, REMINDER_CHARS)} ({pointer(file, base)})"
        line = f"- {' '.join(neutralise(reminded, fence).split())}"
        if len(line) + 1 <= left:
            lines.append(line)
            given.append(file)
            left -= len(line) + 1
    return "\n".join(lines), given
