"""The SQL of deliveries, quarantine and cursors: what still has to go where, and how far the other side was read."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam, delete, insert, literal, select, update

from sync.db.engine import Transaction
from sync.db.schema import cursors, deliveries, delivery_counts, events, quarantine
from sync.log.model import Event, RefusedEvent, RemoteCursor

_DELIVER: Final = insert(deliveries).values(state="pending")
_SET_STATE: Final = (
    update(deliveries)
    .where(deliveries.c.destination == bindparam("to"), deliveries.c.position == bindparam("at"))
    .values(state=bindparam("now"))
)
_COUNT: Final = select(delivery_counts.c.count).where(
    delivery_counts.c.destination == bindparam("to"), delivery_counts.c.state == bindparam("now")
)
_PENDING: Final = (
    select(deliveries.c.position)
    .where(deliveries.c.destination == bindparam("to"), deliveries.c.state == "pending")
    .order_by(deliveries.c.position)
    .limit(bindparam("most"))
)
_PENDING_OF: Final = _PENDING.join_from(deliveries, events, events.c.position == deliveries.c.position).where(
    events.c.device_id == bindparam("device")
)
_DELIVERED: Final = select(deliveries.c.position)
_HEARD_OF: Final = select(events.c.device_id).where(
    events.c.server_seq.is_not(None), events.c.position.not_in(_DELIVERED)
)
_SAID_AS: Final = (
    select(events.c.device_id).distinct().where(events.c.position.in_(_DELIVERED), events.c.device_id.not_in(_HEARD_OF))
)
_RELEASE: Final = delete(quarantine).where(
    quarantine.c.destination == bindparam("to"), quarantine.c.position == bindparam("at")
)
_MOVE_ALL: Final = (
    update(deliveries)
    .where(deliveries.c.destination == bindparam("to"), deliveries.c.state.in_(bindparam("then", expanding=True)))
    .where(
        deliveries.c.position.in_(
            select(events.c.position).where(events.c.event_id.in_(bindparam("ids", expanding=True)))
        )
    )
    .values(state=bindparam("now"))
)
_RELEASE_ALL: Final = delete(quarantine).where(
    quarantine.c.destination == bindparam("to"),
    quarantine.c.position.in_(select(events.c.position).where(events.c.event_id.in_(bindparam("ids", expanding=True)))),
)
_POSITION: Final = select(events.c.position).where(events.c.event_id == bindparam("id"))
_POSITIONS: Final = select(events.c.event_id, events.c.position).where(
    events.c.event_id.in_(bindparam("ids", expanding=True))
)
_SET_NUMBER: Final = update(events).where(events.c.position == bindparam("at")).values(server_seq=bindparam("number"))
_SET_NUMBER_AND_TIME: Final = (
    update(events)
    .where(events.c.event_id == bindparam("id"))
    .values(server_seq=bindparam("number"), server_ts=bindparam("time"))
)
_REPLICA_NUMBERS: Final = select(events.c.event_id, events.c.replica_id, events.c.replica_seq)
_OURS: Final = _REPLICA_NUMBERS.where(events.c.event_id.in_(bindparam("ids", expanding=True)))
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
        deliveries.c.destination == bindparam("to"),
        deliveries.c.state == "acked",
        deliveries.c.position.in_(select(events.c.position).where(events.c.server_seq.is_(None))),
    )
    .values(state="pending")
)
_REFUSALS: Final = (
    select(events.c.event_id, quarantine.c.code, quarantine.c.message, quarantine.c.noticed_at)
    .join(events, events.c.position == quarantine.c.position)
    .where(quarantine.c.destination == bindparam("to"))
    .order_by(quarantine.c.position)
)
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
    """Events of ours that a destination gave back to a database restored from a backup: it has them, until it forgets.

    Call it in the transaction that inserts them.
    """
    if event_ids:
        columns = [deliveries.c.destination, deliveries.c.position, deliveries.c.state]
        given_back = select(literal(destination), events.c.position, literal("acked"))
        connection.execute(insert(deliveries).from_select(columns, given_back.where(events.c.event_id.in_(event_ids))))


def own_device_ids(connection: Transaction) -> list[str]:
    """The ids of devices under which this log alone has spoken: its own words have deliveries, what it heard has none.

    The home that this one was copied from goes on speaking under its id, so that one is not among them.
    """
    return list(connection.execute(_SAID_AS).scalars())


def pending_positions(
    connection: Transaction, destination: str, limit: int, *, device_id: str | None = None
) -> list[int]:
    """The oldest undelivered events, in the order they were recorded; those of one device where one is named."""
    asked = {"to": destination, "most": limit}
    if device_id is None:
        return list(connection.execute(_PENDING, asked).scalars())
    return list(connection.execute(_PENDING_OF, {**asked, "device": device_id}).scalars())


def unsent_positions(connection: Transaction, destination: str, replica_id: str) -> list[int]:
    """A replica's own events that the destination never acknowledged, those that stay here included, in log order."""
    acked = (
        select(deliveries.c.position)
        .where(deliveries.c.destination == destination, deliveries.c.state == "acked")
        .scalar_subquery()
    )
    statement = (
        select(events.c.position)
        .where(events.c.replica_id == replica_id, events.c.position.not_in(acked))
        .order_by(events.c.position)
    )
    return list(connection.execute(statement).scalars())


