"""The catalogue of event types: every name once, with its meaning, payload, emitters and readers.

`docs/events.md` is generated from it (`python -m tests.event_catalogue`). Every event is also read by the JSONL
export, by retention and by replication; `read_by` names the readers that treat a type in their own way.
"""

from typing import Final

from sync.log.devices.device_only_events import LESSON_EVENT_TYPES, NOTE_EVENT_TYPES
from sync.log.event_types import (
    DAILY_UNDONE,
    DAY_FOLDED,
    DEVICE_ADMITTED,
    DEVICE_HIDDEN,
    DEVICE_REGISTERED,
    DEVICE_RENAMED,
    DEVICE_REVOKED,
    DOCUMENT_RESTORED,
    ENTRY_ADDED,
    ENTRY_EDITED,
    ENTRY_MOVED,
    ENTRY_REMOVED,
    EXCHANGE_RECORDED,
    EXCHANGE_TEXT,
    FACT_CONFIRMED,
    FACT_DOUBTED,
    FACT_EDITED,
    FACT_QUESTIONED,
    FACT_REJECTED,
    FACT_RETRACTED,
    FACT_SUPERSEDED,
    FACT_VERDICT_TYPES,
    FOREIGN_CHANGE_ANSWERED,
    FORGET_ENDED,
    FORGET_REQUESTED,
    MEMORY_FACT,
    MESSAGE,
    PAYLOAD_EXPIRED,
    PAYLOAD_FORGOTTEN,
    PAYLOAD_REDACTED,
    SECTION_ADDED,
    SECTION_REMOVED,
    SESSION_EDITED,
    SESSION_ENDED,
    SESSION_FINALIZED,
    SESSION_MARKED,
    SESSION_META,
    SESSION_ORIGINAL,
    SESSION_RECORDED,
    SESSION_REMOVED,
    SESSION_SKIPPED,
    SESSION_STARTED,
    TOOL_CALL,
    USER_FEEDBACK,
    EventType,
)

OTHER_PROGRAMS: Final = "other programs"
_RECORD_FIELDS: Final = ("record_id", "topic", "facts", "code", "tags", "marks", "importance")
_EDITORS: Final = "document.capture.exchange_events"
_EARLIER: Final = ("earlier versions",)  # which wrote them for a document of several devices

_SESSION_TYPES: Final = (
    EventType(
        SESSION_STARTED,
        "A session begins.",
        ("title?", "summary?", "tags?"),
        ("archive.chat_events", OTHER_PROGRAMS),
        ("sessions", "insights"),
    ),
    EventType(
        SESSION_FINALIZED,
        "A session ends. A later event of the session reopens it.",
        ("title?", "summary?", "reason?", "tags?"),
        ("log.sessions.model", OTHER_PROGRAMS),
        ("sessions", "daily", "insights"),
    ),
    EventType(
        SESSION_ENDED,
        "The same as `session_finalized`, under the name that imported conversations use.",
        ("title?", "summary?", "reason?", "tags?"),
        ("archive.chat_events", OTHER_PROGRAMS),
        ("sessions", "daily", "insights"),
    ),
    EventType(
        SESSION_META,
        "Facts about a session as a whole. They do not reopen it.",
        ("title?", "summary?", "tags?"),
        (OTHER_PROGRAMS,),
        ("sessions", "insights"),
    ),
    EventType(
        SESSION_SKIPPED,
        "A conversation is not to be saved, or may be saved again.",
        ("session_id?", "unnamed?", "on"),
        ("log.sessions.pauses",),
        ("sessions", "daily records"),
        is_internal=True,
    ),
    EventType(
        MESSAGE,
        "One message of a conversation, whole or as a part.",
        ("role?", "content?", "content_length#?", "part#?", "parts#?"),
        ("document.capture.exchange_events", OTHER_PROGRAMS),
        ("recall", "daily", "insights", "erasure"),
    ),
    EventType(
        TOOL_CALL,
        "A model called a tool.",
        ("tool?", "details.file_path?", "details.command?", "details.exit_code#?", "stage?", "success?"),
        ("lessons.capture", OTHER_PROGRAMS),
        ("insights",),
    ),
    EventType(
        USER_FEEDBACK,
        "The user's verdict on what a model did, or on an instinct.",
        ("feedback_type?", "content?", "instinct_id?"),
        (OTHER_PROGRAMS,),
        ("recall", "insights", "lessons"),
    ),
)

_FACT_FIELDS: Final = (
    *("fact_type?", "content?", "tags?", "kind?", "section?", "subject?", "slot?", "negative?", "change?", "former?"),
    *("valid_from?", "valid_until?", "confidence?", "about?", "level?", "importance?", "reader?", "evidence?"),
    "extractor?",
)
_FACT_EMITTER: Final = "understanding.fact_events"


def _verdict(name: str, meaning: str, *fields: str) -> EventType:
    return EventType(name, meaning, ("fact_id", "also_ids?", *fields), (_FACT_EMITTER,), ("understanding", "recall"))


