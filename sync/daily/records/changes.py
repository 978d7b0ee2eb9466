"""Changes of records, as decided from the current records and before they become events. Pure."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.daily.model import Author, Content, Mark, Record, content_payload, marks_of, record_payload
from sync.daily.records.maintenance import RecordMerge
from sync.daily.records.reducer import DailyRecords
from sync.log.authorship import FORMER_ORIGIN, PROPOSING_DOORS, Authorship
from sync.log.authorship import Author as Writer
from sync.log.event_types import SESSION_EDITED, SESSION_MARKED, SESSION_RECORDED, SESSION_REMOVED
from sync.log.model import Door, Origin

IMPORTANT_WEIGHT: Final = 0.9  # of a record that the user marked as important
DEFAULT_WEIGHT: Final = 0.5
_DOORS: Final = {Writer.USER: Door.HAND, Writer.PROGRAM: Door.PROGRAM, Writer.APP: Door.APP, Writer.FILE: Door.IMPORT}


class RecordChange(msgspec.Struct, frozen=True):
    """One event to append. `record`: as it will be after a recording or an edit, else as it is now.

    `event_id`: the event's id if it was chosen beforehand. `original`: the content that this device shows, if `record`
    has another; `is_whole`: it is of whole texts. `is_taken`: the person made a project file their own.
    """

    event_type: str
    record: Record
    payload: dict[str, Any]
    event_id: str | None = None
    original: Content | None = None
    is_whole: bool = False
    is_taken: bool = False

    @property
    def original_payload(self) -> dict[str, Any]:
        """What this device shows, with its session if it is of whole texts, which may be erased."""
        whole = {"whole": self.record.session_id or ""} if self.is_whole else {}
        return {**content_payload(self.original or self.record.content), **whole}

    @property
    def author_fields(self) -> dict[str, Any]:
        """The origin and the door of the event. Changes leave a record to its author."""
        if self.is_taken:
            return {"origin": Origin.USER, "door": Door.COMMAND}
        return author_fields(self.record)


PlannedChange = Callable[[DailyRecords], Sequence[RecordChange]]
"""Decides the changes to make from the records as they are when it is called."""


def create_record(record: Record, event_id: str | None = None) -> RecordChange:
    return RecordChange(
        SESSION_RECORDED, record, {**record_payload(record), "importance": _importance(record.marks)}, event_id
    )


def session_record_id(written: Authorship, session_id: str | None, until_event_id: str | None) -> str | None:
    """The same id for the same state of a session, whichever process of this device records it."""
    if session_id is None or until_event_id is None:
        return None
    parts = written.device_id, written.author, session_id, until_event_id
    return "rec_" + sha256("\n".join(parts).encode()).hexdigest()[:32]


def edit_record(
    record: Record,
    content: Content,
    parts: Sequence[str],
    *,
    by: Author,
    until_event_id: str | None = None,
    event_id: str | None = None,
    shared: Content | None = None,
) -> RecordChange:
    """Replace the named parts of a record by those of `content`.

    `shared`: those parts in the event; else `content` without what only this device knows.
    """
    given = shared or content.without(record.content, record.shared_content)
    both = [
        replace(former, **{part: getattr(new, part) for part in parts})
        for former, new in ((record.content, content), (record.shared_content, given))
    ]
    then = replace(record, content=both[0], shared=None if both[0] == both[1] else both[1])
    payload = {"changed": list(parts), "by": by, "until_event_id": until_event_id, **payload_after(then)}
    original = then.content if then.shared is not None else None
    return RecordChange(SESSION_EDITED, then, payload, event_id, original, is_whole=original is not None)


def take_records(records: DailyRecords) -> list[RecordChange]:
    """Make the records of project files the person's own, as they are."""
    return [_take_record(record) for record in records.by_id.values() if record.is_project_file]


def _take_record(record: Record) -> RecordChange:
    then = replace(record, written=Authorship(Writer.USER, record.device_id, Door.HAND))
    payload = {"changed": [], "by": "hand", "until_event_id": record.until_event_id, **payload_after(then)}
    return RecordChange(SESSION_EDITED, then, payload, is_taken=True)


def remove_record(record: Record, *, reason: str, merged_into: str | None = None) -> RecordChange:
    return RecordChange(
        SESSION_REMOVED, record, {"record_id": record.record_id, "gone": True, "reason": reason, "into": merged_into}
    )


def mark_record(record: Record, mark: Mark, *, on: bool) -> RecordChange | None:
    """None if nothing changes. A review is noted each time."""
    if on == (mark in record.marks) and mark != "reviewed":
        return None
    marks = {*record.marks, mark} if on else {*record.marks} - {mark}
    return RecordChange(
        SESSION_MARKED, record, {"mark": mark, "on": on, **payload_after(replace(record, marks=marks_of(marks)))}
    )


def expire_record(record_id: str, records: DailyRecords) -> list[RecordChange]:
    """Mark a record as expired; no change if it no longer exists."""
    record = records.by_id.get(record_id)
    change = mark_record(record, "expired", on=True) if record is not None else None
    return [] if change is None else [change]


def merge_records(merge: RecordMerge, records: DailyRecords) -> list[RecordChange]:
    """Merge repeats into their first record and remove them; no change if that record no longer exists."""
    into = records.by_id.get(merge.target.record_id)
    if into is None:
        return []
    parts = [part for part in into.content.changed_parts(merge.content) if part != "topic"]
    repeats = [records.by_id[one.record_id] for one in merge.repeats if one.record_id in records.by_id]
    shared = merge.content
    for record in (into, *repeats):
        shared = shared.without(record.content, record.shared_content)
    edits = [edit_record(into, merge.content, parts, by="hand", shared=shared)] if parts else []
    return edits + [remove_record(repeat, reason="merged", merged_into=into.record_id) for repeat in repeats]


def author_fields(record: Record) -> dict[str, Any]:
    """The origin and the door of an event that holds a record: its text keeps its author."""
    written = record.written
    if not written.is_proven:
        return {"origin": Origin.IMPORTED, "door": Door.IMPORT}
    door = Door(written.door) if written.door in PROPOSING_DOORS else _DOORS.get(written.author)
    return {"origin": FORMER_ORIGIN[written.author], "door": door}


def payload_after(record: Record) -> dict[str, Any]:
    """What an event says of the record after the change."""
    return {
        "record_id": record.record_id,
        **content_payload(record.shared_content),
        "marks": list(record.marks),
        "importance": _importance(record.marks),
    }


def _importance(marks: Sequence[Mark]) -> float:
    return IMPORTANT_WEIGHT if "important" in marks else DEFAULT_WEIGHT
