"""SQL of events that the log holds while another copy of them arrives."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import and_, bindparam, delete, select, update

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.db.schema import deliveries, events, quarantine
from sync.log import store
from sync.log.envelope import event_of_row
from sync.log.identity.same_event import client_event_id
from sync.log.local_state import RETURNED_NUMBER
from sync.log.model import CLOUD, Event

_IDS: Final[Any] = bindparam("ids", expanding=True)
_HELD: Final = select(events).where(events.c.event_id.in_(_IDS))
_NUMBERS: Final = select(events.c.replica_id, events.c.replica_seq).where(
    events.c.replica_id.in_(bindparam("replicas", expanding=True)),
    events.c.replica_seq.in_(bindparam("numbers", expanding=True)),
)
_SENT: Final = and_(deliveries.c.destination == CLOUD, deliveries.c.position == events.c.position)
_OWN: Final = select(events.c.event_id).join(deliveries, _SENT).where(events.c.event_id.in_(_IDS))


def read_held(connection: Transaction, event_ids: Sequence[str]) -> dict[str, Event]:
    """Return those of these events that the log holds."""
    rows = connection.execute(_HELD, {"ids": event_ids}).mappings() if event_ids else ()
    return {row["event_id"]: event_of_row(row) for row in rows}


def read_own_ids(connection: Transaction, event_ids: Sequence[str]) -> set[str]:
    """Return those of these events that this device records and sends: they have a delivery."""
    return set(connection.execute(_OWN, {"ids": event_ids}).scalars()) if event_ids else set()


def any_number_taken(connection: Transaction, candidates: Sequence[Event]) -> bool:
    """Return whether a stored event, or two of these, have the same number of one replica."""
    numbers = {(event.replica_id, event.replica_seq) for event in candidates}
    keys = {"replicas": list({replica for replica, _ in numbers}), "numbers": list({number for _, number in numbers})}
    taken = connection.execute(_NUMBERS, keys)
    return len(numbers) < len(candidates) or any((row.replica_id, row.replica_seq) in numbers for row in taken)


def note_returned_numbers(connection: Transaction, inserted: Sequence[Event], clock: Clock) -> None:
    """Note the highest number of this replica among events that came from a peer or an archive."""
    replica_id = store.existing_replica_id(connection)
    if numbers := [event.replica_seq for event in inserted if event.replica_id == replica_id]:
        highest = max(store.watermark(connection, RETURNED_NUMBER), *numbers)
        store.set_watermark(connection, RETURNED_NUMBER, highest, clock)


def replace_events(connection: Transaction, pairs: Sequence[tuple[Event, Event]], clock: Clock) -> None:
    """Replace held events, each first of its pair, in their rows; projections are rebuilt.

    An event that becomes another device's is not sent from here, and leaves its number in this replica unused.
    """
    if not pairs:
        return
    for held, new in pairs:
        values = store.row_values(new)
        if new.device_id == held.device_id:  # its numbers may have changed meanwhile
            del values["replica_id"], values["replica_seq"]
        connection.execute(update(events).where(events.c.position == held.position).values(values))
        if new.device_id != held.device_id:
            for table in (quarantine, deliveries):
                connection.execute(delete(table).where(table.c.position == held.position))
            note_returned_numbers(connection, [replace(held, replica_seq=held.replica_seq + 1)], clock)
    store.bump_order_version(connection, clock)
    if any(replace(new, extra=held.extra) != held for held, new in pairs):  # else only a proof came
        store.reset_projections(connection)


def resolve_ids(connection: Transaction, names: Sequence[str], device_ids: Sequence[str]) -> dict[str, str]:
    """Return the event id of each name that the log knows: an event id, or one that a program gave to this device."""
    given = {name: [name, *(client_event_id(device, name) for device in device_ids)] for name in names}
    known = store.known_ids(connection, [one for candidates in given.values() for one in candidates])
    found = {name: next((one for one in candidates if one in known), None) for name, candidates in given.items()}
    return {name: event_id for name, event_id in found.items() if event_id is not None}
