"""A deed before it is recorded: the change of one record, as the book decides it, and what its event will say. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sync.memory.daily.book import Book
from sync.memory.daily.model import (
    EDITED,
    MARKED,
    RECORDED,
    REMOVED,
    Author,
    Content,
    Mark,
    Record,
    content_payload,
    marks_of,
    record_payload,
)
from sync.memory.daily.tidying import Fold

IMPORTANT: Final = 0.9  # the importance of what a person has marked so
ORDINARY: Final = 0.5


@dataclass(frozen=True, slots=True)
class Deed:
    """`record`: of a recording or an edit, as it then is, else as it was. `event_id`: where it was given before."""

    kind: str
    record: Record
    payload: dict[str, Any]
    event_id: str | None = None


Wish = Callable[[Book], Sequence[Deed]]
"""What is to be done, decided from the book as it is by then."""


def recording(record: Record, event_id: str | None = None) -> Deed:
    return Deed(RECORDED, record, {**record_payload(record), "importance": _importance(record.marks)}, event_id)


def editing(
    known: Record,
    said: Content,
    parts: Sequence[str],
    *,
    by: Author,
    until: str | None = None,
    event_id: str | None = None,
) -> Deed:
    """Some parts of a record become what `said` has for them."""
    then = replace(known, content=replace(known.content, **{part: getattr(said, part) for part in parts}))
    return Deed(EDITED, then, {"changed": list(parts), "by": by, "until_event_id": until, **after(then)}, event_id)


def removing(known: Record, *, reason: str, into: str | None = None) -> Deed:
    return Deed(REMOVED, known, {"record_id": known.record_id, "gone": True, "reason": reason, "into": into})


def marking(known: Record, mark: Mark, *, on: bool) -> Deed | None:
    """None where nothing changes; that a record was looked at is said each time."""
    if on == (mark in known.marks) and mark != "reviewed":
        return None
    marks = {*known.marks, mark} if on else {*known.marks} - {mark}
    return Deed(MARKED, known, {"mark": mark, "on": on, **after(replace(known, marks=marks_of(marks)))})


def putting_away(record_id: str, book: Book) -> list[Deed]:
    """A record that is older than it is to be kept; nothing where it went meanwhile."""
    known = book.records.get(record_id)
    deed = marking(known, "expired", on=True) if known is not None else None
    return [] if deed is None else [deed]


def folding(fold: Fold, book: Book) -> list[Deed]:
    """What a record takes in, and the repeats that go; nothing where that record went meanwhile."""
    into = book.records.get(fold.into.record_id)
    if into is None:
        return []
    parts = [part for part in into.content.changed(fold.content) if part != "topic"]
    repeats = (known for one in fold.folded if (known := book.records.get(one.record_id)) is not None)
    edits = [editing(into, fold.content, parts, by="hand")] if parts else []
    return edits + [removing(known, reason="merged", into=into.record_id) for known in repeats]


def after(record: Record) -> dict[str, Any]:
    """What readers of an event need to know of the record after it."""
    return {
        "record_id": record.record_id,
        **content_payload(record.content),
        "marks": list(record.marks),
        "importance": _importance(record.marks),
    }


def _importance(marks: Sequence[Mark]) -> float:
    return IMPORTANT if "important" in marks else ORDINARY
