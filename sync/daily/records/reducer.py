"""Reduce events to daily records. Pure.

Events apply in the log's order (HLC, then id), so every device gets the same records. A change that precedes its record
in that order, because clocks differ, applies right after it. An edit changes only the parts that it names.
An undo removes one change and may itself be undone. What a device changes in the records of another one waits, without
effect, until that device is admitted; so does a record under the id of another one. Page numbers are decided elsewhere
(`numbering.py`).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.daily.model import MARKS, Record, content_of, record_from_payload, set_mark
from sync.errors import InvalidInput
from sync.log.authorship import PROPOSING_DOORS, Authorship, author_of
from sync.log.devices.device_view import EVERY_DEVICE, DeviceView
from sync.log.event_types import (
    DAILY_UNDONE,
    HIDING_TYPES,
    RECORD_CHANGE_TYPES,
    SESSION_EDITED,
    SESSION_MARKED,
    SESSION_ORIGINAL,
    SESSION_RECORDED,
    SESSION_REMOVED,
    SESSION_SKIPPED,
)
from sync.log.identity.same_event import client_record_id
from sync.log.model import Door, Event, changed_by, text_in
from sync.log.retractions import Retractions

CONTENT_PARTS: Final = ("topic", "facts", "code", "tags")


class DailyRecords(msgspec.Struct, frozen=True):
    """All records by id, oldest first."""

    by_id: dict[str, Record] = msgspec.field(default_factory=dict)
    removed: dict[str, Record] = msgspec.field(default_factory=dict)
    changes: tuple[Event, ...] = ()  # neither undone, nor erased, nor waiting; oldest first
    updated_at: str = ""
    content_positions: dict[str, int] = msgspec.field(default_factory=dict)  # by record: its last change
    record_ids: tuple[str, ...] = ()  # in the order of the log, removed records included
    all_change_ids: frozenset[str] = frozenset()  # undone and erased changes included

    def visible(self) -> list[Record]:
        """The records that pages show: all but the expired ones."""
        return [record for record in self.by_id.values() if "expired" not in record.marks]

    def of_session(self, session_id: str, written: Authorship, own_device_ids: Collection[str]) -> list[Record]:
        """The records of a session that this device made of one author's words, or before doors."""
        own = (one for one in self.by_id.values() if one.device_id in own_device_ids and one.written.is_proven)
        said = (one for one in own if one.written.author is written.author or one.written.lacks_door)
        return [record for record in said if record.session_id == session_id]

    def get(self, record_id: str, own_device_ids: Collection[str] = ()) -> Record:
        """The record with an id, or that a program of these devices gave this id. Raises InvalidInput."""
        names = record_id, *(client_record_id(device_id, record_id) for device_id in own_device_ids)
        record = next((self.by_id[name] for name in names if name in self.by_id), None)
        if record is None:
            raise InvalidInput("no record has this id", field="id", hint="`xiaobai-memory daily list` shows the ids.")
        return record

    def all_records(self) -> list[Record]:
        """All records, removed ones included, in the order of the log."""
        return [self.by_id.get(record_id) or self.removed[record_id] for record_id in self.record_ids]

    def last_undoable_change(self, device_id: str) -> Event | None:
        """The newest change of a device that can be undone. A skip cannot: nothing was saved."""
        own = (event for event in reversed(self.changes) if event.device_id == device_id)
        return next((event for event in own if event.type not in {DAILY_UNDONE, SESSION_SKIPPED}), None)


def reduce_events(events: Iterable[Event], view: DeviceView = EVERY_DEVICE) -> DailyRecords:
    """Reduce these events as a device sees them, ignoring malformed ones."""
    return RecordsReducer(events, view).current_records()


class RecordsReducer:
    """The records as of the events applied so far."""

    def __init__(self, events: Iterable[Event] = (), view: DeviceView = EVERY_DEVICE) -> None:
        ordered = sorted(events, key=_log_order)
        self._view = view
        self._has_untrusted = not all(map(view.is_trusted, ordered))  # what these change depends on later events
        self._retractions = Retractions()
        self._retractions.apply(ordered)
        self._undone = _undone_ids([self._retractions.effective_event(event) for event in ordered], view)
        # an erased event may have belonged to any record
        self._last_erasure_position = max((event.position for event in ordered if changed_by(event)), default=0)
        self._originals: dict[str, Event] = {}
        self._records = _ReducedRecords(view)
        self._effective_changes: list[Event] = []
        self._last_positions: dict[str, int] = {}  # by record, the position of its last event
        self._all_change_ids: set[str] = set()
        self._updated_at = ""
        self._last_order = ("", "")
        self._apply(ordered)

    def extend(self, events: Iterable[Event]) -> bool:
        """Apply more events incrementally; False, and nothing applied, if they change the effect of earlier ones."""
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
            changes=tuple(event for event in self._effective_changes if event.event_id not in self._records.waiting),
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
        is_certain = self._view.is_trusted(event) and not self._has_untrusted
        return event.type == DAILY_UNDONE or event.type in HIDING_TYPES or not is_certain

    def _apply(self, ordered: Sequence[Event]) -> None:
        present = [left for event in ordered if (left := self._retractions.effective_event(event)).payload]
        trusted = filter(self._view.is_trusted, present)
        self._originals.update((of, event) for event in trusted if (of := _original_of(event)) is not None)
        changes = [
            event for event in present if event.type in RECORD_CHANGE_TYPES and event.event_id not in self._undone
        ]
        recorded = (event for event in changes if event.type == SESSION_RECORDED and self._view.is_trusted(event))
        self._records.trusted_ids.update(text_in(event, "record_id") for event in recorded)
        for event in changes:
            with suppress(InvalidInput):  # written by another program, or by a later version
                self._records.apply(event, self._originals.get(event.event_id))
        self._effective_changes += changes
        self._updated_at = max([self._updated_at, *(event.ts for event in present)])
        self._all_change_ids.update(event.event_id for event in ordered if event.type in RECORD_CHANGE_TYPES)
        for event in ordered:
            if event.event_id not in self._records.waiting and (record_id := text_in(event, "record_id")) is not None:
                self._last_positions[record_id] = max(self._last_positions.get(record_id, 0), event.position)
            self._last_order = _log_order(event)


