"""Events → all records. Pure.

Decisions
    The order is the log's own (HLC, then id), so every device tells the same story whatever arrived first.
    Clocks differ by weeks, and HLCs as much: a deed that comes before its record in that order is told right after it.
    An undo takes one deed out of the story, and may itself be taken out. What is left is told from the beginning.
    What comes after all that was told, and takes none of it back, is told where the story ended: beside thousands of
    records a deed would else cost the telling of all. Who goes on and who begins anew know the same book.
    An edit changes the parts that it names and no other: two devices that edit different parts lose nothing.
    What a record's number is on a page is not decided here (`numbering.py`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sync.errors import InvalidInput
from sync.log.model import Event, forgotten_by
from sync.log.payloads import SKIPPED
from sync.log.withdrawn import TAKING_BACK, Withdrawn
from sync.memory.daily.model import (
    DEEDS,
    EDITED,
    MARKED,
    MARKS,
    ORIGINAL,
    RECORDED,
    REMOVED,
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
        """The newest deed of a device that may be undone. What was not saved cannot come back: a skip is none."""
        own = (event for event in reversed(self.deeds) if event.device_id == device_id)
        return next((event for event in own if event.type not in {UNDONE, SKIPPED}), None)


def book_of(events: Iterable[Event]) -> Book:
    """The story that these events tell. An event that makes no sense is passed over."""
    return Story(events).book()


class Story:
    """The story as far as it was told."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        ordered = sorted(events, key=_place)
        self._withdrawn = Withdrawn()
        self._withdrawn.hear(ordered)
        self._undone = _undone([self._withdrawn.left_of(event) for event in ordered])
        # what was taken away may have been said of any record
        self._taken = max((event.position for event in ordered if forgotten_by(event)), default=0)
        self._originals: dict[str, Event] = {}
        self._records = _Records()
        self._held: list[Event] = []
        self._spoken_of: dict[str, int] = {}  # the position of what was said last of each record
        self._ever: set[str] = set()
        self._updated_at = ""
        self._end = ("", "")
        self._tell(ordered)

    def go_on(self, events: Iterable[Event]) -> bool:
        """Tell these too where that is the story they tell with all before; else tell none of them, and False."""
        ordered = sorted(events, key=_place)
        if any(_place(event) <= self._end or self._changes_what_was_told(event) for event in ordered):
            return False
        self._tell(ordered)
        return True

    def book(self) -> Book:
        records = self._records
        return Book(
            records=dict(sorted(records.known.items(), key=lambda item: item[1].moment)),
            gone=dict(records.gone),
            skipped=frozenset(records.skipped),
            deeds=tuple(self._held),
            updated_at=self._updated_at,
            said_at={name: max(self._spoken_of.get(name, 0), self._taken) for name in records.known},
            told=tuple(records.told),
            ever=frozenset(self._ever),
        )

    def _changes_what_was_told(self, event: Event) -> bool:
        if (of := _original_of(event)) is not None:
            return of in self._ever
        return event.type == UNDONE or event.type in TAKING_BACK

    def _tell(self, ordered: Sequence[Event]) -> None:
        """Tell what comes next, in its order."""
        said = [left for event in ordered if (left := self._withdrawn.left_of(event)).payload]
        self._originals.update((of, event) for event in said if (of := _original_of(event)) is not None)
        held = [event for event in said if event.type in DEEDS and event.event_id not in self._undone]
        for event in held:
            with suppress(InvalidInput):  # of another program, or a later one
                self._records.tell(event, self._originals.get(event.event_id))
        self._held += held
        self._updated_at = max([self._updated_at, *(event.ts for event in said)])
        self._ever.update(event.event_id for event in ordered if event.type in DEEDS)
        for event in ordered:
            if isinstance(record_id := event.payload.get("record_id"), str):
                self._spoken_of[record_id] = max(self._spoken_of.get(record_id, 0), event.position)
            self._end = _place(event)


def _place(event: Event) -> tuple[str, str]:
    """Where an event stands in the story."""
    return event.hlc, event.event_id


def _original_of(event: Event) -> str | None:
    """The deed whose words before redaction an event holds; None for any other event."""
    of = event.payload.get("of") if event.type == ORIGINAL else None
    return of if isinstance(of, str) else None


def _undone(events: Sequence[Event]) -> set[str]:
    """The deeds that are taken back: an undo that is itself undone takes nothing back, wherever it stands."""
    undoes = (event for event in events if event.type == UNDONE)
    targets = {event.event_id: of for event in undoes if isinstance(of := event.payload.get("undoes"), str)}
    undecided = Counter(targets.values())  # by a deed, the undos of it of which it is not known yet whether they hold
    decided = [undo for undo in targets if not undecided[undo]]
    found: set[str] = set()
    while decided:
        undo = decided.pop()
        target = targets[undo]
        if undo not in found:
            found.add(target)
        undecided[target] -= 1
        if target in targets and not undecided[target]:
            decided.append(target)
    return found


class _Records:
    """Records while their events are told."""

    def __init__(self) -> None:
        self.known: dict[str, Record] = {}
        self.gone: dict[str, Record] = {}
        self.told: list[str] = []
        self.skipped: set[str] = set()
        self._early: dict[str, list[tuple[Event, Event | None]]] = {}  # deeds whose record was not told yet

    def tell(self, event: Event, original: Event | None) -> None:
        payload = event.payload
        if event.type == RECORDED:
            self._record(event, original)
        elif event.type == SKIPPED:
            self._skip(payload.get("session_id"), on=payload.get("on") is not False)
        elif (known := self.known.get(record_id := str(payload.get("record_id")))) is None:
            if record_id not in self.gone:
                self._early.setdefault(record_id, []).append((event, original))
        elif event.type == EDITED:
            self.known[known.record_id] = _edited(known, event, original)
        elif event.type == REMOVED:
            self.gone[known.record_id] = self.known.pop(known.record_id)
        elif event.type == MARKED and (mark := payload.get("mark")) in MARKS:
            on = payload.get("on") is not False
            self.known[known.record_id] = with_mark(known, mark, on=on, day=event.local_date)

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
        if found.record_id not in self.known and found.record_id not in self.gone:
            self.known[found.record_id] = found
            self.told.append(found.record_id)
            for deed, its_original in self._early.pop(found.record_id, ()):
                with suppress(InvalidInput):
                    self.tell(deed, its_original)

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
