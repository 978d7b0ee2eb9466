"""The tables of the lessons as a projection of the log, brought up to date in the transaction that records.

A lesson is found by whoever records next, so that twenty processes count one error once each and lose nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.lessons import store
from sync.lessons.corrections import correction_id, read_feedback
from sync.lessons.error_text import match_keys
from sync.lessons.mining import CURE_WINDOW, QUIET_CALLS, LessonCall
from sync.lessons.model import CORRECTION, PATTERN, Lesson, new_record, text_field
from sync.log import store as log_store
from sync.log.authorship import author_of
from sync.log.event_types import (
    HIDING_TYPES,
    LESSON_COUNTED,
    LESSON_EDITED,
    LESSON_LEARNED,
    LESSON_OBSERVED,
    LESSON_REMOVED,
    USER_FEEDBACK,
)
from sync.log.local_state import rules_name
from sync.log.model import Event, named_event_ids
from sync.log.projections.registry import LESSONS
from sync.log.retractions import Retractions, correction_of

RULES_VERSION: Final = 6  # raised, with that of the files, whenever the same events would be stored in another way
COUNTERS: Final = ("occurrences", "helped", "hurt", "shown", "supported")
TEXT_TYPES: Final = (LESSON_LEARNED, LESSON_EDITED)  # hold the record of a lesson
MAX_SESSIONS: Final = 20  # of a lesson's evidence


def is_current(connection: Transaction) -> bool:
    """Whether the tables have everything that the log says of lessons."""
    if log_store.watermark(connection, rules_name(LESSONS.name)) != RULES_VERSION or not store.is_created(connection):
        return False
    return log_store.newest_position_of_types(connection, LESSONS.event_types) <= log_store.watermark(
        connection, LESSONS.name
    )


def catch_up(connection: Transaction, clock: Clock) -> bool:
    """Bring the tables up to date. Return whether text was removed that the write-ahead log may hold.

    Raises a StorageError.
    """
    if is_current(connection):
        return False
    was_created = store.is_created(connection)
    if not was_created or log_store.watermark(connection, rules_name(LESSONS.name)) != RULES_VERSION:
        rebuild(connection, clock)
        return was_created
    after = log_store.watermark(connection, LESSONS.name)
    events = list(log_store.read_by_types(connection, LESSONS.event_types, after=after))
    if any(_retracts_lesson(connection, event) for event in events):
        rebuild(connection, clock)
        return True
    for event in events:
        _apply(connection, event)
    _finish(connection, clock)
    return False


def rebuild_inconsistent(connection: Transaction, clock: Clock) -> bool:
    """Make the tables again if a row of them cannot be understood; return whether that was so."""
    if not store.is_created(connection) or store.is_intact(connection):
        return False
    rebuild(connection, clock)
    return True


def rebuild(connection: Transaction, clock: Clock) -> None:
    """Make the tables again from the log."""
    store.recreate_tables(connection)
    retractions = Retractions()
    retractions.apply(log_store.read_by_types(connection, HIDING_TYPES, after=0))
    types = [name for name in LESSONS.event_types if name not in HIDING_TYPES]
    for event in log_store.read_by_types(connection, types, after=0):
        _apply(connection, retractions.effective_event(event))
    log_store.set_watermark(connection, rules_name(LESSONS.name), RULES_VERSION, clock)
    _finish(connection, clock)


def _finish(connection: Transaction, clock: Clock) -> None:
    store.trim_tables(connection)
    newest = log_store.newest_position_of_types(connection, LESSONS.event_types)
    log_store.set_watermark(connection, LESSONS.name, newest, clock)


def _retracts_lesson(connection: Transaction, event: Event) -> bool:
    correction = correction_of(event)
    named = named_event_ids(event) if correction is None else (correction[0],)
    found = (log_store.find_event(connection, name) for name in named)
    return any(one is not None and one.type in LESSONS.event_types for one in found)


def _apply(connection: Transaction, event: Event) -> None:
    payload = event.payload
    if event.type == LESSON_OBSERVED:
        _apply_call(connection, event)
    elif event.type == USER_FEEDBACK:
        _apply_feedback(connection, event)
    elif not isinstance(payload.get("lesson_id"), str):
        return  # erased, or of another program
    elif event.type == LESSON_LEARNED:
        _apply_learned(connection, event)
    elif event.type == LESSON_EDITED:
        _apply_edited(connection, payload)
    elif event.type == LESSON_COUNTED:
        _apply_counted(connection, event)
    elif event.type == LESSON_REMOVED:
        _apply_removed(connection, event)


def _apply_call(connection: Transaction, event: Event) -> None:
    payload = event.payload
    names = ("tool", "command", "file_path", "error_key", "error_type", "message", "language")
    if isinstance(payload.get("session_id"), str):
        values = {name: str(payload[name]) if payload.get(name) is not None else "" for name in names}
        error_key = values.pop("error_key") or None
        call = LessonCall(event.position, payload["session_id"], event.project_id, error_key=error_key, **values)
        store.insert_call(connection, call)


def _apply_feedback(connection: Transaction, event: Event) -> None:
    """A correction makes a lesson, or speaks for the one that has its words; a verdict counts."""
    feedback = read_feedback(event)
    if feedback is None:
        return
    lesson = store.correction_of_instinct(connection, feedback.instinct_id)
    if lesson is None:
        if feedback.effect != "correct":
            return
        lesson = _first_correction(event, feedback.instinct_id, feedback.text)
    _, sessions = store.find_evidence(connection, lesson.lesson_id)
    counter = "occurrences" if feedback.effect == "correct" else feedback.effect
    lesson = replace(lesson, **{counter: getattr(lesson, counter) + 1})
    if feedback.effect == "correct":
        if author_of(event).is_users:  # what a program or a file proposes waits for a confirmation
            sessions = list(dict.fromkeys([*sessions, event.session_id]))[-MAX_SESSIONS:]
        projects = tuple(dict.fromkeys([*lesson.project_ids, event.project_id]))
        lesson = replace(lesson, last_at=max(lesson.last_at, event.ts), project_ids=projects)
        store.note_feedback(connection, event.event_id, feedback.instinct_id, lesson.lesson_id)
    store.insert_lesson(connection, lesson, shares_term=True, sessions=sessions)


def _first_correction(event: Event, instinct_id: str, text: str) -> Lesson:
    """The lesson of a correction, before it is counted."""
    return Lesson(
        lesson_id=correction_id(event.local_date, instinct_id),
        kind=PATTERN,
        state="",
        source="corrected",
        occurrences=0,
        helped=0,
        hurt=0,
        shown=0,
        created_at=event.ts,
        last_at=event.ts,
        project_ids=(),
        content=new_record(PATTERN, {"type": CORRECTION, "name": text}, event.ts),
    )


def _apply_learned(connection: Transaction, event: Event) -> None:
    payload = event.payload
    content = payload.get("content")
    if not isinstance(content, dict) or store.find_lesson(connection, payload["lesson_id"]) is not None:
        return
    counter = "occurrences" if payload.get("kind") == "error" else "usage_count"
    lesson = Lesson(
        lesson_id=payload["lesson_id"],
        kind=str(payload.get("kind")),
        state="",
        source=str(payload.get("source")),
        occurrences=_number(content.get(counter)),
        helped=0,
        hurt=0,
        shown=0,
        created_at=str(content.get("timestamp") or event.ts),
        last_at=str(content.get("last_occurred") or content.get("timestamp") or event.ts),
        project_ids=(event.project_id,),
        content=content,
    )
    sessions = [payload["session_id"]] if isinstance(payload.get("session_id"), str) else []
    store.insert_lesson(connection, lesson, shares_term=payload.get("shares_term") is True, sessions=sessions)


def _apply_edited(connection: Transaction, payload: Any) -> None:
    lesson, content = store.find_lesson(connection, payload["lesson_id"]), payload.get("content")
    if lesson is not None and isinstance(content, dict):
        shares, sessions = store.find_evidence(connection, lesson.lesson_id)
        changed = replace(lesson, content=content, source=str(payload.get("source", lesson.source)))
        store.insert_lesson(connection, changed, shares_term=shares, sessions=sessions)


def _apply_counted(connection: Transaction, event: Event) -> None:
    payload, counter = event.payload, event.payload.get("counter")
    lesson = store.find_lesson(connection, payload["lesson_id"])
    if lesson is None or counter not in COUNTERS:
        return
    session_id = payload.get("session_id")
    shares, sessions = store.find_evidence(connection, lesson.lesson_id)
    if counter == "supported":
        sessions = list(dict.fromkeys([*sessions, str(session_id)]))[-MAX_SESSIONS:]
    else:
        lesson = replace(lesson, **{counter: getattr(lesson, counter) + _number(payload.get("by", 1))})
    if counter == "shown" and isinstance(session_id, str):
        store.note_shown(connection, session_id, lesson.lesson_id, event.position)
    if counter in {"occurrences", "supported"}:
        projects = tuple(dict.fromkeys([*lesson.project_ids, event.project_id]))
        lesson = replace(lesson, last_at=max(lesson.last_at, str(payload.get("at") or "")), project_ids=projects)
    store.insert_lesson(connection, lesson, shares_term=shares, sessions=sessions)


def _apply_removed(connection: Transaction, event: Event) -> None:
    """Keep the id, so that it is not given again; the text goes."""
    lesson_id = event.payload["lesson_id"]
    kind = "pattern" if lesson_id.startswith("pat-") else "error"
    gone = Lesson(lesson_id, kind, "", "said", 0, 0, 0, 0, "", "", (), {})
    store.insert_lesson(connection, gone, shares_term=False, sessions=(), is_removed=True)
    store.drop_feedback(connection, lesson_id)


def observations_of(connection: Transaction, event_ids: Sequence[str]) -> Iterator[str]:
    """The observed calls that repeat the errors of lessons in these events, or may be their cures."""
    found = (log_store.find_event(connection, name) for name in event_ids)
    contents = (event.payload.get("content") for event in found if event is not None and event.type in TEXT_TYPES)
    errors = [content["error"] for content in contents if isinstance(content, dict) and "error" in content]
    keys = {
        key
        for error in errors
        if isinstance(error, dict)
        for key in match_keys(text_field(error, "type"), text_field(error, "message"))
    }
    left: dict[object, int] = {}  # by session: how many later calls may be a cure
    for event in log_store.read_by_types(connection, (LESSON_OBSERVED,), after=0) if keys else ():
        session_id, key = str(event.payload.get("session_id")), event.payload.get("error_key")
        is_same_error = isinstance(key, str) and key in keys
        left[session_id] = CURE_WINDOW + QUIET_CALLS if is_same_error else left.get(session_id, 0) - 1
        if is_same_error or (key is None and left[session_id] >= 0):
            yield event.event_id


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
