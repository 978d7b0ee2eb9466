"""A deed before it is recorded: the change of one record, as the book decides it, and what its event will say. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sync.daily.model import Author, Content, Mark, Record, content_payload, marks_of, record_payload
from sync.daily.records.maintenance import RecordMerge
from sync.daily.records.reducer import DailyRecords
from sync.log.event_types import SESSION_EDITED, SESSION_MARKED, SESSION_RECORDED, SESSION_REMOVED

IMPORTANT_WEIGHT: Final = 0.9  # the importance of what a person has marked so
DEFAULT_WEIGHT: Final = 0.5


@dataclass(frozen=True, slots=True)
class RecordChange:
    """`record`: of a recording or an edit, as it then is, else as it was. `event_id`: where it was given before."""

    event_type: str
    record: Record
    payload: dict[str, Any]
    event_id: str | None = None


PlannedChange = Callable[[DailyRecords], Sequence[RecordChange]]
"""What is to be done, decided from the book as it is by then."""


def create_record(record: Record, event_id: str | None = None) -> RecordChange:
    return RecordChange(
        SESSION_RECORDED, record, {**record_payload(record), "importance": _importance(record.marks)}, event_id
    )


def edit_record(
    record: Record,
    content: Content,
    parts: Sequence[str],
    *,
    by: Author,
    until_event_id: str | None = None,
    event_id: str | None = None,
) -> RecordChange:
    """Some parts of a record become what `said` has for them."""
    then = replace(record, content=replace(record.content, **{part: getattr(content, part) for part in parts}))
    return RecordChange(
        SESSION_EDITED,
        then,
        {"changed": list(parts), "by": by, "until_event_id": until_event_id, **payload_after(then)},
        event_id,
    )


def remove_record(record: Record, *, reason: str, merged_into: str | None = None) -> RecordChange:
    return RecordChange(
        SESSION_REMOVED, record, {"record_id": record.record_id, "gone": True, "reason": reason, "into": merged_into}
    )


def mark_record(record: Record, mark: Mark, *, on: bool) -> RecordChange | None:
    """None where nothing changes; that a record was looked at is said each time."""
    if on == (mark in record.marks) and mark != "reviewed":
        return None
    marks = {*record.marks, mark} if on else {*record.marks} - {mark}
    return RecordChange(
        SESSION_MARKED, record, {"mark": mark, "on": on, **payload_after(replace(record, marks=marks_of(marks)))}
    )


def expire_record(record_id: str, records: DailyRecords) -> list[RecordChange]:
    """A record that is older than it is to be kept; nothing where it went meanwhile."""
    known = records.by_id.get(record_id)
    deed = mark_record(known, "expired", on=True) if known is not None else None
    return [] if deed is None else [deed]


def merge_records(merge: RecordMerge, records: DailyRecords) -> list[RecordChange]:
    """What a record takes in, and the repeats that go; nothing where that record went meanwhile."""
    into = records.by_id.get(merge.target.record_id)
    if into is None:
        return []
    parts = [part for part in into.content.changed_parts(merge.content) if part != "topic"]
    repeats = (known for one in merge.repeats if (known := records.by_id.get(one.record_id)) is not None)
    edits = [edit_record(into, merge.content, parts, by="hand")] if parts else []
    return edits + [remove_record(known, reason="merged", merged_into=into.record_id) for known in repeats]


def payload_after(record: Record) -> dict[str, Any]:
    """What readers of an event need to know of the record after it."""
    return {
        "record_id": record.record_id,
        **content_payload(record.content),
        "marks": list(record.marks),
        "importance": _importance(record.marks),
    }


def _importance(marks: Sequence[Mark]) -> float:
    return IMPORTANT_WEIGHT if "important" in marks else DEFAULT_WEIGHT
