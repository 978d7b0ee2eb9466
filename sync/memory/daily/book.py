"""Events → all records. Pure.

Decisions
    The order is the log's own (HLC, then id), so every device tells the same story whatever arrived first.
    An undo takes one deed out of the story, and may itself be taken out. What is left is told from the beginning.
    An edit changes the parts that it names and no other: two devices that edit different parts lose nothing.
    What a record's number is on a page is not decided here (`numbering.py`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sync.errors import InvalidInput
from sync.log.model import Event, forgotten_by
from sync.log.withdrawn import Withdrawn
from sync.memory.daily.model import (
    DEEDS,
    EDITED,
    MARKED,
    MARKS,
    ORIGINAL,
    RECORDED,
    REMOVED,
    SKIPPED,
    UNDONE,
    Record,
    content_of,
    recorded,
    with_mark,
)

PARTS: Final = ("topic", "facts", "code", "tags")


@dataclass(frozen=True, slots=True)
class Book:
    """All records by id, oldest first. `gone`: those removed. `skipped`: sessions that are not to be kept.

    `said_at`: the position in the log from which on each record says what it says.
    """

    records: dict[str, Record] = field(default_factory=dict)
    gone: dict[str, Record] = field(default_factory=dict)
    skipped: frozenset[str] = frozenset()
    deeds: tuple[Event, ...] = ()  # those that hold, oldest first
    updated_at: str = ""
    said_at: dict[str, int] = field(default_factory=dict)
    told: tuple[str, ...] = ()  # the ids of all records, in the order of the log
    ever: frozenset[str] = frozenset()  # the ids of all deeds, those included that are undone or forgotten by now

    def of_day(self, day: str) -> list[Record]:
        return [record for record in self.records.values() if record.date == day]

    def shown(self) -> list[Record]:
        """What pages show: all but what `clean` has put away."""
        return [record for record in self.records.values() if "expired" not in record.marks]

    def of_session(self, session_id: str) -> list[Record]:
        return [record for record in self.records.values() if record.session_id == session_id]

    def record(self, record_id: str) -> Record:
        found = self.records.get(record_id)
        if found is None:
            raise InvalidInput("no record has this id", field="id", hint="`daily list` shows the ids.")
        return found

    def every(self) -> list[Record]:
        """All there are, removed ones included, in the order in which they were recorded."""
        return [self.records.get(record_id) or self.gone[record_id] for record_id in self.told]

    def last_deed(self, device_id: str) -> Event | None:
        """The newest deed of a device that may be undone."""
        own = (event for event in reversed(self.deeds) if event.device_id == device_id and event.type != UNDONE)
        return next(own, None)


def book_of(events: Iterable[Event]) -> Book:
    """The story that these events tell. An event that makes no sense is passed over."""
    ordered = sorted(events, key=lambda event: (event.hlc, event.event_id))
    withdrawn = Withdrawn()
    withdrawn.hear(ordered)
    said = [left for event in ordered if (left := withdrawn.left_of(event)).payload]
    undone = _undone(said)
    originals = {event.payload.get("of"): event for event in said if event.type == ORIGINAL}
    held = [event for event in said if event.type in DEEDS and event.event_id not in undone]
    story = _Story()
    for event in held:
        try:
            story.tell(event, originals.get(event.event_id))
        except InvalidInput:  # of another program, or a later one
            continue
    return Book(
        records=dict(sorted(story.records.items(), key=lambda item: item[1].moment)),
        gone=story.gone,
        skipped=frozenset(story.skipped),
        deeds=tuple(held),
        updated_at=max((event.ts for event in said), default=""),
        said_at=_said_at(ordered, story.records),
        told=tuple(story.told),
        ever=frozenset(event.event_id for event in ordered if event.type in DEEDS),
    )


def _said_at(events: Iterable[Event], records: Iterable[str]) -> dict[str, int]:
    """What was taken away may have been said of any record."""
    found: dict[str, int] = {}
    taken = 0
    for event in events:
        if forgotten_by(event):
            taken = max(taken, event.position)
        if isinstance(record_id := event.payload.get("record_id"), str):
            found[record_id] = max(found.get(record_id, 0), event.position)
    return {record_id: max(found.get(record_id, 0), taken) for record_id in records}


def _undone(events: Sequence[Event]) -> set[str]:
    """The deeds that are taken back: an undo that is itself undone takes nothing back."""
    found: set[str] = set()
    for event in reversed(events):
        target = event.payload.get("undoes")
        if event.type == UNDONE and event.event_id not in found and isinstance(target, str):
            found.add(target)
    return found


class _Story:
    """Records while their events are told."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.gone: dict[str, Record] = {}
        self.told: list[str] = []
        self.skipped: set[str] = set()

    def tell(self, event: Event, original: Event | None) -> None:
        payload = event.payload
        if event.type == RECORDED:
            self._record(event, original)
        elif event.type == SKIPPED:
            self._skip(payload.get("session_id"), on=payload.get("on") is not False)
        elif (known := self.records.get(str(payload.get("record_id")))) is None:
            return
        elif event.type == EDITED:
            self.records[known.record_id] = _edited(known, event, original)
        elif event.type == REMOVED:
            self.gone[known.record_id] = self.records.pop(known.record_id)
        elif event.type == MARKED and (mark := payload.get("mark")) in MARKS:
            on = payload.get("on") is not False
            self.records[known.record_id] = with_mark(known, mark, on=on, day=event.local_date)

    def _record(self, event: Event, original: Event | None) -> None:
        found = recorded(
            event.payload,
            event_id=event.event_id,
            project_id=event.project_id,
            project_path=event.project_path,
            device_id=event.device_id,
        )
        if original is not None:
            found = replace(found, content=content_of(original.payload))
        if found.record_id not in self.records and found.record_id not in self.gone:
            self.records[found.record_id] = found
            self.told.append(found.record_id)

    def _skip(self, session_id: Any, *, on: bool) -> None:
        if isinstance(session_id, str):
            (self.skipped.add if on else self.skipped.discard)(session_id)


def _edited(known: Record, event: Event, original: Event | None) -> Record:
    said = content_of((original or event).payload)
    changed = event.payload.get("changed")
    names = [name for name in PARTS if isinstance(changed, list) and name in changed]
    until = event.payload.get("until_event_id")
    found = replace(known.content, **{name: getattr(said, name) for name in names}) if names else known.content
    return replace(known, content=found, until_event_id=until if isinstance(until, str) else known.until_event_id)
