"""The index as a view of the log: what was said comes in, what was edited is replaced, what is forgotten leaves.

A daily record is of its own day, whichever deed changed it last; a mark and an undo say nothing new, so the words stay
those of whoever said them.

What a correction has changed (`sync.log.retractions`) says its new words in its old place. It gets no new vector, since
those are made in the order of the places: words find it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from sync.db.engine import Transaction
from sync.log import store as log_store
from sync.log.envelope import event_ms
from sync.log.event_types import (
    DAILY_UNDONE,
    PAYLOAD_EXPIRED,
    PAYLOAD_REDACTED,
    RETRACTING_TYPES,
    SESSION_EDITED,
    SESSION_MARKED,
    SESSION_RECORDED,
)
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
    index_changes,
    item_id,
    record_time_ms,
)
from sync.recall.index.store import ItemRow

SCHEMA_VERSION: Final = 7  # raised whenever terms, items or tables change
_EXCHANGE_SLOTS: Final = {".q": QUESTION, ".a": ANSWER}  # the ends of the ids of an exchange's two lines


class RecallIndexer:
    """Items and their words. Use it with a `Follower`."""

    entry = RECALL
    rules_version = SCHEMA_VERSION

    def __init__(self) -> None:
        self.has_erased_terms = (
            True  # whether something may lie in the word index or the write-ahead log that was taken away
        )
        self.batch_count = 0  # how often something was taken in

    def clear(self, connection: Transaction) -> None:
        store.recreate_tables(connection)

    def apply(self, connection: Transaction, events: Sequence[Event]) -> None:
        self.batch_count += 1
        fresh: list[ItemRow] = []
        withdrawn: Retractions | None = None
        for event in events:
            found, named = index_changes(event), erased_by(event)
            if named or any(change.entry_id is not None for change in found):
                store.insert(connection, fresh)  # what is replaced or taken away may be among them
                fresh = []
            if named:
                withdrawn = withdrawn or _retractions(connection, events)
                _remove_erased(connection, named, withdrawn if event.type != PAYLOAD_EXPIRED else None)
            fresh += [row for change in found if (row := _row_for(connection, event, change)) is not None]
        store.insert(connection, fresh)
        if withdrawn is not None:
            store.mark_unmerged(connection)
            self.has_erased_terms = True


def _row_for(connection: Transaction, event: Event, change: Item | RemovedItem) -> ItemRow | None:
    """The row to add; whatever stood for the same line is gone then."""
    place = change.slot if isinstance(change, Item) else 0
    born = said = new_id = item_id(event.position, place)
    ts_ms, former = event_ms(event), list[ItemRow]()
    if change.entry_id is not None:
        former = _current_rows(connection, change.entry_id)
        store.delete(connection, former)
        born = min((row.first_id for row in former), default=new_id)
    if isinstance(change, RemovedItem):
        return None
    if change.kind == DAILY_RECORD and change.entry_id is not None:
        born, said, ts_ms = _record_times(connection, event, change, former)
    return ItemRow(
        new_id,
        born,
        said,
        change.entry_id,
        change.kind,
        event.project_id,
        ts_ms,
        change.importance,
        change.marks,
        change.text,
    )


def _record_times(
    connection: Transaction, event: Event, item: Item, former_rows: Sequence[ItemRow]
) -> tuple[int, int, int]:
    """The id under which a daily record came in, that of its present words, and when it was."""
    first = _first_record_event(connection, event, item, former_rows)
    born, new_id = item_id(first.position, item.slot), item_id(event.position, item.slot)
    if former_rows and (
        event.type == SESSION_MARKED or (event.type == DAILY_UNDONE and former_rows[0].text == item.text)
    ):
        return born, former_rows[0].text_id, former_rows[0].ts_ms
    speaker = (
        _last_author_event(connection, event, item, first) if event.type in {SESSION_MARKED, DAILY_UNDONE} else event
    )
    said = new_id if speaker is event else item_id(speaker.position, item.slot)
    return born, said, record_time_ms(first) - speaker.utc_offset * MINUTE_MS


def _last_author_event(connection: Transaction, event: Event, item: Item, first_event: Event) -> Event:
    """The event that said last, before this one, what a record says again; the one that began it where none did."""
    found = first_event
    for one in log_store.read_by_types(connection, (SESSION_RECORDED, SESSION_EDITED), after=first_event.position):
        if one.position < event.position and any(_has_same_text(change, item) for change in index_changes(one)):
            found = one
    return found


def _has_same_text(change: Item | RemovedItem, item: Item) -> bool:
    return isinstance(change, Item) and (change.entry_id, change.text) == (item.entry_id, item.text)


def _first_record_event(connection: Transaction, event: Event, item: Item, former_rows: Sequence[ItemRow]) -> Event:
    """The event that began a daily record; this one where no other is known."""
    if event.type == SESSION_RECORDED:
        return event
    if former_rows:
        return next(iter(log_store.read_at_positions(connection, [former_rows[0].first_id // ITEMS_PER_EVENT])), event)
    recorded = log_store.read_by_types(
        connection, (SESSION_RECORDED,), after=0
    )  # all of them: only after a removal was undone
    return next((one for one in recorded if one.payload.get("record_id") == item.entry_id), event)


def _current_rows(connection: Transaction, entry_id: str) -> list[ItemRow]:
    """What stands for a line now: its own item, or the half of an exchange that it is."""
    found = store.by_entries(connection, (entry_id,))
    place = _EXCHANGE_SLOTS.get(entry_id[-2:])
    if found or place is None:
        return found
    positions = store.positions_of(connection, (entry_id[:-2],))
    return store.by_ids(connection, [item_id(position, place) for position in positions.values()])


def _retractions(connection: Transaction, events: Iterable[Event]) -> Retractions:
    """What the whole log has taken back, where it has corrected anything; else what these events do."""
    found = Retractions()
    corrected = log_store.newest_position_of_types(connection, (PAYLOAD_REDACTED,)) > 0
    found.apply(log_store.read_by_types(connection, RETRACTING_TYPES, after=0) if corrected else events)
    return found


def _remove_erased(connection: Transaction, event_ids: Sequence[str], retractions: Retractions | None) -> None:
    """Take away what is left of no event; all of them where retention asks, which knows no corrections (None)."""
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
    """The events of these ids, and those of which the corrections among them speak."""
    for event_id in event_ids:
        if (event := log_store.find_event(connection, event_id)) is not None:
            yield event
            told = correction_of(event)
            behind = None if told is None else log_store.find_event(connection, told[0])
            if behind is not None:
                yield behind


def _update_text(connection: Transaction, event: Event) -> None:
    """What an event says from now on, where its own items stand; what a later event has made of them stays."""
    said = {item_id(event.position, item.slot): item for item in index_changes(event) if isinstance(item, Item)}
    standing = store.by_ids(connection, [item_id(event.position, place) for place in range(ITEMS_PER_EVENT)])
    changed = [row for row in standing if row.item_id not in said or said[row.item_id].text != row.text]
    store.delete(connection, changed)
    store.insert(
        connection,
        [
            replace(row, text=item.text, importance=item.importance, marks=item.marks)
            for row in changed
            if (item := said.get(row.item_id)) is not None
        ],
    )
