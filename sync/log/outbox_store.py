"""SQL of deliveries, quarantine and cursors: what must still be sent, and how far the remote log was read."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import asdict
from sqlalchemy import bindparam, delete, func, insert, literal, or_, select, update

from sync.db.engine import Transaction
from sync.db.schema import cursors, deliveries, delivery_counts, events, quarantine
from sync.log.model import Event, EventScope, RefusedEvent, RemoteCursor

_TO: Final = deliveries.c.destination == bindparam("to")
_IDS: Final[Any] = bindparam("ids", expanding=True)
_DELIVER: Final = insert(deliveries).values(state="pending")
_SET_STATE: Final = (
    update(deliveries).where(_TO, deliveries.c.position == bindparam("at")).values(state=bindparam("now"))
)
_COUNT: Final = select(delivery_counts.c.count).where(
    delivery_counts.c.destination == bindparam("to"), delivery_counts.c.state == bindparam("now")
)
_PENDING: Final = (
    select(deliveries.c.position)
    .where(_TO, deliveries.c.state == "pending")
    .order_by(deliveries.c.position)
    .limit(bindparam("most"))
)
_PENDING_OF: Final = _PENDING.join_from(deliveries, events, events.c.position == deliveries.c.position).where(
    events.c.device_id == bindparam("device")
)
_RELEASE: Final = delete(quarantine).where(
    quarantine.c.destination == bindparam("to"), quarantine.c.position == bindparam("at")
)
_MOVE_ALL: Final = (
    update(deliveries)
    .where(_TO, deliveries.c.state.in_(bindparam("then", expanding=True)))
    .where(deliveries.c.position.in_(select(events.c.position).where(events.c.event_id.in_(_IDS))))
    .values(state=bindparam("now"))
)
_RELEASE_ALL: Final = delete(quarantine).where(
    quarantine.c.position.in_(select(events.c.position).where(events.c.event_id.in_(_IDS)))
)
_POSITION: Final = select(events.c.position).where(events.c.event_id == bindparam("id"))
_POSITIONS: Final = select(events.c.event_id, events.c.position).where(events.c.event_id.in_(_IDS))
_SET_NUMBER: Final = update(events).where(events.c.position == bindparam("at")).values(server_seq=bindparam("number"))
_SET_NUMBER_AND_TIME: Final = (
    update(events)
    .where(events.c.event_id == bindparam("id"))
    .values(server_seq=bindparam("number"), server_ts=bindparam("time"))
)
_REPLICA_NUMBERS: Final = select(events.c.event_id, events.c.replica_id, events.c.replica_seq)
_OURS: Final = _REPLICA_NUMBERS.where(events.c.event_id.in_(_IDS))
_UNDER: Final = _REPLICA_NUMBERS.where(
    events.c.replica_id.in_(bindparam("replicas", expanding=True)),
    events.c.replica_seq.in_(bindparam("numbers", expanding=True)),
)
_RENUMBER: Final = (
    update(events)
    .where(events.c.event_id == bindparam("id"))
    .values(replica_id=bindparam("replica"), replica_seq=bindparam("number"))
)
_NUMBERED: Final = select(events.c.position, events.c.event_id, events.c.server_seq).where(
    events.c.server_seq.between(bindparam("first"), bindparam("last"))
)
_NEWEST_TIME: Final = (
    select(events.c.server_ts)
    .where(events.c.server_seq.is_not(None), events.c.server_ts.is_not(None))
    .order_by(events.c.server_seq.desc())
    .limit(1)
)
_BEYOND: Final = select(events.c.position).where(events.c.server_seq > bindparam("head"))
_SEND_AGAIN: Final = (
    update(deliveries)
    .where(
        _TO,
        deliveries.c.state == "acked",
        deliveries.c.position.in_(select(events.c.position).where(events.c.server_seq.is_(None))),
    )
    .values(state="pending")
)
_REFUSALS: Final = (
    select(events.c.event_id, quarantine.c.code, quarantine.c.message, quarantine.c.noticed_at)
    .join(events, events.c.position == quarantine.c.position)
    .order_by(quarantine.c.position, quarantine.c.destination)
)
_COUNT_REFUSED: Final = select(func.count()).select_from(quarantine)
_MOVE_CURSOR: Final = insert(cursors).prefix_with("or replace")
_CURSOR: Final = (
    select(cursors, events.c.server_ts)
    .select_from(cursors)
    .outerjoin(events, (events.c.event_id == cursors.c.event_id) & (events.c.server_seq == cursors.c.seq))
    .where(cursors.c.destination == bindparam("to"))
)


def enqueue(connection: Transaction, destination: str, positions: Sequence[int]) -> None:
    """Queue events for a destination. Call it in the transaction that inserts the events."""
    if positions:
        connection.execute(_DELIVER, [{"destination": destination, "position": position} for position in positions])


def mark_delivered(connection: Transaction, destination: str, event_ids: Sequence[str]) -> None:
    """Add acknowledged deliveries for own events that a restored database received back from the destination.

    Call it in the transaction that inserts them.
    """
    if event_ids:
        columns = [deliveries.c.destination, deliveries.c.position, deliveries.c.state]
        returned = select(literal(destination), events.c.position, literal("acked"))
        connection.execute(insert(deliveries).from_select(columns, returned.where(events.c.event_id.in_(event_ids))))


def pending_positions(
    connection: Transaction, destination: str, limit: int, *, device_id: str | None = None
) -> list[int]:
    """Return the oldest undelivered events in log order, of one device if it is given."""
    parameters = {"to": destination, "most": limit}
    if device_id is None:
        return list(connection.execute(_PENDING, parameters).scalars())
    return list(connection.execute(_PENDING_OF, {**parameters, "device": device_id}).scalars())


def unsent_positions(connection: Transaction, destination: str, replica_id: str) -> list[int]:
    """Return a replica's own events that were never acknowledged, device-local ones included, in log order.

    Without those that a copy of this database recorded under this replica's id: they came by the network or from an
    archive, and have no delivery here.
    """
    waiting = (
        select(deliveries.c.position)
        .where(deliveries.c.destination == destination, deliveries.c.state != "acked")
        .scalar_subquery()
    )
    is_own = or_(events.c.reach != EventScope.CLOUD, events.c.position.in_(waiting))
    statement = select(events.c.position).where(events.c.replica_id == replica_id, is_own).order_by(events.c.position)
    return list(connection.execute(statement).scalars())


def count_deliveries(connection: Transaction, destination: str, state: str) -> int:
    """Return the number of deliveries in a state. It reads one row."""
    return int(connection.execute(_COUNT, {"to": destination, "now": state}).scalar() or 0)


def acknowledge(connection: Transaction, destination: str, acked: Sequence[tuple[str, int]]) -> None:
    """Note that the destination has these events (id, its number). Idempotent; unknown ids are ignored."""
    if not acked:
        return
    numbers = dict(acked)
    rows = connection.execute(_POSITIONS, {"ids": list(numbers)}).all()
    if not rows:
        return
    connection.execute(_SET_NUMBER, [{"at": row.position, "number": numbers[row.event_id]} for row in rows])
    places = [{"to": destination, "at": row.position} for row in rows]
    connection.execute(_SET_STATE, [{**place, "now": "acked"} for place in places])
    connection.execute(_RELEASE, places)


def set_server_numbers(connection: Transaction, numbered: Sequence[Event]) -> None:
    """Store the server's numbers and times of these events."""
    if numbered:
        connection.execute(
            _SET_NUMBER_AND_TIME,
            [{"id": event.event_id, "number": event.server_seq, "time": event.server_ts} for event in numbered],
        )