def count_deliveries(connection: Transaction, destination: str, state: str) -> int:
    """How many deliveries are in a state: one row, whatever waits."""
    return int(connection.execute(_COUNT, {"to": destination, "now": state}).scalar() or 0)


def acknowledge(connection: Transaction, destination: str, acked: Sequence[tuple[str, int]]) -> None:
    """The destination holds these events (id, its number). Safe to repeat; unknown ids are ignored."""
    if not acked:  # as in most rounds
        return
    numbers = dict(acked)
    found = connection.execute(_POSITIONS, {"ids": list(numbers)}).all()
    if not found:
        return
    connection.execute(_SET_NUMBER, [{"at": row.position, "number": numbers[row.event_id]} for row in found])
    places = [{"to": destination, "at": row.position} for row in found]
    connection.execute(_SET_STATE, [{**place, "now": "acked"} for place in places])
    connection.execute(_RELEASE, places)


def set_server_numbers(connection: Transaction, numbered: Sequence[Event]) -> None:
    """Note the server's numbers and times of events we hold."""
    if numbered:
        connection.execute(
            _SET_NUMBER_AND_TIME,
            [{"id": event.event_id, "number": event.server_seq, "time": event.server_ts} for event in numbered],
        )


def newest_server_time(connection: Transaction) -> str | None:
    """The server's time of the newest event that it has numbered, as far as it is known here."""
    return connection.execute(_NEWEST_TIME).scalar()


