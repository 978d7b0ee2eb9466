"""The events that repeat or quote what an erasure names, and the lines of the document that events made.

They are erased with it: repeats and messages of an exchange, edits and removals of its lines, additions of lines that
had left the document, compacted days, changes of a daily record that repeat its content, and versions of a lesson or
a note, the facts stated in an exchange, and the versions of a fact.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from sync.db.engine import Transaction
from sync.document.capture.day_compaction import compacted_entry_hashes
from sync.document.capture.exchange_events import (
    exchange_ids,
    own_lines_of,
    preference_entries_of,
    repeated_exchange_id,
)
from sync.document.markdown.entry_ids import conflict_copy_id, fact_entry_id
from sync.document.markdown.template import ANSWER_PREFIXES
from sync.log import store as log_store
from sync.log.event_types import (
    DAILY_UNDONE,
    DAY_FOLDED,
    ENTRY_ADDED,
    ENTRY_EDITED,
    ENTRY_REMOVED,
    EXCHANGE_RECORDED,
    FACT_EDITED,
    FACT_TEXT_TYPES,
    LESSON_EDITED,
    LESSON_LEARNED,
    MEMORY_FACT,
    MEMORY_QUESTION_ASKED,
    MESSAGE,
    NOTE_TEXT_TYPES,
    PAYLOAD_REDACTED,
    SESSION_EDITED,
    SESSION_MARKED,
    SESSION_ORIGINAL,
    SESSION_RECORDED,
    TEXT_SUFFIX,
    USER_FEEDBACK,
)
from sync.log.model import Event, text_in
from sync.log.retractions import correction_of

QUOTING_TYPES: Final = (ENTRY_EDITED, ENTRY_REMOVED, DAY_FOLDED)
MANUAL_TYPES: Final = frozenset({ENTRY_ADDED, ENTRY_EDITED})
RECORD_TYPES: Final = (SESSION_RECORDED, SESSION_EDITED, SESSION_MARKED, DAILY_UNDONE)  # hold a whole record
RECORD_FIELDS: Final = ("record_id", "topic", "facts", "code", "tags")


def quoting_events(
    connection: Transaction, device_id: str, entry_ids: frozenset[str], *, except_ids: frozenset[str]
) -> tuple[str, ...]:
    """This device's events that quote these lines, or wrote them from the log, and what repeats them.

    Without `except_ids`. A line of a fact may have been written after the request was made.
    """
    own = log_store.read_by_device(connection, device_id, after=0, types=(*QUOTING_TYPES, ENTRY_ADDED))
    quoting = frozenset(
        event.event_id for event in own if _is_quoting(event, entry_ids) or _is_derived(event, entry_ids)
    )
    quoting -= except_ids
    return tuple(sorted({*quoting, *repeating_events(connection, quoting)})) if quoting else ()


def later_facts(
    connection: Transaction, device_id: str, erased: Sequence[Event], *, except_ids: frozenset[str]
) -> tuple[str, ...]:
    """This device's facts stated in these events, its edits of the facts among them, and their corrections.

    Without `except_ids`. A model or the user may have made them before this device knew of the request.
    """
    if not erased:
        return ()
    event_ids = frozenset(event.event_id for event in erased)
    own = list(log_store.read_by_device(connection, device_id, after=0, types=FACT_TEXT_TYPES))
    facts = event_ids | {event.event_id for event in own if _is_stated_in(event, event_ids)}
    found = {event.event_id for event in own if event.event_id in facts or not _answered_facts(event).isdisjoint(facts)}
    found |= {*whole_texts(connection, event_ids)}
    found -= except_ids
    return tuple(sorted({*found, *_corrections_of(connection, frozenset(found))})) if found else ()


def unknown_corrections(
    connection: Transaction, device_id: str, event_ids: frozenset[str], *, except_ids: frozenset[str]
) -> tuple[str, ...]:
    """This device's corrections of these events, without `except_ids`, and the events: both are to be erased.

    Who asked for the erasure did not know the corrections, which would replace the payloads instead.
    """
    if not event_ids:
        return ()
    found: set[str] = set()
    for event in log_store.read_by_device(connection, device_id, after=0, types=(PAYLOAD_REDACTED,)):
        correction = correction_of(event)
        if correction is not None and correction[0] in event_ids and event.event_id not in except_ids:
            found |= {event.event_id, correction[0]}
    return tuple(sorted(found))


def repeating_events(connection: Transaction, event_ids: frozenset[str]) -> list[str]:
    """The events that hold the text of these events a second time."""
    from sync.document.capture.frequent_use import uses_of  # noqa: PLC0415 - at an erasure

    named = [event for name in event_ids if (event := log_store.find_event(connection, name)) is not None]
    facts = frozenset(_facts_of(connection, event_ids, named))
    entry_ids = frozenset(entry_id for event in named for entry_id in entry_ids_of(event))
    derived = frozenset(map(fact_entry_id, facts)).union(use.entry_id for event in named for use in uses_of(event))
    entry_ids |= derived
    edits = list(log_store.read_by_types(connection, (ENTRY_EDITED, ENTRY_REMOVED), after=0)) if entry_ids else []
    own_edits = [event for event in edits if text_in(event, "entry_id") in entry_ids]
    readded = [*_readding_events(connection, named, own_edits), *_derived_lines(connection, derived)]
    entry_ids |= {entry_id for event in readded for entry_id in entry_ids_of(event)}
    questions = {f"{event_id}.q" for event_id in event_ids}
    quoting = [event.event_id for event in (*readded, *(edit for edit in edits if _is_quoting(edit, entry_ids)))]
    event_ids = event_ids.union(quoting)  # corrections of these too
    sessions = {str(event.session_id) for event in named if event.type == EXCHANGE_RECORDED and event.session_id}
    compacted = list(log_store.read_by_types(connection, [DAY_FOLDED], after=0))
    days = {text_in(event, "entry_id") for event in compacted if questions & set(compacted_entry_hashes(event))}
    return [
        *quoting,
        *_repeated_exchanges(connection, event_ids),
        *whole_texts(connection, event_ids),
        *_record_originals(connection, event_ids, sessions),
        *(message for event_id in event_ids for message in _stored_messages_of(connection, event_id)),
        *_repeating_record_changes(connection, event_ids),
        *facts,
        *_lesson_versions(connection, named),
        *_note_versions(connection, named),
        *_corrections_of(connection, event_ids | facts),
        *(event.event_id for event in compacted if text_in(event, "entry_id") in days),
    ]


def entry_ids_of(event: Event) -> tuple[str, ...]:
    """The lines of the document that an event made, each with the id of its conflict copy.

    The copy is below a line that was changed twice, each time without knowing of the other. No other event names the
    copy: once this event is blank, the copy would stay as a line of unknown origin.
    """
    return tuple(
        line for entry_id in _named_entry_ids(event) for line in (entry_id, conflict_copy_id(entry_id, event.event_id))
    )


def _named_entry_ids(event: Event) -> tuple[str, ...]:
    if event.type == EXCHANGE_RECORDED:
        return *exchange_ids(event), *(entry.entry_id for entry in preference_entries_of(event))
    entry_id = event.payload.get("entry_id") if event.type in {ENTRY_ADDED, ENTRY_EDITED, DAY_FOLDED} else None
    return (entry_id,) if isinstance(entry_id, str) else ()


def _is_quoting(event: Event, entry_ids: frozenset[str]) -> bool:
    """Whether an event holds former text of these lines, or a hash from which that text could be guessed."""
    if event.type == DAY_FOLDED:
        return not entry_ids.isdisjoint(compacted_entry_hashes(event))
    is_edit = event.type == ENTRY_EDITED or "base_hash" in event.payload
    return is_edit and text_in(event, "entry_id") in entry_ids


def _is_derived(event: Event, entry_ids: frozenset[str]) -> bool:
    """Whether the program wrote one of these lines with this event."""
    return event.type == ENTRY_ADDED and "derived" in event.payload and event.payload.get("entry_id") in entry_ids


def _readding_events(connection: Transaction, erased: Sequence[Event], edits: Sequence[Event]) -> Iterator[Event]:
    """The additions of lines that had left the document: restored or typed again, a line has another id.

    `edits`: the edits and removals of these lines. Many answers read alike: one counts if it follows such a line.
    """
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for event in (*erased, *edits):
        for entry_id, text in _lines_with_text(event):
            texts[entry_id].add(text)
    removed_at: dict[tuple[str, str], int] = {}
    for event in edits:
        for text in texts[event.payload["entry_id"]] if event.type == ENTRY_REMOVED else ():
            removed_at.setdefault((str(event.payload.get("section")), text), event.position)
    entry_ids = set(texts)
    after = min(removed_at.values(), default=0)
    for event in log_store.read_by_types(connection, [ENTRY_ADDED], after=after) if removed_at else ():
        for entry_id, text in _lines_with_text(event):
            position = removed_at.get((str(event.payload.get("section")), text))
            follows = not text.startswith(ANSWER_PREFIXES) or text_in(event, "after") in entry_ids
            if position is not None and position < event.position and follows:
                entry_ids.add(entry_id)
                yield event


def _lines_with_text(event: Event) -> Iterator[tuple[str, str]]:
    """The ids and texts of the lines that an event holds."""
    if event.type == EXCHANGE_RECORDED:
        yield from zip(exchange_ids(event), own_lines_of(event) or (), strict=False)
        yield from ((entry.entry_id, entry.text) for entry in preference_entries_of(event))
    entry_id, text = event.payload.get("entry_id"), event.payload.get("text")
    if event.type in MANUAL_TYPES and isinstance(entry_id, str) and isinstance(text, str):
        yield entry_id, text


def _repeated_exchanges(connection: Transaction, event_ids: frozenset[str]) -> Iterator[str]:
    for event in log_store.read_by_types(connection, [EXCHANGE_RECORDED], after=0):
        if repeated_exchange_id(event) in event_ids:
            yield event.event_id


def whole_texts(connection: Transaction, event_ids: Iterable[str]) -> Iterator[str]:
    """The whole texts of these exchanges that this device keeps."""
    names = (f"{event_id}{TEXT_SUFFIX}" for event_id in event_ids)
    yield from (name for name in names if log_store.find_event(connection, name) is not None)


def _record_originals(connection: Transaction, event_ids: frozenset[str], sessions: Collection[str]) -> Iterator[str]:
    """What this device alone shows of daily records: unredacted text, and that of exchanges of these sessions."""
    for event in log_store.read_by_types(connection, [SESSION_ORIGINAL], after=0):
        if text_in(event, "of") in event_ids or text_in(event, "whole") in sessions:
            yield event.event_id


def _repeating_record_changes(connection: Transaction, event_ids: frozenset[str]) -> Iterator[str]:
    """The changes of daily records that leave a record with the same content."""
    records = log_store.read_by_types(connection, RECORD_TYPES, after=0)
    changes = [event for event in records if "record_id" in event.payload]
    contents = [_record_content(event) for event in changes if event.event_id in event_ids]
    yield from (event.event_id for event in changes if _record_content(event) in contents)


def _derived_lines(connection: Transaction, entry_ids: frozenset[str]) -> Iterator[Event]:
    """The additions of these lines, which the program wrote from the log."""
    for event in log_store.read_by_types(connection, [ENTRY_ADDED], after=0) if entry_ids else ():
        if text_in(event, "entry_id") in entry_ids:
            yield event


def _facts_of(connection: Transaction, event_ids: frozenset[str], named: Sequence[Event]) -> Iterator[str]:
    """The facts stated in these exchanges or shown by these lines, and the other versions of these facts.

    The versions of a fact: edits, and its first text.
    """
    texts = list(log_store.read_by_types(connection, FACT_TEXT_TYPES, after=0))
    lines = {text_in(event, "entry_id") for event in named if event.type in MANUAL_TYPES}
    facts = {
        event.event_id
        for event in texts
        if event.type == MEMORY_FACT and (_is_stated_in(event, event_ids) or fact_entry_id(event.event_id) in lines)
    }
    answered = {event.event_id: _answered_facts(event) for event in texts if event.type == FACT_EDITED}
    facts |= {name for event_id, names in answered.items() if event_id in event_ids for name in names}
    yield from facts
    yield from (event_id for event_id, names in answered.items() if not names.isdisjoint(facts))


def _is_stated_in(fact: Event, event_ids: frozenset[str]) -> bool:
    return fact.event_id in event_ids or not event_ids.isdisjoint(_evidence_of(fact))


def _evidence_of(event: Event) -> frozenset[str]:
    """The ids of the events that a payload names as its evidence."""
    evidence = event.payload.get("evidence")
    return frozenset(name for name in (evidence if isinstance(evidence, list) else ()) if isinstance(name, str))


def _answered_facts(answer: Event) -> frozenset[str]:
    """The ids of the statements that an answer about a fact names."""
    first, others = answer.payload.get("fact_id"), answer.payload.get("also_ids")
    names = (first, *(others if isinstance(others, list) else ()))
    return frozenset(name for name in names if isinstance(name, str))


def _lesson_versions(connection: Transaction, erased: Sequence[Event]) -> Iterator[str]:
    """The other versions of a lesson, or of a correction's feedback: without them, an older text would come back."""
    types = (LESSON_LEARNED, LESSON_EDITED)
    lesson_ids = {text_in(event, "lesson_id") for event in erased if event.type in types}
    feedback = {event.event_id for event in erased if event.type == USER_FEEDBACK}
    for event in log_store.read_by_types(connection, types, after=0) if lesson_ids or feedback else ():
        if text_in(event, "lesson_id") in lesson_ids or not feedback.isdisjoint(_evidence_of(event)):
            yield event.event_id


