"""The search index as a projection of the log: adds items, replaces edited ones, removes erased ones.

A daily record keeps its own day, whichever event changed it last. A mark or an undo keeps the text's author. A
corrected event keeps its place with the new text but gets no new vector, since vectors are made in order of the log.
What a device that is not admitted changes of others' items is added beside them, or waits: docs/decisions/042.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from sync.db.engine import Transaction
from sync.log import event_types as types
from sync.log import store as log_store
from sync.log.authorship import author_of
from sync.log.devices.device_registry import admitted_ids
from sync.log.devices.device_view import DeviceView
from sync.log.devices.store import read_registry
from sync.log.envelope import event_ms
from sync.log.model import Event, erased_by
from sync.log.projections.registry import RECALL
from sync.log.retractions import Retractions, correction_of
from sync.recall.index import store
from sync.recall.index.extraction import (
    ANSWER,
    DAILY_RECORD,
    ITEMS_PER_EVENT,
    MINUTE_MS,
    QUESTION,
    Item,
    RemovedItem,
    entry_time_ms,
    index_changes,
    item_id,
    record_time_ms,
)
from sync.recall.index.integrity import is_intact
from sync.recall.index.store import ItemRow

SCHEMA_VERSION: Final = 11  # raised whenever terms, items or tables change
CHANGING_TYPES: Final = (  # whose items replace or remove others
    *(
        types.ENTRY_EDITED,
        types.ENTRY_REMOVED,
        types.DAILY_UNDONE,
        types.SESSION_EDITED,
        types.SESSION_MARKED,
        types.SESSION_REMOVED,
    ),
    *(types.LESSON_EDITED, types.LESSON_REMOVED, types.MEMORY_NOTE_UPDATED, types.MEMORY_NOTE_DELETED),
)
_LINE_TYPES: Final = frozenset({types.ENTRY_ADDED, types.ENTRY_EDITED})
_EXCHANGE_SLOTS: Final = {".q": QUESTION, ".a": ANSWER}  # the ends of the ids of an exchange's two lines


class RecallIndexer:
    """The projection that writes items and their terms."""

    entry = RECALL
    rules_version = SCHEMA_VERSION

    def __init__(self, own_device_ids: Callable[[], Collection[str]]) -> None:
        self._own_device_ids = own_device_ids
        self.has_erased_terms = True  # whether the term index or the write-ahead log may contain erased terms
        self.batch_count = 0
        self._known_to = 0  # the newest position when this build began

    def is_consistent(self, connection: Transaction) -> bool:
        """Whether every row of the index can be understood."""
        return not store.is_created(connection) or is_intact(connection)

    def clear(self, connection: Transaction) -> None:
        store.recreate_tables(connection)
        self._known_to = log_store.newest_position(connection)

    def must_restart(self, connection: Transaction, events: Sequence[Event]) -> bool:
        """Whether a device is admitted whose changes of items have waited. A build knows the admissions before it."""
        admissions = [
            event for event in events if event.type == types.DEVICE_ADMITTED and event.position > self._known_to
        ]
        admitted = {name for event in admissions for name in admitted_ids(event)}
        return bool(admitted) and log_store.has_events_of(connection, CHANGING_TYPES, admitted)

    def apply(self, connection: Transaction, events: Sequence[Event]) -> None:
        self.batch_count += 1
        fresh: list[ItemRow] = []
        retractions: Retractions | None = None
        for event in events:
            changes, erased = index_changes(event), erased_by(event)
            if erased or any(change.entry_id is not None for change in changes):
                store.insert(connection, fresh)  # it may have the rows to replace or remove
                fresh = []
            if erased:
                retractions = retractions or _retractions(connection, events)
                _remove_erased(connection, erased, retractions if event.type != types.PAYLOAD_EXPIRED else None)
            fresh += [row for change in changes if (row := self._row_for(connection, event, change)) is not None]
        store.insert(connection, fresh)
        if retractions is not None:
            store.mark_unmerged(connection)
            self.has_erased_terms = True

    def _row_for(self, connection: Transaction, event: Event, change: Item | RemovedItem) -> ItemRow | None:
        """Delete the former rows of the same entry; the row to add, if any."""
        slot = change.slot if isinstance(change, Item) else 0
        first_id = text_id = new_id = item_id(event.position, slot)
        ts_ms, former = entry_time_ms(event) if event.type in _LINE_TYPES else event_ms(event), list[ItemRow]()
        if change.entry_id is not None:
            former = _current_rows(connection, change.entry_id)
            if former and not self._may_change(connection, event, former):
                return None  # it waits until its device is admitted
            store.delete(connection, former)
            first_id = min((row.first_id for row in former), default=new_id)
        if isinstance(change, RemovedItem):
            return None
        if change.kind == DAILY_RECORD and change.entry_id is not None:
            first_id, text_id, ts_ms = _record_times(connection, event, change, former)
        of_event = (change.entry_id, change.kind, event.project_id, ts_ms)
        return ItemRow(new_id, first_id, text_id, *of_event, change.importance, " ".join(change.marks), change.text)

    def _may_change(self, connection: Transaction, event: Event, former: Sequence[ItemRow]) -> bool:
        """Whether an event may replace these rows. The registry is read for events of other devices alone."""
        own = frozenset(self._own_device_ids())
        if event.device_id in own and event.is_proven:
            return True
        view = DeviceView(read_registry(connection), own)
        recorded = log_store.read_at_positions(connection, [row.first_id // ITEMS_PER_EVENT for row in former])
        return all(view.may_change(event, author_of(one)) for one in recorded)


def _record_times(
    connection: Transaction, event: Event, item: Item, former_rows: Sequence[ItemRow]
) -> tuple[int, int, int]:
    """A daily record's first id, the id of its current text, and its time."""
    first = _first_record_event(connection, event, item, former_rows)
    first_id, new_id = item_id(first.position, item.slot), item_id(event.position, item.slot)
    if former_rows and (
        event.type == types.SESSION_MARKED or (event.type == types.DAILY_UNDONE and former_rows[0].text == item.text)
    ):
        return first_id, former_rows[0].text_id, former_rows[0].ts_ms
    author = event
    if event.type in {types.SESSION_MARKED, types.DAILY_UNDONE}:
        author = _last_author_event(connection, event, item, first)
    text_id = new_id if author is event else item_id(author.position, item.slot)
    return first_id, text_id, record_time_ms(first) - author.utc_offset * MINUTE_MS