def replica_numbers(connection: Transaction, event_ids: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Which of these events we hold, and the number of a replica that each has here."""
    rows = connection.execute(_OURS, {"ids": event_ids}) if event_ids else ()
    return {row.event_id: (row.replica_id, row.replica_seq) for row in rows}


def adopt_replica_numbers(connection: Transaction, differing: Sequence[Event], *, own_replica_id: str) -> None:
    """Give events that we hold the numbers they have at the destination.

    `unlike`: what is there and not here, or here under another number: a home that was restored numbers anew what it
    has not sent, and can be restored to before that. What stands here under a number that is another event's there
    waits for its own as a replica that says nothing else. What is our `own` replica's stays: it has no holes.
    """
    theirs = {event.replica_key: event.event_id for event in differing}
    asked = {"replicas": [replica for replica, _ in theirs], "numbers": [number for _, number in theirs]}
    under = [(row.event_id, (row.replica_id, row.replica_seq)) for row in connection.execute(_UNDER, asked)]
    aside = {event_id: (event_id, 1) for event_id, number in under if theirs.get(number, event_id) != event_id}
    ours = replica_numbers(connection, [event.event_id for event in differing])
    taken = {
        event.event_id: event.replica_key
        for event in differing
        if ours.get(event.event_id, (own_replica_id,))[0] != own_replica_id
    }
    moves = [*aside.items(), *taken.items()]
    if moves:
        connection.execute(_RENUMBER, [{"id": name, "replica": to[0], "number": to[1]} for name, to in moves])


def retire_former_numbers(connection: Transaction, destination: str, *, own_replica_id: str) -> None:
    """Give what waits under numbers of former replicas each a replica's that says nothing else.

    A destination that was restored has forgotten them, and may have given their numbers to events of another copy.
    """
    waiting = select(deliveries.c.position).where(
        deliveries.c.destination == destination, deliveries.c.state == "pending"
    )
    former = update(events).where(events.c.replica_id != own_replica_id, events.c.position.in_(waiting))
    connection.execute(former.values(replica_id=events.c.event_id, replica_seq=1))


def quarantine_event(connection: Transaction, destination: str, refusal: RefusedEvent) -> None:
    """Set an event aside: it does not block the others, and it is not forgotten."""
    position = connection.execute(_POSITION, {"id": refusal.event_id}).scalar_one()
    connection.execute(_SET_STATE, {"to": destination, "at": position, "now": "quarantined"})
    connection.execute(
        insert(quarantine).prefix_with("or replace"),
        {
            "destination": destination,
            "position": position,
            "code": refusal.code,
            "message": refusal.message,
            "noticed_at": refusal.noticed_at,
        },
    )


def list_refused(connection: Transaction, destination: str) -> list[RefusedEvent]:
    """What the destination will not take, oldest first."""
    return [RefusedEvent(*row) for row in connection.execute(_REFUSALS, {"to": destination})]


def read_cursor(connection: Transaction, destination: str) -> RemoteCursor:
    row = connection.execute(_CURSOR, {"to": destination}).first()
    if row is None:
        return RemoteCursor()
    may_lack = bool(row.may_lack)
    return RemoteCursor(row.epoch, row.seq, row.event_id, row.head, row.synced_at, may_lack, row.server_ts)


def save_cursor(connection: Transaction, destination: str, remote_cursor: RemoteCursor) -> None:
    connection.execute(
        _MOVE_CURSOR,
        {
            "destination": destination,
            "epoch": remote_cursor.epoch,
            "seq": remote_cursor.seq,
            "event_id": remote_cursor.event_id,
            "head": remote_cursor.head,
            "synced_at": remote_cursor.synced_at,
            "may_lack": remote_cursor.may_lack,
        },
    )


def drop_undelivered(connection: Transaction, destination: str, event_ids: Sequence[str]) -> None:
    """Send those of these events no more that have not arrived: their words are not here any more.

    A destination that got one blank would never take its words: it skips the ids that it knows.
    """
    asked = {"to": destination, "ids": event_ids}
    connection.execute(_MOVE_ALL, {**asked, "then": ["pending", "quarantined"], "now": "dropped"})
    connection.execute(_RELEASE_ALL, asked)


def requeue_dropped(connection: Transaction, destination: str, event_ids: Sequence[str]) -> None:
    """What was given up of these events goes out after all: their words are here again."""
    connection.execute(_MOVE_ALL, {"to": destination, "ids": event_ids, "then": ["dropped"], "now": "pending"})


def clear_server_numbers(connection: Transaction) -> None:
    """The remote log was replaced or restored: its numbers mean nothing now. What waits to be sent goes on waiting."""
    connection.execute(update(events).where(events.c.server_seq.is_not(None)).values(server_seq=None, server_ts=None))


def clear_stale_numbers(connection: Transaction, remote_events: Sequence[Event], *, beyond: int | None) -> bool:
    """Forget numbers that the destination has given to other events since, and those `beyond` its head; whether any.

    They were acknowledged ahead of our cursor, by a server that went back to a backup before we had read that far.
    """
    stale: list[int] = []
    if remote_events:
        theirs = {event.server_seq or 0: event.event_id for event in remote_events}
        ours = connection.execute(_NUMBERED, {"first": min(theirs), "last": max(theirs)})
        stale += [row.position for row in ours if row.event_id != theirs.get(row.server_seq)]
    if beyond is not None:
        stale += connection.execute(_BEYOND, {"head": beyond}).scalars()
    if stale:
        connection.execute(_SET_NUMBER, [{"at": position, "number": None} for position in stale])
    return bool(stale)


def requeue_lost(connection: Transaction, destination: str) -> int:
    """Once level with a log that `may_lack` something: events that it acknowledged once and no longer has.

    This reads the whole log, so it is never asked for after an ordinary round.
    """
    return connection.execute(_SEND_AGAIN, {"to": destination}).rowcount


def release_quarantined(
    connection: Transaction, destination: str, event_ids: Sequence[str] | None, state: str
) -> list[str]:
    """Take events out of quarantine: `pending` tries them again, `dropped` gives them up here (the log keeps them).

    None means all of them. Returns the ids that were in quarantine.
    """
    found = [refusal.event_id for refusal in list_refused(connection, destination)]
    chosen = [event_id for event_id in found if event_ids is None or event_id in event_ids]
    for event_id in chosen:
        position = connection.execute(_POSITION, {"id": event_id}).scalar_one()
        connection.execute(_SET_STATE, {"to": destination, "at": position, "now": state})
        connection.execute(
            delete(quarantine).where(quarantine.c.destination == destination, quarantine.c.position == position)
        )
    return chosen