_FACT_TYPES: Final = (
    EventType(
        MEMORY_FACT,
        "A fact about the user or a project: found in what the user typed, or proposed by another program.",
        _FACT_FIELDS,
        (_FACT_EMITTER, OTHER_PROGRAMS),
        ("understanding", "recall", "insights", "erasure"),
    ),
    EventType(
        FACT_EDITED,
        "The user gave a fact another text.",
        ("fact_id", "also_ids?", "content", "kind?", "section?", "slot?", "negative?"),
        (_FACT_EMITTER,),
        ("understanding", "recall", "erasure"),
    ),
    _verdict(FACT_SUPERSEDED, "A newer fact replaces a fact.", "by_id"),
    _verdict(FACT_QUESTIONED, "A language model says that a newer sentence may end a fact.", "by_id"),
    _verdict(FACT_DOUBTED, "A language model says that a fact which nobody confirmed was read wrongly.", "reason?"),
    _verdict(FACT_RETRACTED, "The user withdrew a fact, by hand in the document or by command.", "reason?"),
    _verdict(FACT_CONFIRMED, "The user confirmed a candidate, or brought back a retracted fact."),
    _verdict(FACT_REJECTED, "The user rejected a candidate."),
    EventType(
        FOREIGN_CHANGE_ANSWERED,
        "The user answered whether changes of one device in facts of another hold.",
        ("event_ids", "accepted"),
        ("understanding.changes.service",),
        ("understanding",),
        is_internal=True,
    ),
)

_DERIVED_LINES: Final = "document.versions.derived_lines"
_DOCUMENT_TYPES: Final = (
    EventType(
        EXCHANGE_RECORDED,
        "One turn of a conversation: summaries of the question and the answer.",
        (
            *("question", "answer", "question_length", "answer_length", "importance?", "language?", "source?"),
            *("in_document?", "preferences?", "recalled?", "repeats?"),
        ),
        ("document.capture.exchange_events",),
        ("document", "recall", "daily", "insights", "erasure"),
    ),
    EventType(
        EXCHANGE_TEXT,
        "Both sides of an exchange of which `exchange_recorded` has summaries, redacted, up to 4,000 characters each.",
        ("question", "answer", "echoes?", "tools?", "importance?"),
        ("document.capture.exchange_events",),
        ("recall", "erasure"),
        is_device_only=True,
    ),
    EventType(
        ENTRY_ADDED,
        "A line was added to the document by a manual edit or an import, or by the program (`derived`).",
        ("entry_id", "section", "after", "text", "gap?", "shared?", "language?", "derived?"),
        (_EDITORS, _DERIVED_LINES),
        ("document", "recall", "erasure"),
    ),
    EventType(
        ENTRY_EDITED,
        "A line of the document has another text.",
        ("entry_id", "section", "base_hash", "base?", "text", "placed?", "shared?", "language?", "derived?"),
        (_EDITORS, _DERIVED_LINES),
        ("document", "recall", "erasure"),
    ),
    EventType(
        ENTRY_REMOVED,
        "A line of the document was removed.",
        ("entry_id", "section", "base_hash?", "shared?", "language?", "derived?"),
        (_EDITORS, "document.versions.erasure_step", _DERIVED_LINES),
        ("document", "recall", "erasure"),
    ),
    EventType(
        ENTRY_MOVED,
        "A line has another position in its section; its text is unchanged.",
        ("entry_id", "section", "after", "gap?", "shared"),
        _EARLIER,
        ("document",),
    ),
    EventType(SECTION_ADDED, "A heading was added.", ("section", "shared"), _EARLIER),
    EventType(
        SECTION_REMOVED,
        "A heading was removed.",
        ("section", "shared"),
        _EARLIER,
    ),
    EventType(
        DAY_FOLDED,
        "The lines of an old day became one line.",
        ("day", "entry_id", "section", "text", "entries", "base?"),
        ("document.versions.compaction",),
        ("document", "recall", "erasure"),
        is_internal=True,
    ),
    EventType(
        DOCUMENT_RESTORED,
        "The user restored an earlier version; the events that follow hold its changes.",
        ("sha256", "operations"),
        ("document.versions.file_history",),
        is_internal=True,
    ),
)