def _log_order(event: Event) -> tuple[str, str]:
    return event.hlc, event.event_id


def _original_of(event: Event) -> str | None:
    """The change whose unredacted text this event holds; None for any other event."""
    of = event.payload.get("of") if event.type == SESSION_ORIGINAL else None
    return of if isinstance(of, str) else None


def _undone_ids(events: Sequence[Event], view: DeviceView) -> set[str]:
    """The ids of all undone changes. An undo that is itself undone has no effect, whatever their order."""
    authors = {event.event_id: author_of(event) for event in events}
    undoes = ((event, text_in(event, "undoes") or "") for event in events if event.type == DAILY_UNDONE)
    targets = {event.event_id: of for event, of in undoes if view.may_change(event, authors.get(of))}
    undecided = Counter(targets.values())  # by change, the undos of it whose own effect is not yet decided
    decided = [undo for undo in targets if not undecided[undo]]
    undone: set[str] = set()
    while decided:
        undo = decided.pop()
        target = targets[undo]
        if undo not in undone:
            undone.add(target)
        undecided[target] -= 1
        if target in targets and not undecided[target]:
            decided.append(target)
    return undone


class _ReducedRecords:
    """Mutable state of the reduction."""

    def __init__(self, view: DeviceView) -> None:
        self._view = view
        self.waiting: set[str] = set()  # the changes that wait until their device is admitted
        self.trusted_ids: set[str | None] = set()  # the records that this device or an admitted one recorded
        self.by_id: dict[str, Record] = {}
        self.removed: dict[str, Record] = {}
        self.record_ids: list[str] = []
        self._pending_changes: dict[str, list[tuple[Event, Event | None]]] = {}  # that precede their record

    def apply(self, event: Event, original: Event | None) -> None:
        if event.type == SESSION_RECORDED:
            self._add_record(event, original)
        elif event.type != SESSION_SKIPPED:
            self._change_record(str(event.payload.get("record_id")), event, original)

    def _change_record(self, record_id: str, event: Event, original: Event | None) -> None:
        record = self.by_id.get(record_id)
        known = record or self.removed.get(record_id)
        if known is None:
            self._pending_changes.setdefault(record_id, []).append((event, original))
        may_change = self._view.may_change(event, None if known is None else known.written)
        (self.waiting.discard if may_change else self.waiting.add)(event.event_id)
        if record is None or not may_change:
            return
        if event.door in PROPOSING_DOORS and author_of(event).author is not record.written.author:
            return  # a program or a file changes no record of another author
        if event.type == SESSION_EDITED:
            edited = _apply_edit(record, event, original)
            label = self._view.label_of(event) if edited.content != record.content else None
            self.by_id[record_id] = replace(edited, label=label or record.label)
        elif event.type == SESSION_REMOVED:
            self.removed[record_id] = self.by_id.pop(record_id)
        elif event.type == SESSION_MARKED and (mark := event.payload.get("mark")) in MARKS:
            on = event.payload.get("on") is not False
            self.by_id[record_id] = set_mark(record, mark, on=on, day=event.local_date)

    def _add_record(self, event: Event, original: Event | None) -> None:
        record = record_from_payload(
            event.payload,
            event_id=event.event_id,
            project_id=event.project_id,
            project_path=event.project_path,
            device_id=event.device_id,
            written=author_of(event),
            label=self._view.label_of(event),
        )
        if not self._view.is_trusted(event) and record.record_id in self.trusted_ids:
            self.waiting.add(event.event_id)
            return
        if original is not None:
            shared = record.content if _is_whole(original) else None
            record = replace(record, content=content_of(original.payload), shared=shared)
        if record.record_id not in self.by_id and record.record_id not in self.removed:
            self.by_id[record.record_id] = record
            self.record_ids.append(record.record_id)
            for change, its_original in self._pending_changes.pop(record.record_id, ()):
                with suppress(InvalidInput):
                    self.apply(change, its_original)


def _apply_edit(record: Record, event: Event, original: Event | None) -> Record:
    edited, given = content_of((original or event).payload), content_of(event.payload)
    changed = event.payload.get("changed")
    names = [name for name in CONTENT_PARTS if isinstance(changed, list) and name in changed]
    until = event.payload.get("until_event_id")
    content = replace(record.content, **{name: getattr(edited, name) for name in names})
    said = replace(record.shared_content, **{name: getattr(given, name) for name in names})
    shared = said if record.shared is not None or _is_whole(original) else None
    until_event_id = until if isinstance(until, str) else record.until_event_id
    is_taken = record.is_project_file and event.door == Door.COMMAND
    written = author_of(event) if is_taken else record.written
    return replace(record, content=content, shared=shared, until_event_id=until_event_id, written=written)


def _is_whole(original: Event | None) -> bool:
    """Whether an original is of whole texts, which stay on this device."""
    return original is not None and "whole" in original.payload
