"""SQL of events that the log holds while another copy of them arrives."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import RowMapping, and_, bindparam, delete, select, text, update

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.db.schema import REPLICA_ID_PREFIX, deliveries, events, quarantine
from sync.errors import DeviceForked
from sync.log import store
from sync.log.devices.store import read_registry
from sync.log.envelope import event_of_row
from sync.log.event_types import DEVICE_REVOKED
from sync.log.identity.same_event import client_event_id
from sync.log.local_state import RETURNED_NUMBER
from sync.log.model import CLOUD, UNPROVEN_FIELD, Event

_IDS: Final[Any] = bindparam("ids", expanding=True)
_HELD: Final = select(events).where(events.c.event_id.in_(_IDS))
_UNDER: Final = select(events).where(
    events.c.replica_id.in_(bindparam("replicas", expanding=True)),
    events.c.replica_seq.in_(bindparam("numbers", expanding=True)),
)
_END: Final = text(f"""
update events set extra = json_set(extra, '$.{UNPROVEN_FIELD}', json('true'))
where device_id = :device and hlc > :at and server_seq is null and extra not like '%"{UNPROVEN_FIELD}":%'
""")  # noqa: S608 - constants only
_SENT: Final = and_(deliveries.c.destination == CLOUD, deliveries.c.position == events.c.position)
_OWN: Final = select(events.c.event_id).join(deliveries, _SENT).where(events.c.event_id.in_(_IDS))


def read_held(connection: Transaction, event_ids: Sequence[str]) -> dict[str, Event]:
    """Return those of these events that the log holds."""
    rows = connection.execute(_HELD, {"ids": event_ids}).mappings() if event_ids else ()
    return {row["event_id"]: event_of_row(row) for row in rows}


def read_own_ids(connection: Transaction, event_ids: Sequence[str]) -> set[str]:
    """Return those of these events that this device records and sends: they have a delivery."""
    return set(connection.execute(_OWN, {"ids": event_ids}).scalars()) if event_ids else set()


def is_number_taken(connection: Transaction, event: Event) -> bool:
    """Return whether a stored event has the number of this one."""
    return bool(_rows_under(connection, [event]))


def with_free_numbers(
    connection: Transaction, received: Sequence[Event], *, own_device_ids: Collection[str] = (), peer_device: str = ""
) -> list[Event]:
    """Make an event whose number is not free a replica of its own. A number of this replica is for own events only.

    An event of another device gives its number up to a proven one if it is not proven, or if that is the peer's own
    word. Raises DeviceForked if this device or the peer has two events under one number.
    """
    own, both = store.existing_replica_id(connection), {*own_device_ids, peer_device}
    held = {event.replica_key: event for event in map(event_of_row, _rows_under(connection, received))}
    used: set[tuple[str, int]] = set()
    placed: list[Event] = []
    for event in received:
        holder = held.get(event.replica_key, event)
        is_other = holder.event_id != event.event_id
        if is_other and holder.is_proven and event.is_proven and holder.device_id == event.device_id in both:
            raise DeviceForked("a peer has other events under numbers that are in use here")
        is_bound = holder.device_id in own_device_ids or holder.server_seq is not None
        is_better = event.is_proven and (not holder.is_proven or event.device_id == peer_device)
        is_free = not is_other or (is_better and not is_bound)
        is_own = event.replica_id == own and event.device_id in own_device_ids
        is_place = is_own or (event.replica_id != own and event.replica_id.startswith(REPLICA_ID_PREFIX))
        if not is_free or not is_place or event.replica_key in used:
            event = replace(event, replica_id=event.event_id, replica_seq=1)  # noqa: PLW2901 - its own place
        used.add(event.replica_key)
        placed.append(event)
    return placed


def _rows_under(connection: Transaction, candidates: Sequence[Event]) -> Sequence[RowMapping]:
    keys = {"replicas": [event.replica_id for event in candidates], "numbers": [one.replica_seq for one in candidates]}
    return connection.execute(_UNDER, keys).mappings().all()


def end_revoked(connection: Transaction, received: Sequence[Event], clock: Clock) -> None:
    """After a revocation came: what its device dated later is unproven, unless the server has bounded it."""
    if all(event.type != DEVICE_REVOKED for event in received):
        return
    devices = read_registry(connection).devices.items()
    ends = [{"device": name, "at": device.revoked_at} for name, device in devices if device.revoked_at]
    if ends and connection.execute(_END, ends).rowcount:
        store.bump_order_version(connection, clock)
        store.reset_projections(connection)


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
    if any(replace(new, extra=held.extra) != held or new.is_proven != held.is_proven for held, new in pairs):
        store.reset_projections(connection)


def resolve_ids(connection: Transaction, names: Sequence[str], device_ids: Sequence[str]) -> dict[str, str]:
    """Return the event id of each name that the log knows: an event id, or one that a program gave to this device."""
    given = {name: [name, *(client_event_id(device, name) for device in device_ids)] for name in names}
    known = store.known_ids(connection, [one for candidates in given.values() for one in candidates])
    found = {name: next((one for one in candidates if one in known), None) for name, candidates in given.items()}
    return {name: event_id for name, event_id in found.items() if event_id is not None}