_DAILY_TYPES: Final = (
    EventType(
        SESSION_RECORDED,
        "A daily record of a session.",
        (*_RECORD_FIELDS, "date", "time", "session", "source_session_id", "until_event_id", "author", "quality"),
        ("daily.records.changes", "archive.daily_pages"),
        ("daily records", "recall", "erasure"),
    ),
    EventType(
        SESSION_EDITED,
        "Parts of a daily record changed; the payload holds the record after the change.",
        (*_RECORD_FIELDS, "changed", "by", "until_event_id"),
        ("daily.records.changes",),
        ("daily records", "recall", "erasure"),
        is_internal=True,
    ),
    EventType(
        SESSION_REMOVED,
        "A daily record was removed, or merged into another.",
        ("record_id", "gone", "reason", "into"),
        ("daily.records.changes",),
        ("daily records", "recall"),
        is_internal=True,
    ),
    EventType(
        SESSION_MARKED,
        "A daily record got or lost a mark; the payload holds the record after the change.",
        (*_RECORD_FIELDS, "mark", "on"),
        ("daily.records.changes",),
        ("daily records", "recall", "erasure"),
        is_internal=True,
    ),
    EventType(
        SESSION_ORIGINAL,
        "What this device shows of a daily record: what whole texts have more, or the text before redaction.",
        ("of", "topic", "facts", "code", "tags", "whole?"),
        ("daily.record_service",),
        ("daily records", "erasure"),
        is_device_only=True,
    ),
    EventType(
        DAILY_UNDONE,
        "A change of a daily record is undone; the payload holds the record without the change.",
        (*_RECORD_FIELDS, "undoes", "gone?"),
        ("daily.record_service",),
        ("daily records", "recall", "erasure"),
        is_internal=True,
    ),
)

_RETRACTING: Final = (
    EventType(
        PAYLOAD_FORGOTTEN,
        "An erasure request: the payloads of the named events go, on every device and on the server.",
        ("event_ids",),
        ("log.ingest", "document.erasure.erasure", "document.versions.rescan"),
        ("erasure", "document", "recall", "daily records", "insights"),
        is_internal=True,
    ),
    EventType(
        PAYLOAD_EXPIRED,
        "Retention archived the payloads of the named events; they go on this device.",
        ("event_ids",),
        ("log.ingest",),
        ("erasure", "recall", "insights"),
        is_device_only=True,
        is_internal=True,
    ),
    EventType(
        PAYLOAD_REDACTED,
        "The payload that an event has from now on. An erasure request for the event follows.",
        ("event_id", "payload"),
        ("document.versions.rescan",),
        ("erasure", "document", "recall", "daily records", "insights"),
        is_internal=True,
    ),
    EventType(
        FORGET_REQUESTED,
        "The named events are to be erased at a time. Until then they are hidden and stay on this device.",
        ("event_ids", "due"),
        ("forget_service",),
        ("every view",),
        is_device_only=True,
        is_internal=True,
    ),
    EventType(
        FORGET_ENDED,
        "A request to forget was carried out, or undone: then the named events are shown again.",
        ("event_ids", "undone"),
        ("forget_service",),
        ("every view",),
        is_device_only=True,
        is_internal=True,
    ),
)

_DEVICE_TYPES: Final = (
    EventType(
        DEVICE_REGISTERED,
        "A device of the account introduces itself, again if its facts change.",
        ("name", "platform", "app_version", "public_key?"),
        ("accounts.devices",),
        ("device list",),
        is_internal=True,
    ),
    EventType(
        DEVICE_ADMITTED,
        "An admitted device says that others are the user's too.",
        ("device_ids", "recovery?"),
        ("accounts.devices",),
        ("device list", "understanding"),
        is_internal=True,
    ),
    EventType(
        DEVICE_RENAMED,
        "The user gave a device a name.",
        ("device_id", "name"),
        ("accounts.devices",),
        ("device list",),
        is_internal=True,
    ),
    EventType(
        DEVICE_REVOKED,
        "The user revoked a device: the server refuses it.",
        ("device_id",),
        ("accounts.devices",),
        ("device list",),
        is_internal=True,
    ),
    EventType(
        DEVICE_HIDDEN,
        "The user hides what a device contributes, on this device alone, or shows it again.",
        ("device_id", "hidden"),
        ("accounts.devices",),
        ("device list",),
        is_device_only=True,
        is_internal=True,
    ),
)


CATALOGUE: Final[dict[str, tuple[EventType, ...]]] = {
    "Sessions": _SESSION_TYPES,
    "Facts": _FACT_TYPES,
    "Document": _DOCUMENT_TYPES,
    "Daily records": _DAILY_TYPES,
    "Erasure and redaction": _RETRACTING,
    "Devices": _DEVICE_TYPES,
    "Lessons": LESSON_EVENT_TYPES,
    "Notes": NOTE_EVENT_TYPES,
}
NOTE_TYPES: Final = tuple(event_type.name for event_type in CATALOGUE["Notes"])
EVENT_TYPES: Final = {event_type.name: event_type for group in CATALOGUE.values() for event_type in group}

INTERNAL_TYPES: Final = frozenset(
    name for name, event_type in EVENT_TYPES.items() if event_type.is_internal or event_type.is_device_only
)

# What decides over other events, or says which devices there are.
DECISION_TYPES: Final = INTERNAL_TYPES | {*FACT_VERDICT_TYPES, FACT_EDITED, ENTRY_REMOVED}

# No other module decides what may leave the device.
DEVICE_LOCAL_TYPES: Final = frozenset(name for name, event_type in EVENT_TYPES.items() if event_type.is_device_only)
