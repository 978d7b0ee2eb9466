"""What notes tell a model or a user: the retrieval convention, the notes of a session, the cold-start hint. Pure."""

from collections.abc import Sequence
from typing import Final

from sync.context.budgets import SESSION_NOTE_CHARS
from sync.notes.model import ACTIVE, STRONG, NoteFile
from sync.notes.note_draft import is_chinese, pointer, reminder
from sync.redaction.prompt_fence import neutralise

REMINDER_CHARS: Final = 200
COLD_START_ZH: Final = "还没有任何记忆。可以先写几条你最在意的约束或“不要”，之后的检索会自动参考。"
COLD_START_EN: Final = (
    "There are no notes yet. Begin with a few constraints or don'ts that matter most; later retrieval uses them."
)
CONVENTION_ZH: Final = (
    '项目记忆约定：每轮回答前可用 notes/retrieve（命令 `xiaobai-memory notes retrieve "用户消息"`）检索一次；'
    "没有匹配就不提记忆，有匹配时最多两条，只作参考。写入（notes/remember）时传入会话 ID。"
)
CONVENTION_EN: Final = (
    "Convention of the project's notes: before each answer, notes/retrieve (`xiaobai-memory notes retrieve MESSAGE`)"
    " can be asked once; without a match nothing is said of notes, with one at most two notes inform the answer."
    " Calls that write carry the conversation's id."
)
_ALWAYS: Final = frozenset({"always", "总是", "始终", "每次", "每次会话"})


def cold_start_hint(*, chinese: bool) -> str:
    return COLD_START_ZH if chinese else COLD_START_EN


def is_loaded_at_start(file: NoteFile) -> bool:
    """Whether a note is given at each session's start: active, and strong or marked to load always."""
    note = file.note
    marked = any(line.casefold().strip(" 。.") in _ALWAYS for line in note.when_to_load)
    return note.status == ACTIVE and (note.meta.get("Strength", "").casefold() in STRONG or marked)


def session_text(
    files: Sequence[NoteFile], base: str, fence: str, *, chinese: bool | None = None
) -> tuple[str, list[NoteFile]]:
    """The convention and one line for each note marked to load that fits into `SESSION_NOTE_CHARS`; the notes that fit.

    Nothing without notes. Without `chinese` the notes' titles decide the language.
    """
    if not files:
        return "", []
    loaded = [file for file in files if is_loaded_at_start(file)]
    if chinese is None:
        chinese = not loaded or any(is_chinese(file.note.title) for file in loaded)
    lines, given = [CONVENTION_ZH if chinese else CONVENTION_EN], list[NoteFile]()
    left = SESSION_NOTE_CHARS - len(lines[0])
    for file in loaded:
        text = f"{reminder(file.note, REMINDER_CHARS)} ({pointer(file, base)})"
        line = f"- {' '.join(neutralise(text, fence).split())}"
        if len(line) + 1 <= left:
            lines.append(line)
            given.append(file)
            left -= len(line) + 1
    return "\n".join(lines), given