def _note_versions(connection: Transaction, erased: Sequence[Event]) -> Iterator[str]:
    """The other versions of a note, and the questions about it."""
    notes = {(event.project_id, _note_id_of(event)) for event in erased if event.type in NOTE_TEXT_TYPES}
    for event in log_store.read_by_types(connection, NOTE_TEXT_TYPES, after=0) if notes else ():
        note_ids = {text_in(event, "note_id"), text_in(event, "new_note_id")} - {None, ""}
        if any((event.project_id, note_id) in notes for note_id in note_ids):
            yield event.event_id


def _note_id_of(event: Event) -> Any:
    """The note of an event; of a question, the note that it would write."""
    return event.payload.get("new_note_id" if event.type == MEMORY_QUESTION_ASKED else "note_id")


def _record_content(event: Event) -> tuple[Any, ...]:
    return tuple(event.payload.get(name) for name in RECORD_FIELDS)


def _corrections_of(connection: Transaction, event_ids: frozenset[str]) -> Iterator[str]:
    for event in log_store.read_by_types(connection, [PAYLOAD_REDACTED], after=0):
        correction = correction_of(event)
        if correction is not None and correction[0] in event_ids:
            yield event.event_id


def _stored_messages_of(connection: Transaction, event_id: str) -> Iterator[str]:
    """The stored messages of an exchange: they have the next numbers of its replica, and its time.

    Archived messages are not found here; they are in the archive and in the cloud.
    """
    exchange = log_store.find_event(connection, event_id)
    if exchange is None or exchange.type != EXCHANGE_RECORDED:
        return
    for number, event in enumerate(log_store.read_later_of_replica(connection, exchange), exchange.replica_seq + 1):
        is_other = event.replica_seq != number or event.session_id != exchange.session_id
        is_part = "part" in event.payload if event.payload else event.ts == exchange.ts
        if is_other or event.type != MESSAGE or not is_part:
            return
        yield event.event_id
