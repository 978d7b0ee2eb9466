"""The event types of lessons and notes in the catalogue. Their events never leave the device that recorded them."""

from typing import Final

from sync.log.event_types import (
    LESSON_COUNTED,
    LESSON_EDITED,
    LESSON_LEARNED,
    LESSON_OBSERVED,
    LESSON_REMOVED,
    MEMORY_INDEX_UPDATED,
    MEMORY_NOTE_CREATED,
    MEMORY_NOTE_DELETED,
    MEMORY_NOTE_UPDATED,
    MEMORY_QUESTION_ANSWERED,
    MEMORY_QUESTION_ASKED,
    MEMORY_QUESTION_EXPIRED,
    MEMORY_RETRIEVE_PERFORMED,
    EventType,
)


def _local_type(name: str, meaning: str, payload: tuple[str, ...], emitter: str, *read_by: str) -> EventType:
    return EventType(name, meaning, payload, (emitter,), read_by, is_device_only=True)


_LESSON_FIELDS: Final = ("lesson_id", "kind", "source", "content", "session_id?", "shares_term?")
_EDIT_FIELDS: Final = ("lesson_id", "kind", "content", "source?", "evidence?")
_OBSERVED_FIELDS: Final = ("session_id", "tool", "command", "file_path")
_ERROR_FIELDS: Final = ("error_key?", "error_type?", "message?", "language?")
_LESSON_READERS: Final = ("lessons", "recall", "erasure")
_RECORD, _EDIT = (
    "An error with its cure, or a pattern, with the record of its JSON file.",
    "The record of a lesson after a change.",
)
_GONE, _COUNTS = (
    "A lesson was removed; its id is not given again.",
    "`occurrences`, `helped`, `hurt`, `shown`, `supported`",
)
_OBSERVED = "A captured tool call near an error, with its command and the text of the error."
_COUNT_FIELDS: Final = ("lesson_id", "counter", "by?", "at?", "session_id?")
LESSON_EVENT_TYPES: Final = (
    _local_type(LESSON_LEARNED, _RECORD, _LESSON_FIELDS, "lessons.drafts", *_LESSON_READERS),
    _local_type(LESSON_EDITED, _EDIT, _EDIT_FIELDS, "lessons.drafts", *_LESSON_READERS),
    _local_type(LESSON_REMOVED, _GONE, ("lesson_id",), "lessons.service", "lessons", "recall"),
    _local_type(LESSON_COUNTED, f"A counter of a lesson rises: {_COUNTS}.", _COUNT_FIELDS, "lessons.drafts", "lessons"),
    _local_type(LESSON_OBSERVED, _OBSERVED, (*_OBSERVED_FIELDS, *_ERROR_FIELDS), "lessons.capture", "lessons"),
)

_NOTE_FIELDS: Final = (
    *("note_id", "file", "sha256", "title", "status", "shared", "text", "session?", "by", "duplicate_of?"),
)
_QUESTION_FIELDS: Final = (
    *("question_id", "action", "asked_at", "note_id", "note_sha256", "new_note_id", "layer", "payload", "session"),
)
_NOTE_READERS: Final = ("notes", "recall", "erasure")
_ANSWER_FIELDS: Final = ("question_id", "option")
_FILES, _SERVICE = "notes.workspace", "notes.service"
NOTE_EVENT_TYPES: Final = (
    _local_type(MEMORY_NOTE_CREATED, "A note is new, or read first.", _NOTE_FIELDS, _FILES, *_NOTE_READERS),
    _local_type(MEMORY_NOTE_UPDATED, "A note has another text.", _NOTE_FIELDS, _FILES, *_NOTE_READERS),
    _local_type(MEMORY_NOTE_DELETED, "A note is gone.", ("note_id", "by"), _FILES, "notes", "recall"),
    _local_type(MEMORY_INDEX_UPDATED, "INDEX.md was written; `repairs` counts its repairs.", ("repairs",), _FILES),
    _local_type(MEMORY_RETRIEVE_PERFORMED, "Notes were retrieved.", ("adopted", "sniffed"), "notes.queries", "notes"),
    _local_type(MEMORY_QUESTION_ASKED, "The user is asked first.", _QUESTION_FIELDS, _SERVICE, "notes", "erasure"),
    _local_type(MEMORY_QUESTION_ANSWERED, "A question was answered.", _ANSWER_FIELDS, _SERVICE, "notes"),
    _local_type(MEMORY_QUESTION_EXPIRED, "Unanswered, or the note changed.", ("question_id",), _SERVICE, "notes"),
)
