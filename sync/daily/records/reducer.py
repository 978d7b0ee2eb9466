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

from sync.daily.model import MARKS, Record, content_of, record_from_payload, set_mark
from sync.errors import InvalidInput
from sync.log.event_types import (
    DAILY_UNDONE,
    RECORD_CHANGE_TYPES,
    RETRACTING_TYPES,
    SESSION_EDITED,
    SESSION_MARKED,
    SESSION_ORIGINAL,
    SESSION_RECORDED,
    SESSION_REMOVED,
    SESSION_SKIPPED,
)
from sync.log.model import Event, erased_by
from sync.log.retractions import Retractions

CONTENT_PARTS: Final = ("topic", "facts", "code", "tags")


@dataclass(frozen=True, slots=True)
class DailyRecords:
    """All records by id, oldest first. `gone`: those removed. `skipped`: sessions that are not to be kept.

    `said_at`: the position in the log from which on each record says what it says.
    """

    by_id: dict[str, Record] = field(default_factory=dict)
    removed: dict[str, Record] = field(default_factory=dict)
    skipped_sessions: frozenset[str] = frozenset()
    changes: tuple[Event, ...] = ()  # those that hold, oldest first
    updated_at: str = ""
    content_positions: dict[str, int] = field(default_factory=dict)
    record_ids: tuple[str, ...] = ()  # the ids of all records, in the order of the log
    all_change_ids: frozenset[str] = (
        frozenset()
    )  # the ids of all deeds, those included that are undone or forgotten by now

    def on_day(self, day: str) -> list[Record]:
        return [record for record in self.by_id.values() if record.date == day]

    def visible(self) -> list[Record]:
        """What pages show: all but what `clean` has put away."""
        return [record for record in self.by_id.values() if "expired" not in record.marks]

    def of_session(self, session_id: str) -> list[Record]:
        return [record for record in self.by_id.values() if record.session_id == session_id]

    def get(self, record_id: str) -> Record:
        found = self.by_id.get(record_id)
        if found is None:
            raise InvalidInput("no record has this id", field="id", hint="`daily list` shows the ids.")
        return found

    def all_records(self) -> list[Record]:
        """All there are, removed ones included, in the order in which they were recorded."""
        return [self.by_id.get(record_id) or self.removed[record_id] for record_id in self.record_ids]

    def last_undoable_change(self, device_id: str) -> Event | None:
        """The newest deed of a device that may be undone. What was not saved cannot come back: a skip is none."""
        own = (event for event in reversed(self.changes) if event.device_id == device_id)
        return next((event for event in own if event.type not in {DAILY_UNDONE, SESSION_SKIPPED}), None)


def reduce_events(events: Iterable[Event]) -> DailyRecords:
    """The story that these events tell. An event that makes no sense is passed over."""
    return RecordsReducer(events).current_records()


