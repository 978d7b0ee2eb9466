"""The index as a view of the log: what was said comes in, what was edited is replaced, what is forgotten leaves.

A daily record is of its own day, whichever deed changed it last; a mark and an undo say nothing new, so the words stay
those of whoever said them.

What a correction has changed (`sync.log.withdrawn`) says its new words in its old place. It gets no new vector, since
those are made in the order of the places: words find it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection

from sync.log import store as log_store
from sync.log.envelope import event_ms
from sync.log.model import EXPIRED, Event, forgotten_by
from sync.log.withdrawn import REDACTED, TAKING_BACK, Withdrawn, correction_of
from sync.recall import store
from sync.recall.items import (
    ANSWER,
    EDITED,
    MARKED,
    MINUTE,
    PLACES,
    QUESTION,
    RECORD,
    RECORDED,
    UNDONE,
    Gone,
    Item,
    changes,
    item_id,
    record_ms,
)
from sync.recall.store import Row

RULES: Final = 6  # raised whenever terms, items or tables change
_LINES: Final = {".q": QUESTION, ".a": ANSWER}  # the ends of the ids of an exchange's two lines


class RecallView:
    """Items and their words. Use it with a `Follower`."""

    name = "recall"
    rules = RULES

    def __init__(self) -> None:
        self.forgot = True  # whether something may lie in the word index or the write-ahead log that was taken away
        self.taken = 0  # how often something was taken in

    def clear(self, connection: Connection) -> None:
        store.create(connection)

    def take(self, connection: Connection, events: Sequence[Event]) -> None:
        self.taken += 1
        fresh: list[Row] = []
        withdrawn: Withdrawn | None = None
        for event in events:
            found, named = changes(event), forgotten_by(event)
            if named or any(change.entry_id is not None for change in found):
                store.put(connection, fresh)  # what is replaced or taken away may be among them
                fresh = []
            if named:
                withdrawn = withdrawn or _withdrawn(connection, events)
                _take_away(connection, named, withdrawn if event.type != EXPIRED else None)
            fresh += [row for change in found if (row := _row(connection, event, change)) is not None]
        store.put(connection, fresh)
        if withdrawn is not None:
            store.let_go(connection)
            self.forgot = True


def _row(connection: Connection, event: Event, change: Item | Gone) -> Row | None:
    """The row to add; whatever stood for the same line is gone then."""
    place = change.place if isinstance(change, Item) else 0
    born = said = new_id = item_id(event.position, place)
    ts_ms, former = event_ms(event), list[Row]()
    if change.entry_id is not None:
        former = _standing(connection, change.entry_id)
        store.remove(connection, former)
        born = min((row.born for row in former), default=new_id)
    if isinstance(change, Gone):
        return None
    if change.kind == RECORD and change.entry_id is not None:
        born, said, ts_ms = _of_record(connection, event, change, former)
    return Row(
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


def _of_record(connection: Connection, event: Event, item: Item, former: Sequence[Row]) -> tuple[int, int, int]:
    """The id under which a daily record came in, that of its present words, and when it was."""
    first = _first(connection, event, item, former)
    born, new_id = item_id(first.position, item.place), item_id(event.position, item.place)
    if former and (event.type == MARKED or (event.type == UNDONE and former[0].text == item.text)):
        return born, former[0].said, former[0].ts_ms
    speaker = _speaker(connection, event, item, first) if event.type in {MARKED, UNDONE} else event
    said = new_id if speaker is event else item_id(speaker.position, item.place)
    return born, said, record_ms(first) - speaker.utc_offset * MINUTE


def _speaker(connection: Connection, event: Event, item: Item, first: Event) -> Event:
    """The event that said last, before this one, what a record says again; the one that began it where none did."""
    found = first
    for one in log_store.of_types(connection, (RECORDED, EDITED), after=first.position):
        if one.position < event.position and any(_says(change, item) for change in changes(one)):
            found = one
    return found


def _says(change: Item | Gone, item: Item) -> bool:
    return isinstance(change, Item) and (change.entry_id, change.text) == (item.entry_id, item.text)


def _first(connection: Connection, event: Event, item: Item, former: Sequence[Row]) -> Event:
    """The event that began a daily record; this one where no other is known."""
    if event.type == RECORDED:
        return event
    if former:
        return next(iter(log_store.at_positions(connection, [former[0].born // PLACES])), event)
    recorded = log_store.of_types(connection, (RECORDED,), after=0)  # all of them: only after a removal was undone
    return next((one for one in recorded if one.payload.get("record_id") == item.entry_id), event)


def _standing(connection: Connection, entry_id: str) -> list[Row]:
    """What stands for a line now: its own item, or the half of an exchange that it is."""
    found = store.by_entries(connection, (entry_id,))
    place = _LINES.get(entry_id[-2:])
    if found or place is None:
        return found
    positions = store.positions_of(connection, (entry_id[:-2],))
    return store.by_ids(connection, [item_id(position, place) for position in positions.values()])


def _withdrawn(connection: Connection, events: Iterable[Event]) -> Withdrawn:
    """What the whole log has taken back, where it has corrected anything; else what these events do."""
    found = Withdrawn()
    corrected = log_store.newest_of_types(connection, (REDACTED,)) > 0
    found.hear(log_store.of_types(connection, TAKING_BACK, after=0) if corrected else events)
    return found


def _take_away(connection: Connection, event_ids: Sequence[str], withdrawn: Withdrawn | None) -> None:
    """Take away what is left of no event; all of them where retention asks, which knows no corrections (None)."""
    gone: list[int] = []
    for event in _meant(connection, event_ids):
        left = None if withdrawn is None else withdrawn.left_of(event)
        if left is not None and left.payload:
            _reword(connection, left)
        else:
            gone.append(event.position)
    if gone:
        store.remove(connection, store.by_positions(connection, gone))


def _meant(connection: Connection, event_ids: Iterable[str]) -> Iterator[Event]:
    """The events of these ids, and those of which the corrections among them speak."""
    for event_id in event_ids:
        if (event := log_store.find(connection, event_id)) is not None:
            yield event
            told = correction_of(event)
            behind = None if told is None else log_store.find(connection, told[0])
            if behind is not None:
                yield behind


def _reword(connection: Connection, event: Event) -> None:
    """What an event says from now on, where its own items stand; what a later event has made of them stays."""
    said = {item_id(event.position, item.place): item for item in changes(event) if isinstance(item, Item)}
    standing = store.by_ids(connection, [item_id(event.position, place) for place in range(PLACES)])
    changed = [row for row in standing if row.item_id not in said or said[row.item_id].text != row.text]
    store.remove(connection, changed)
    store.put(
        connection,
        [
            replace(row, text=item.text, importance=item.importance, marks=item.marks)
            for row in changed
            if (item := said.get(row.item_id)) is not None
        ],
    )
