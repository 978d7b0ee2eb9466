"""The names of the event types, and the groups that readers ask for. `event_catalogue` says what each means."""

from typing import Final

import msgspec

# Sessions and what other programs append.
SESSION_STARTED: Final = "session_started"
SESSION_FINALIZED: Final = "session_finalized"
SESSION_ENDED: Final = "session_ended"
SESSION_META: Final = "session_meta"
SESSION_SKIPPED: Final = "session_skipped"
MESSAGE: Final = "message"
TOOL_CALL: Final = "tool_call"
MEMORY_FACT: Final = "memory_fact"
USER_FEEDBACK: Final = "user_feedback"

# Facts about the user and their projects.
FACT_EDITED: Final = "fact_edited"
FACT_SUPERSEDED: Final = "fact_superseded"
FACT_DOUBTED: Final = "fact_doubted"
FACT_QUESTIONED: Final = "fact_questioned"
FOREIGN_CHANGE_ANSWERED: Final = "foreign_change_answered"
FACT_RETRACTED: Final = "fact_retracted"
FACT_CONFIRMED: Final = "fact_confirmed"
FACT_REJECTED: Final = "fact_rejected"

# The document.
EXCHANGE_RECORDED: Final = "exchange_recorded"
EXCHANGE_TEXT: Final = "exchange_text"
TEXT_SUFFIX: Final = ".text"  # behind the id of an exchange: the id of its whole text
ENTRY_ADDED: Final = "entry_added"
ENTRY_EDITED: Final = "entry_edited"
ENTRY_REMOVED: Final = "entry_removed"
ENTRY_MOVED: Final = "entry_moved"
SECTION_ADDED: Final = "section_added"
SECTION_REMOVED: Final = "section_removed"
DAY_FOLDED: Final = "day_folded"
DOCUMENT_RESTORED: Final = "document_restored"

# Daily records.
SESSION_RECORDED: Final = "session_recorded"
SESSION_EDITED: Final = "session_edited"
SESSION_REMOVED: Final = "session_removed"
SESSION_MARKED: Final = "session_marked"
SESSION_ORIGINAL: Final = "session_original"
DAILY_UNDONE: Final = "daily_undone"

# Erasure and redaction.
PAYLOAD_FORGOTTEN: Final = "payload_forgotten"
PAYLOAD_EXPIRED: Final = "payload_expired"
PAYLOAD_REDACTED: Final = "payload_redacted"
FORGET_REQUESTED: Final = "forget_requested"
FORGET_ENDED: Final = "forget_ended"

# Devices.
DEVICE_REGISTERED: Final = "device_registered"
DEVICE_RENAMED: Final = "device_renamed"
DEVICE_REVOKED: Final = "device_revoked"
DEVICE_HIDDEN: Final = "device_hidden"
DEVICE_ADMITTED: Final = "device_admitted"

# Lessons.
LESSON_LEARNED: Final = "lesson_learned"
LESSON_EDITED: Final = "lesson_edited"
LESSON_REMOVED: Final = "lesson_removed"
LESSON_COUNTED: Final = "lesson_counted"
LESSON_OBSERVED: Final = "lesson_observed"

# Notes. The files of the project hold the notes; these events are their audit, and what recall searches.
MEMORY_NOTE_CREATED: Final = "memory_note_created"
MEMORY_NOTE_UPDATED: Final = "memory_note_updated"
MEMORY_NOTE_DELETED: Final = "memory_note_deleted"
MEMORY_INDEX_UPDATED: Final = "memory_index_updated"
MEMORY_RETRIEVE_PERFORMED: Final = "memory.retrieve.performed"
MEMORY_QUESTION_ASKED: Final = "memory_question_asked"
MEMORY_QUESTION_ANSWERED: Final = "memory_question_answered"
MEMORY_QUESTION_EXPIRED: Final = "memory_question_expired"

USE_TYPES: Final = (EXCHANGE_RECORDED, TOOL_CALL)  # of which what is frequent is counted
SESSION_END_TYPES: Final = (SESSION_FINALIZED, SESSION_ENDED)
SESSION_EVENT_TYPES: Final = (SESSION_STARTED, *SESSION_END_TYPES, SESSION_META)  # about a session as a whole
TYPES_WITH_TAGS: Final = (MEMORY_FACT, *SESSION_EVENT_TYPES)
DOCUMENT_EVENT_TYPES: Final = (
    EXCHANGE_RECORDED,
    ENTRY_ADDED,
    ENTRY_EDITED,
    ENTRY_REMOVED,
    ENTRY_MOVED,
    SECTION_ADDED,
    SECTION_REMOVED,
    DAY_FOLDED,
)
CONVERSATION_TYPES: Final = (MESSAGE, EXCHANGE_RECORDED)
RECORD_CHANGE_TYPES: Final = (
    SESSION_RECORDED,
    SESSION_EDITED,
    SESSION_REMOVED,
    SESSION_MARKED,
    SESSION_SKIPPED,
    DAILY_UNDONE,
)
ERASING_TYPES: Final = (PAYLOAD_FORGOTTEN, PAYLOAD_EXPIRED)
RETRACTING_TYPES: Final = (*ERASING_TYPES, PAYLOAD_REDACTED)
HOLDING_TYPES: Final = (FORGET_REQUESTED, FORGET_ENDED)  # hide payloads until they are erased, or show them again
HIDING_TYPES: Final = (*RETRACTING_TYPES, *HOLDING_TYPES)
FACT_TEXT_TYPES: Final = (MEMORY_FACT, FACT_EDITED)  # hold the text of a fact
FACT_VERDICT_TYPES: Final = (
    FACT_SUPERSEDED,
    FACT_QUESTIONED,
    FACT_DOUBTED,
    FACT_RETRACTED,
    FACT_CONFIRMED,
    FACT_REJECTED,
)
FACT_TYPES: Final = (*FACT_TEXT_TYPES, *FACT_VERDICT_TYPES)
LESSON_TYPES: Final = (LESSON_LEARNED, LESSON_EDITED, LESSON_REMOVED, LESSON_COUNTED, LESSON_OBSERVED)
NOTE_TEXT_TYPES: Final = (MEMORY_NOTE_CREATED, MEMORY_NOTE_UPDATED, MEMORY_QUESTION_ASKED)  # hold text of a note
REGISTRY_TYPES: Final = (DEVICE_REGISTERED, DEVICE_RENAMED, DEVICE_REVOKED, DEVICE_ADMITTED)  # replicated
DEVICE_EVENT_TYPES: Final = (*REGISTRY_TYPES, DEVICE_HIDDEN)


class EventType(msgspec.Struct, frozen=True):
    """One type. A device-only event never leaves the device that recorded it.

    `payload` lists all fields, and without `privacy.store_program_messages` no other stays: `?` marks an optional one,
    `#` a number, and `outer.inner` a field of an object.

    Programs cannot append an internal or a device-only one: it changes, ends, erases or hides something, or says which
    devices there are.

    `emitted_by` names modules of `sync`, "other programs" for what `events append` and imports bring, or "earlier
    versions".
    """

    name: str
    meaning: str
    payload: tuple[str, ...]
    emitted_by: tuple[str, ...]
    read_by: tuple[str, ...] = ()
    is_device_only: bool = False
    is_internal: bool = False

    @property
    def field_names(self) -> frozenset[str]:
        """The names of the payload's fields, without the mark of an optional one."""
        return frozenset(field.removesuffix("?") for field in self.payload)