class RecordsReducer:
    """The story as far as it was told."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        ordered = sorted(events, key=_log_order)
        self._retractions = Retractions()
        self._retractions.apply(ordered)
        self._undone = _undone_ids([self._retractions.effective_event(event) for event in ordered])
        # what was taken away may have been said of any record
        self._last_erasure_position = max((event.position for event in ordered if erased_by(event)), default=0)
        self._originals: dict[str, Event] = {}
        self._records = _ReducedRecords()
        self._effective_changes: list[Event] = []
        self._last_positions: dict[str, int] = {}  # the position of what was said last of each record
        self._all_change_ids: set[str] = set()
        self._updated_at = ""
        self._last_order = ("", "")
        self._apply(ordered)

    def extend(self, events: Iterable[Event]) -> bool:
        """Tell these too where that is the story they tell with all before; else tell none of them, and False."""
        ordered = sorted(events, key=_log_order)
        if any(_log_order(event) <= self._last_order or self._affects_earlier_events(event) for event in ordered):
            return False
        self._apply(ordered)
        return True

    def current_records(self) -> DailyRecords:
        records = self._records
        return DailyRecords(
            by_id=dict(sorted(records.by_id.items(), key=lambda item: item[1].moment)),
            removed=dict(records.removed),
            skipped_sessions=frozenset(records.skipped_sessions),
            changes=tuple(self._effective_changes),
            updated_at=self._updated_at,
            content_positions={
                name: max(self._last_positions.get(name, 0), self._last_erasure_position) for name in records.by_id
            },
            record_ids=tuple(records.record_ids),
            all_change_ids=frozenset(self._all_change_ids),
        )

    def _affects_earlier_events(self, event: Event) -> bool:
        if (of := _original_of(event)) is not None:
            return of in self._all_change_ids
        return event.type == DAILY_UNDONE or event.type in RETRACTING_TYPES

    def _apply(self, ordered: Sequence[Event]) -> None:
        """Tell what comes next, in its order."""
        said = [left for event in ordered if (left := self._retractions.effective_event(event)).payload]
        self._originals.update((of, event) for event in said if (of := _original_of(event)) is not None)
        held = [event for event in said if event.type in RECORD_CHANGE_TYPES and event.event_id not in self._undone]
        for event in held:
            with suppress(InvalidInput):  # of another program, or a later one
                self._records.apply(event, self._originals.get(event.event_id))
        self._effective_changes += held
        self._updated_at = max([self._updated_at, *(event.ts for event in said)])
        self._all_change_ids.update(event.event_id for event in ordered if event.type in RECORD_CHANGE_TYPES)
        for event in ordered:
            if isinstance(record_id := event.payload.get("record_id"), str):
                self._last_positions[record_id] = max(self._last_positions.get(record_id, 0), event.position)
            self._last_order = _log_order(event)


def _log_order(event: Event) -> tuple[str, str]:
    """Where an event stands in the story."""
    return event.hlc, event.event_id


def _original_of(event: Event) -> str | None:
    """The deed whose words before redaction an event holds; None for any other event."""
    of = event.payload.get("of") if event.type == SESSION_ORIGINAL else None
    return of if isinstance(of, str) else None


def _undone_ids(events: Sequence[Event]) -> set[str]:
    """The deeds that are taken back: an undo that is itself undone takes nothing back, wherever it stands."""
    undoes = (event for event in events if event.type == DAILY_UNDONE)
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


class _ReducedRecords:
    """Records while their events are told."""

    def __init__(self) -> None:
        self.by_id: dict[str, Record] = {}
        self.removed: dict[str, Record] = {}
        self.record_ids: list[str] = []
        self.skipped_sessions: set[str] = set()
        self._pending_changes: dict[str, list[tuple[Event, Event | None]]] = {}  # deeds whose record was not told yet

    def apply(self, event: Event, original: Event | None) -> None:
        payload = event.payload
        if event.type == SESSION_RECORDED:
            self._add_record(event, original)
        elif event.type == SESSION_SKIPPED:
            self._set_skipped(payload.get("session_id"), on=payload.get("on") is not False)
        elif (known := self.by_id.get(record_id := str(payload.get("record_id")))) is None:
            if record_id not in self.removed:
                self._pending_changes.setdefault(record_id, []).append((event, original))
        elif event.type == SESSION_EDITED:
            self.by_id[known.record_id] = _apply_edit(known, event, original)
        elif event.type == SESSION_REMOVED:
            self.removed[known.record_id] = self.by_id.pop(known.record_id)
        elif event.type == SESSION_MARKED and (mark := payload.get("mark")) in MARKS:
            on = payload.get("on") is not False
            self.by_id[known.record_id] = set_mark(known, mark, on=on, day=event.local_date)

    def _add_record(self, event: Event, original: Event | None) -> None:
        found = record_from_payload(
            event.payload,
            event_id=event.event_id,
            project_id=event.project_id,
            project_path=event.project_path,
            device_id=event.device_id,
        )
        if original is not None:
            found = replace(found, content=content_of(original.payload))
        if found.record_id not in self.by_id and found.record_id not in self.removed:
            self.by_id[found.record_id] = found
            self.record_ids.append(found.record_id)
            for deed, its_original in self._pending_changes.pop(found.record_id, ()):
                with suppress(InvalidInput):
                    self.apply(deed, its_original)

    def _set_skipped(self, session_id: Any, *, on: bool) -> None:
        if isinstance(session_id, str):
            (self.skipped_sessions.add if on else self.skipped_sessions.discard)(session_id)


def _apply_edit(record: Record, event: Event, original: Event | None) -> Record:
    said = content_of((original or event).payload)
    changed = event.payload.get("changed")
    names = [name for name in CONTENT_PARTS if isinstance(changed, list) and name in changed]
    until = event.payload.get("until_event_id")
    found = replace(record.content, **{name: getattr(said, name) for name in names}) if names else record.content
    return replace(record, content=found, until_event_id=until if isinstance(until, str) else record.until_event_id)
