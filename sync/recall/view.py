"""The index as a view of the log: what was said comes in, what was edited is replaced, what is forgotten leaves."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from sync.log.envelope import event_ms
from sync.log.model import Event, forgotten_by
from sync.recall import store
from sync.recall.items import ANSWER, QUESTION, Gone, Item, changes, item_id
from sync.recall.store import Row

RULES: Final = 3  # raised whenever terms, items or tables change
_LINES: Final = {".q": QUESTION, ".a": ANSWER}  # the ends of the ids of an exchange's two lines


class RecallView:
    """Items and their words. Use it with a `Follower`."""

    name = "recall"
    rules = RULES

    def clear(self, connection: Connection) -> None:
        store.create(connection)

    def take(self, connection: Connection, events: Sequence[Event]) -> None:
        fresh: list[Row] = []
        for event in events:
            found = changes(event)
            if forgotten_by(event) or any(change.entry_id is not None for change in found):
                store.put(connection, fresh)  # what is replaced or taken away may be among them
                fresh = []
                _take_away(connection, forgotten_by(event))
            fresh += [row for change in found if (row := _row(connection, event, change)) is not None]
        store.put(connection, fresh)


def _row(connection: Connection, event: Event, change: Item | Gone) -> Row | None:
    """The row to add; whatever stood for the same line is gone then."""
    place = change.place if isinstance(change, Item) else 0
    born = new_id = item_id(event.position, place)
    if change.entry_id is not None:
        former = _standing(connection, change.entry_id)
        store.remove(connection, former)
        born = min((row.born for row in former), default=new_id)
    if isinstance(change, Gone):
        return None
    return Row(
        new_id,
        born,
        change.entry_id,
        change.kind,
        event.project_id,
        event_ms(event),
        change.importance,
        change.marks,
        change.text,
    )


def _standing(connection: Connection, entry_id: str) -> list[Row]:
    """What stands for a line now: its own item, or the half of an exchange that it is."""
    found = store.by_entries(connection, (entry_id,))
    place = _LINES.get(entry_id[-2:])
    if found or place is None:
        return found
    positions = store.positions_of(connection, (entry_id[:-2],))
    return store.by_ids(connection, [item_id(position, place) for position in positions.values()])


def _take_away(connection: Connection, event_ids: Sequence[str]) -> None:
    if event_ids:
        positions = store.positions_of(connection, event_ids)
        store.remove(connection, store.by_positions(connection, list(positions.values())))