def newest_server_time(connection: Transaction) -> str | None:
    """Return the server's time of the event with the highest known server number."""
    return connection.execute(_NEWEST_TIME).scalar()


def replica_numbers(connection: Transaction, event_ids: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return the replica and the number of those of these events that the log holds."""
    rows = connection.execute(_OURS, {"ids": event_ids}) if event_ids else ()
    return {row.event_id: (row.replica_id, row.replica_seq) for row in rows}


def adopt_replica_numbers(connection: Transaction, differing: Sequence[Event], *, own_replica_id: str) -> bool:
    """Give stored events the replica numbers that they have at the destination; return whether any has changed.

    `differing`: events that are missing here or have another number here, because a restored installation numbered
    its unsent events again. An event here whose number is another event's there becomes a replica of its own until it
    gets its number. Events of the own replica keep their numbers, which have no gaps.
    """
    remote = {event.replica_key: event.event_id for event in differing}
    keys = {"replicas": [replica for replica, _ in remote], "numbers": [number for _, number in remote]}
    local = [(row.event_id, (row.replica_id, row.replica_seq)) for row in connection.execute(_UNDER, keys)]
    displaced = {event_id: (event_id, 1) for event_id, number in local if remote.get(number, event_id) != event_id}
    ours = replica_numbers(connection, [event.event_id for event in differing])
    adopted = {
        event.event_id: event.replica_key
        for event in differing
        if ours.get(event.event_id, (own_replica_id,))[0] != own_replica_id
    }
    moves = [*displaced.items(), *adopted.items()]
    if moves:
        connection.execute(_RENUMBER, [{"id": name, "replica": to[0], "number": to[1]} for name, to in moves])
    return bool(displaced or any(ours.get(name, number) != number for name, number in adopted.items()))


def retire_former_numbers(connection: Transaction, destination: str, *, own_replica_id: str) -> None:
    """Make every pending event of a former replica a replica of its own.

    A restored destination lost these events and may have given their numbers to events of another copy.
    """
    pending = select(deliveries.c.position).where(
        deliveries.c.destination == destination, deliveries.c.state == "pending"
    )
    former = update(events).where(events.c.replica_id != own_replica_id, events.c.position.in_(pending))
    connection.execute(former.values(replica_id=events.c.event_id, replica_seq=1))


def quarantine_event(connection: Transaction, destination: str, refusal: RefusedEvent) -> None:
    """Quarantine an event: it no longer blocks others, and it is kept."""
    position = connection.execute(_POSITION, {"id": refusal.event_id}).scalar_one()
    connection.execute(_SET_STATE, {"to": destination, "at": position, "now": "quarantined"})
    values = asdict(refusal)
    del values["event_id"]
    refused = insert(quarantine).prefix_with("or replace")
    connection.execute(refused, {"destination": destination, "position": position, **values})


def list_refused(connection: Transaction) -> list[RefusedEvent]:
    """Return the refused events, oldest first."""
    return [RefusedEvent(*row) for row in connection.execute(_REFUSALS)]


def count_refused(connection: Transaction) -> int:
    return int(connection.execute(_COUNT_REFUSED).scalar_one())


def read_cursor(connection: Transaction, destination: str) -> RemoteCursor:
    row = connection.execute(_CURSOR, {"to": destination}).first()
    if row is None:
        return RemoteCursor()
    may_lack = bool(row.may_lack)
    return RemoteCursor(row.epoch, row.seq, row.event_id, row.head, row.synced_at, may_lack, row.server_ts)


def save_cursor(connection: Transaction, destination: str, remote_cursor: RemoteCursor) -> None:
    values = asdict(remote_cursor)
    del values["event_ts"]  # of the event's own row
    connection.execute(_MOVE_CURSOR, {"destination": destination, **values})


def drop_undelivered(connection: Transaction, destination: str, event_ids: Sequence[str]) -> None:
    """Drop the undelivered of these events, because their payloads are gone.

    A destination that received one empty would skip its payload later: it knows the id.
    """
    parameters = {"to": destination, "ids": event_ids}
    connection.execute(_MOVE_ALL, {**parameters, "then": ["pending", "quarantined"], "now": "dropped"})
    connection.execute(_RELEASE_ALL, parameters)


def requeue_dropped(connection: Transaction, destination: str, event_ids: Sequence[str]) -> None:
    """Queue the dropped of these events again, because their payloads are back."""
    connection.execute(_MOVE_ALL, {"to": destination, "ids": event_ids, "then": ["dropped"], "now": "pending"})


def clear_server_numbers(connection: Transaction) -> None:
    """Clear the server numbers of a replaced or restored remote log. Pending deliveries stay."""
    connection.execute(update(events).where(events.c.server_seq.is_not(None)).values(server_seq=None, server_ts=None))


def clear_stale_numbers(connection: Transaction, remote_events: Sequence[Event], *, beyond: int | None) -> bool:
    """Clear server numbers that are another event's now, or are `beyond` the head; return whether there were any.

    A server acknowledged them ahead of our cursor and was then restored from a backup.
    """
    stale: list[int] = []
    if remote_events:
        remote = {event.server_seq or 0: event.event_id for event in remote_events}
        local = connection.execute(_NUMBERED, {"first": min(remote), "last": max(remote)})
        stale += [row.position for row in local if row.event_id != remote.get(row.server_seq)]
    if beyond is not None:
        stale += connection.execute(_BEYOND, {"head": beyond}).scalars()
    if stale:
        connection.execute(_SET_NUMBER, [{"at": position, "number": None} for position in stale])
    return bool(stale)


def requeue_lost(connection: Transaction, destination: str) -> int:
    """Queue events that the destination acknowledged and no longer has; return how many.

    Call it once caught up with a log that `may_lack` events. It reads the whole log.
    """
    return connection.execute(_SEND_AGAIN, {"to": destination}).rowcount


def release_quarantined(
    connection: Transaction, destination: str, event_ids: Sequence[str] | None, state: str
) -> list[str]:
    """Release events from quarantine: `pending` retries them, `dropped` stops sending them. None means all.

    Return the ids that were in quarantine.
    """
    refused = dict.fromkeys(refusal.event_id for refusal in list_refused(connection))
    released = [event_id for event_id in refused if event_ids is None or event_id in event_ids]
    for event_id in released:  # one by one: there may be more of them than one statement holds
        place = {"to": destination, "ids": [event_id]}
        connection.execute(_MOVE_ALL, {**place, "then": ["quarantined"], "now": state})
        connection.execute(_RELEASE_ALL, place)
    return released