def _last_author_event(connection: Transaction, event: Event, item: Item, first_event: Event) -> Event:
    """The latest earlier event with the record's current text; the first event of the record if there is none."""
    author = first_event
    for one in log_store.read_by_types(
        connection, (types.SESSION_RECORDED, types.SESSION_EDITED), after=first_event.position
    ):
        if one.position < event.position and any(_has_same_text(change, item) for change in index_changes(one)):
            author = one
    return author


def _has_same_text(change: Item | RemovedItem, item: Item) -> bool:
    return isinstance(change, Item) and (change.entry_id, change.text) == (item.entry_id, item.text)


def _first_record_event(connection: Transaction, event: Event, item: Item, former_rows: Sequence[ItemRow]) -> Event:
    """The event that created a daily record; this one if no other is known."""
    if event.type == types.SESSION_RECORDED:
        return event
    if former_rows:
        return next(iter(log_store.read_at_positions(connection, [former_rows[0].first_id // ITEMS_PER_EVENT])), event)
    recorded = log_store.read_by_types(
        connection, (types.SESSION_RECORDED,), after=0
    )  # all of them: only after a removal was undone
    return next((one for one in recorded if one.payload.get("record_id") == item.entry_id), event)


def _current_rows(connection: Transaction, entry_id: str) -> list[ItemRow]:
    """The rows of an entry: its own, or its half of an exchange."""
    rows = store.by_entries(connection, (entry_id,))
    slot = _EXCHANGE_SLOTS.get(entry_id[-2:])
    if rows or slot is None:
        return rows
    positions = store.positions_of(connection, (entry_id[:-2],))
    return store.by_ids(connection, [item_id(position, slot) for position in positions.values()])


def _retractions(connection: Transaction, events: Iterable[Event]) -> Retractions:
    """All retractions in the log if it has corrections; otherwise those of these events suffice."""
    retractions = Retractions()
    has_corrections = log_store.newest_position_of_types(connection, (types.PAYLOAD_REDACTED,)) > 0
    retractions.apply(
        log_store.read_by_types(connection, types.RETRACTING_TYPES, after=0) if has_corrections else events
    )
    return retractions


def _remove_erased(connection: Transaction, event_ids: Sequence[str], retractions: Retractions | None) -> None:
    """Remove the items of erased events and update those of corrected ones. None removes all (retention)."""
    gone: list[int] = []
    for event in _target_events(connection, event_ids):
        left = None if retractions is None else retractions.effective_event(event)
        if left is not None and left.payload:
            _update_text(connection, left)
        else:
            gone.append(event.position)
    if gone:
        store.delete(connection, store.by_positions(connection, gone))


def _target_events(connection: Transaction, event_ids: Iterable[str]) -> Iterator[Event]:
    """The events of these ids and, for corrections among them, the corrected events."""
    for event_id in event_ids:
        if (event := log_store.find_event(connection, event_id)) is not None:
            yield event
            correction = correction_of(event)
            corrected = None if correction is None else log_store.find_event(connection, correction[0])
            if corrected is not None:
                yield corrected


def _update_text(connection: Transaction, event: Event) -> None:
    """Replace the text of a corrected event's own items. Items that a later event has replaced stay."""
    items = {item_id(event.position, item.slot): item for item in index_changes(event) if isinstance(item, Item)}
    rows = store.by_ids(connection, [item_id(event.position, slot) for slot in range(ITEMS_PER_EVENT)])
    changed = [row for row in rows if row.item_id not in items or items[row.item_id].text != row.text]
    store.delete(connection, changed)
    kept = [(row, items[row.item_id]) for row in changed if row.item_id in items]
    store.insert(
        connection,
        [row._replace(text=item.text, importance=item.importance, marks=" ".join(item.marks)) for row, item in kept],
    )
