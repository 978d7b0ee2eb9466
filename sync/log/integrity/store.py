"""SQL of `events verify`: what must be true of a log at rest; and what puts events back into a salvaged log."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace
from sqlalchemy import bindparam, text, update

from sync.db.engine import Transaction
from sync.db.schema import events
from sync.log import store
from sync.log.identity import store as identity_store
from sync.log.local_state import RETURNED_NUMBER
from sync.log.model import Event

MAX_EXAMPLES: Final = 20  # of one kind; all are counted

# Each query returns the ids that violate a promise of sync.md: I1, I2, I5, I7. What the server has needs no delivery: a
# copy of this database that is another device by now may have sent it under this replica. Events that a peer or an
# archive gave back to a restored database (`RETURNED_NUMBER`) have holes before them, where local events were lost, may
# be earlier than newer ones, and are not sent from here if another device recorded them.
_RETURNED: Final = f"(select coalesce(max(position), 0) from watermarks where name = '{RETURNED_NUMBER}')"  # noqa: S608 - constants only
_CHECKS: Final = {
    "an event that may leave has no delivery": text(
        "select event_id from events where reach = 'cloud' and replica_id = (select replica_id from replica)"  # noqa: S608 - constants only
        " and server_seq is null and position not in (select position from deliveries)"
        f" and not (replica_seq <= {_RETURNED}"
        " and device_id not in (select device_id from events join deliveries using (position)))"
    ),
    "an event that must stay has a delivery": text(
        "select event_id from events join deliveries using (position) where reach = 'local'"
    ),
    "the deliveries are not as many as were counted": text(
        "select destination || ' ' || state from ("
        "select destination, state, count(*) as count from deliveries group by destination, state"
        " union all select destination, state, -count from delivery_counts)"
        " group by destination, state having sum(count) <> 0"
    ),
    "a payload is not a JSON object": text(
        "select event_id from events where not json_valid(payload) or json_type(payload) <> 'object'"
    ),
    "the replica's numbers have a hole before this event": text(
        "select event_id from (select event_id, replica_id, replica_seq - 1 as before,"  # noqa: S608 - constants only
        " lag(replica_seq, 1, 0) over (order by replica_seq) as last from events"
        " where replica_id = (select replica_id from replica)) where last <> before"
        f" and before >= {_RETURNED}"
    ),
    "an event is earlier than the one recorded before it": text(
        "select event_id from (select event_id, hlc, lag(hlc, 1, '') over (order by replica_seq) as last from events"  # noqa: S608 - constants only
        " where replica_id = (select replica_id from replica)"
        f" and replica_seq > {_RETURNED} + 1) where hlc <= last"
    ),
}


class ProblemJson(msgspec.Struct, frozen=True, rename="camel"):
    """A violated promise; `examples` are ids, never content."""

    what: str
    count: int
    examples: tuple[str, ...]


def find_problems(connection: Transaction) -> Iterator[ProblemJson]:
    """Yield every problem of the log."""
    for name, pragma in (("the database is damaged", "integrity_check"), ("a row points nowhere", "foreign_key_check")):
        rows = [str(row[0]) for row in connection.exec_driver_sql(f"pragma {pragma}").all()]
        if rows and rows != ["ok"]:
            yield ProblemJson(name, len(rows), tuple(rows[:MAX_EXAMPLES]))
    for what, question in _CHECKS.items():
        ids = list(connection.execute(question).scalars())
        if ids:
            yield ProblemJson(what, len(ids), tuple(ids[:MAX_EXAMPLES]))


def count_events(connection: Transaction) -> int:
    return int(connection.exec_driver_sql("select count(*) from events").scalar_one())


_UNLIKE_INDEX: Final = text(
    "select e.event_id from (select position, event_id, payload from events where position > :after"
    " order by position limit :most) e where not json_valid(e.payload) or not exists (select 1 from events x"
    " indexed by sqlite_autoindex_events_1 where x.event_id = e.event_id and x.position = e.position)"
)
_END: Final = text(
    "select max(position) from (select position from events where position > :after order by position limit :most)"
)


def check_index_batch(connection: Transaction, after: int, limit: int) -> tuple[int, list[str]]:
    """Check the next events; return the position to continue after (0 at the end) and the ids missing in the index."""
    batch = {"after": after, "most": limit}
    wrong_ids = list(connection.execute(_UNLIKE_INDEX, batch).scalars())
    return int(connection.execute(_END, batch).scalar() or 0), wrong_ids


_MEND: Final = (
    update(events)
    .where(events.c.position == bindparam("at"))
    .values(event_id=bindparam("id"), payload=bindparam("whole"))
)


def restore_events(connection: Transaction, candidates: Sequence[Event]) -> int:
    """Insert the unknown of these events, each at its own position if that is free; return how many there were.

    A stored event of the same device and time at that position is the event itself with a damaged id: it is mended. An
    event whose replica number another one has becomes a replica of its own.
    """
    known = store.known_ids(connection, [event.event_id for event in candidates])
    unknown = {event.event_id: event for event in candidates if event.event_id not in known}.values()
    at = [event.position for event in unknown]
    held = {event.position: event for event in store.read_at_positions(connection, at)}
    for event in unknown:
        stored = held.get(event.position)
        if stored is not None and (stored.device_id, stored.hlc) == (event.device_id, event.hlc):
            whole = msgspec.json.encode(event.payload).decode()
            connection.execute(_MEND, {"at": event.position, "id": event.event_id, "whole": whole})
            continue
        placed = event if stored is None else replace(event, position=0)
        if identity_store.is_number_taken(connection, event):
            placed = replace(placed, replica_id=event.event_id, replica_seq=1)
        store.insert_event(connection, placed)
    return len(unknown)
