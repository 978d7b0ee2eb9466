"""SQL of the log. Every function runs inside a transaction of the caller (`Database.write` or `.read`)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from sqlalchemy import (
    ColumnElement,
    RowMapping,
    Select,
    TextClause,
    bindparam,
    delete,
    func,
    insert,
    select,
    text,
    update,
)

from sync.clock import (
    Clock,
    merge_hlc,
    next_hlc,
    timestamp,
    to_unix_ms,
    uuid7,
)
from sync.db.engine import Transaction
from sync.db.schema import REPLICA_ID_PREFIX, events, replica, watermarks
from sync.errors import InvalidInput
from sync.log import outbox_store, replica_store
from sync.log.envelope import event_ms, event_of_draft, event_of_row
from sync.log.event_types import ERASING_TYPES
from sync.log.identity.same_event import client_event_id
from sync.log.local_state import ORDER_VERSION, RETURNED_NUMBER, RULES_SUFFIX, rules_name
from sync.log.model import (
    CLOUD,
    AppendResult,
    Event,
    EventDraft,
    EventPage,
    EventScope,
    Query,
    erased_by,
)
from sync.log.newest_query import NEWEST_QUERY, newest_parameters

_BEGIN: Final = insert(replica)
_ADVANCE: Final = update(replica).values(next_seq=bindparam("next"), hlc=bindparam("clock"))
_BY_ID: Final = select(events).where(events.c.event_id == bindparam("id"))
_KNOWN: Final = select(events.c.event_id).where(events.c.event_id.in_(bindparam("ids", expanding=True)))
_BLANK: Final = (
    update(events)
    .where(events.c.event_id.in_(bindparam("ids", expanding=True)), events.c.type.not_in(ERASING_TYPES))
    .values(payload="{}", extra="{}")
)
_REPLACE: Final = update(events).where(events.c.event_id == bindparam("id")).values(payload=bindparam("new_payload"))
_INSERT: Final = insert(events)
_CONVERTED: Final = {"position", "ts_ms", "payload", "reach", "extra"}
_UNCONVERTED: Final = [column.name for column in events.columns if column.name not in _CONVERTED]
_LAST_INSERTED: Final = select(func.last_insert_rowid())
_NEWEST: Final = select(func.coalesce(func.max(events.c.position), 0))
_NEWEST_OF: Final = text(NEWEST_QUERY)
_LAST: Final = text("""
select max((select coalesce(max(position), 0) from events),
           coalesce((select seq from sqlite_sequence where name = 'events'), 0))
""")
_AT: Final = (
    select(events).where(events.c.position.in_(bindparam("positions", expanding=True))).order_by(events.c.position)
)
_OF_TYPES: Final = (
    select(events)
    .where(events.c.position > bindparam("after"), events.c.type.in_(bindparam("types", expanding=True)))
    .order_by(events.c.position)
)
_OF_DEVICE: Final = _OF_TYPES.where(events.c.device_id == bindparam("device"))
_OF_DEVICES: Final = (
    select(events.c.position)
    .where(events.c.type.in_(bindparam("types", expanding=True)))
    .where(events.c.device_id.in_(bindparam("devices", expanding=True)))
    .limit(1)
)
_FILTERS: Final[Mapping[str, ColumnElement[bool]]] = {  # of a `Query`, by its fields
    "project_id": events.c.project_id == bindparam("project_id"),
    "session_id": events.c.session_id == bindparam("session_id"),
    "types": events.c.type.in_(bindparam("types", expanding=True)),
    "since_ms": events.c.ts_ms >= bindparam("since_ms"),
    "until_ms": events.c.ts_ms < bindparam("until_ms"),
}
_SET_WATERMARK: Final = insert(watermarks).prefix_with("or replace")
_WATERMARK: Final = select(watermarks.c.position).where(watermarks.c.name == bindparam("consumer"))


def ensure_replica_id(connection: Transaction, clock: Clock) -> str:
    """Return this database's replica id; mint it at the first call."""
    row = connection.execute(replica_store.STATE_QUERY).first()
    if row is not None:
        return str(row.replica_id)
    replica_id = _new_replica_id(clock)
    connection.execute(_BEGIN, {"one": 1, "replica_id": replica_id, "next_seq": 1, "hlc": None})
    return replica_id


def existing_replica_id(connection: Transaction) -> str:
    """Return the replica id; empty if the database was never opened."""
    row = connection.execute(replica_store.STATE_QUERY).first()
    return "" if row is None else str(row.replica_id)


def _new_replica_id(clock: Clock) -> str:
    return f"{REPLICA_ID_PREFIX}{uuid7(to_unix_ms(clock.now()), clock.random_bytes)}"


def renumber_as_new_replica(connection: Transaction, positions: Sequence[int], clock: Clock) -> str:
    """Make this database a new replica whose first events are those at `positions`; return its id.

    An event keeps its HLC, even one that damage put out of order: it is part of the event's identity.
    """
    replica_id = _new_replica_id(clock)
    for number, position in enumerate(positions, start=1):
        values = {"replica_id": replica_id, "replica_seq": number}
        connection.execute(update(events).where(events.c.position == position).values(values))
    connection.execute(update(replica).values(replica_id=replica_id, next_seq=len(positions) + 1))
    set_watermark(connection, RETURNED_NUMBER, len(positions), clock)  # their HLCs may be out of order
    if positions:
        bump_order_version(connection, clock)
    return replica_id


def append(
    connection: Transaction,
    drafts: Sequence[EventDraft],
    *,
    device_id: str,
    clock: Clock,
    default_session_id: str,
    former_device_ids: Sequence[str] = (),
) -> list[AppendResult]:
    """Append events with their deliveries. No other function records events of this device.

    For a known event id the event recorded before is returned; with another payload it raises InvalidInput, because one
    of the two would be lost.
    """
    state = replica_store.read_state(connection)
    now = clock.now()
    seq, hlc = state.next_seq, state.hlc
    new: dict[str, Event] = {}
    results: list[AppendResult] = []
    devices = (device_id, *former_device_ids)
    for draft in drafts:
        known = _find_recorded(connection, new, draft, devices)
        if known is not None:
            results.append(AppendResult(_check_same_content(connection, known, draft), True, draft.client_id))
            continue
        hlc = next_hlc(hlc, to_unix_ms(now))
        event = event_of_draft(draft, state.replica_id, seq, hlc, device_id, default_session_id, clock)
        new[event.event_id] = event
        results.append(AppendResult(event, False, draft.client_id))
        seq += 1
    added = {event.event_id: event for event in _insert_in_order(connection, list(new.values()))}
    sent = [event.position for event in added.values() if event.reach is EventScope.CLOUD]
    outbox_store.enqueue(connection, CLOUD, sent)
    connection.execute(_ADVANCE, {"next": seq, "clock": hlc})
    return [replace(one, event=added.get(one.event.event_id, one.event)) for one in results]


def _find_recorded(
    connection: Transaction, new: Mapping[str, Event], draft: EventDraft, device_ids: Sequence[str]
) -> Event | None:
    """Return the event that a draft repeats. A program's id is this device's; of before, it was the event's own id."""
    if draft.client_id is None:
        return new.get(draft.event_id) or find_event(connection, draft.event_id) if draft.event_id else None
    for event_id in (client_event_id(device_id, draft.client_id) for device_id in device_ids):
        if (known := new.get(event_id) or find_event(connection, event_id)) is not None:
            return known
    former = find_event(connection, draft.client_id)
    return former if former is not None and former.device_id in device_ids else None


def _check_same_content(connection: Transaction, known: Event, draft: EventDraft) -> Event:
    """Return the recorded event if the draft has the same content, or if the content was erased since."""
    if known.type == draft.type and (dict(known.payload) == draft.payload.value or _is_erased(connection, known)):
        return known
    raise InvalidInput(
        f"event_id {draft.client_id or known.event_id} is already recorded with another content",
        field="event_id",
        hint="Give a new fact a new event_id; recorded events never change.",
    )


def _is_erased(connection: Transaction, event: Event) -> bool:
    if event.payload:
        return False
    requests = connection.execute(select(events).where(events.c.type.in_(ERASING_TYPES))).mappings()
    return any(event.event_id in erased_by(event_of_row(row)) for row in requests)


def insert_event(connection: Transaction, event: Event) -> Event:
    """Insert one event, at its position if it has one; return it with its position."""
    values = row_values(event) | ({"position": event.position} if event.position > 0 else {})
    return replace(event, position=connection.execute(_INSERT, values).lastrowid)


def _insert_in_order(connection: Transaction, new_events: Sequence[Event]) -> list[Event]:
    """Insert events; return them with their positions, which AUTOINCREMENT gives in order and without a gap."""
    if len(new_events) <= 1:
        return [insert_event(connection, event) for event in new_events]
    insert_events(connection, new_events)
    first = connection.execute(_LAST_INSERTED).scalar_one() - len(new_events) + 1
    return [replace(event, position=position) for position, event in enumerate(new_events, start=first)]


def insert_events(connection: Transaction, new_events: Sequence[Event]) -> None:
    """Insert events in one statement; one by one, a first pull takes ten times as long."""
    if new_events:
        connection.execute(_INSERT, [row_values(event) for event in new_events])


def row_values(event: Event) -> dict[str, Any]:
    """Return the columns of an event."""
    return {name: getattr(event, name) for name in _UNCONVERTED} | {
        "ts_ms": event_ms(event),
        "payload": msgspec.json.encode(event.payload).decode(),
        "reach": str(event.reach),
        "extra": msgspec.json.encode(event.extra).decode(),
    }


def observe_remote_events(connection: Transaction, remote_events: Sequence[Event], clock: Clock) -> None:
    """Move the clock of this replica past these events, so that its next event comes after them.

    Events of this replica may be among them, out of an archive: their numbers are used up.
    """
    if not remote_events:
        return
    state = replica_store.read_state(connection)
    hlc, following = state.hlc, state.next_seq
    wall = to_unix_ms(clock.now())
    for event in remote_events:
        hlc = merge_hlc(hlc, event.hlc, wall)
        if event.replica_id == state.replica_id:
            following = max(following, event.replica_seq + 1)
    if (hlc, following) != (state.hlc, state.next_seq):
        connection.execute(_ADVANCE, {"next": following, "clock": hlc})


def known_ids(connection: Transaction, event_ids: Sequence[str]) -> set[str]:
    """Return those of these ids that the log holds."""
    return set(connection.execute(_KNOWN, {"ids": event_ids}).scalars()) if event_ids else set()


def erase_payloads(connection: Transaction, event_ids: Iterable[str]) -> None:
    """Erase the payloads of these events; their rows stay. Erasure requests are never erased."""
    connection.execute(_BLANK, {"ids": list(event_ids)})


def replace_payload(connection: Transaction, event_id: str, payload: Mapping[str, Any]) -> None:
    """Replace the payload of an event by a redacted one."""
    connection.execute(_REPLACE, {"id": event_id, "new_payload": msgspec.json.encode(payload).decode()})


def find_event(connection: Transaction, event_id: str) -> Event | None:
    row = connection.execute(_BY_ID, {"id": event_id}).mappings().first()
    return None if row is None else event_of_row(row)


def read_page(connection: Transaction, query: Query) -> EventPage:
    """Return events after `query.after`, oldest first."""
    matching = tuple(event_of_row(row) for row in _matching_rows(connection, query))
    return EventPage(matching, matching[-1].position if matching else query.after)


def read_newest_page(connection: Transaction, query: Query) -> EventPage:
    """Return the newest events of a query, oldest of them first."""
    matching = tuple(event_of_row(row) for row in reversed(_matching_rows(connection, query, newest_first=True)))
    return EventPage(matching, matching[-1].position if matching else query.after)


def read_by_device(connection: Transaction, device_id: str, *, after: int, types: Sequence[str]) -> list[Event]:
    """Return the events of one device and of these types, in log order."""
    parameters = {"after": after, "device": device_id, "types": types}
    return [event_of_row(row) for row in connection.execute(_OF_DEVICE, parameters).mappings()]


def read_later_of_replica(connection: Transaction, event: Event) -> Iterator[Event]:
    """Yield the stored events of the same replica after an event, in its order."""
    statement = (
        select(events)
        .where(events.c.replica_id == event.replica_id, events.c.replica_seq > event.replica_seq)
        .order_by(events.c.replica_seq)
        .execution_options(yield_per=20)  # the caller stops after a few
    )
    with connection.execute(statement) as rows:
        yield from (event_of_row(row) for row in rows.mappings())


def read_newest(
    connection: Transaction, types: Sequence[str], *, limit: int, excluded_devices: Collection[str] = ()
) -> list[Event]:
    """Return events without those of excluded devices, newest first by HLC, replica and number."""
    rows = connection.execute(_NEWEST_OF, newest_parameters(types, excluded_devices, limit)).mappings()
    return [event_of_row(row) for row in rows]


def read_by_types(connection: Transaction, types: Sequence[str], *, after: int) -> Iterator[Event]:
    """Yield the events of these types of all devices, in log order."""
    return (event_of_row(row) for row in connection.execute(_OF_TYPES, {"after": after, "types": types}).mappings())


def has_events_of(connection: Transaction, types: Sequence[str], device_ids: Collection[str]) -> bool:
    """Return whether one of these devices has recorded an event of these types."""
    found = connection.execute(_OF_DEVICES, {"types": types, "devices": [*device_ids]})
    return found.first() is not None


def newest_position_of_types(connection: Transaction, types: Sequence[str]) -> int:
    """Return the position of the newest event of these types; 0 if there is none."""
    return int(connection.execute(_newest_position_query(tuple(types))).scalar_one())


@cache
def _newest_position_query(types: tuple[str, ...]) -> TextClause:
    """Build a query with one index lookup for each type; one aggregate would read all of their rows."""
    names = [f"type{number}" for number in range(len(types))]
    lookups = ", ".join(f"coalesce((select max(position) from events where type = :{name}), 0)" for name in names)  # noqa: S608
    return text(f"select max(0, {lookups})").bindparams(**dict(zip(names, types, strict=True)))


def read_at_positions(connection: Transaction, positions: Sequence[int]) -> list[Event]:
    """Return the events at these positions, in log order."""
    if not positions:
        return []
    return [event_of_row(row) for row in connection.execute(_AT, {"positions": positions}).mappings()]


def last_own_seq(connection: Transaction) -> int:
    """Return the number of this replica's newest event; 0 before the first."""
    return int(replica_store.read_state(connection).next_seq) - 1


def newest_position(connection: Transaction) -> int:
    return int(connection.execute(_NEWEST).scalar_one())


def highest_given_position(connection: Transaction) -> int:
    """Return the highest position ever given, including those of lost events; 0 before the first."""
    return int(connection.execute(_LAST).scalar_one())


def watermark(connection: Transaction, name: str) -> int:
    return int(connection.execute(_WATERMARK, {"consumer": name}).scalar() or 0)


def set_watermark(connection: Transaction, name: str, position: int, clock: Clock) -> None:
    values = {"name": name, "position": position, "updated_at": timestamp(clock.now())}
    connection.execute(_SET_WATERMARK, values)


def has_watermark(connection: Transaction, name: str) -> bool:
    return connection.execute(_WATERMARK, {"consumer": name}).first() is not None


def forget_projection(connection: Transaction, name: str) -> None:
    """Remove the offset of a projection that is off, so that nothing waits for it."""
    connection.execute(delete(watermarks).where(watermarks.c.name.in_((name, rules_name(name)))))


def reset_projections(connection: Transaction) -> None:
    """Have every projection rebuilt: its stored data is lost."""
    connection.execute(delete(watermarks).where(watermarks.c.name.endswith(RULES_SUFFIX, autoescape=True)))


def order_version(connection: Transaction) -> int:
    """Return a number that changes whenever a stored event gets another place in the order."""
    return watermark(connection, ORDER_VERSION)


def bump_order_version(connection: Transaction, clock: Clock) -> None:
    """Note that events got another place in the order; call it in the transaction that changes it."""
    set_watermark(connection, ORDER_VERSION, order_version(connection) + 1, clock)


def _matching_rows(connection: Transaction, query: Query, *, newest_first: bool = False) -> Sequence[RowMapping]:
    filters = {name: value for name in _FILTERS if (value := getattr(query, name)) not in (None, ())}
    statement = _filter_statement(tuple(filters), newest_first=newest_first)
    return connection.execute(statement, {**filters, "after": query.after, "most": query.limit}).mappings().all()


@cache
def _filter_statement(names: tuple[str, ...], *, newest_first: bool) -> Select[Any]:
    """Build one statement for each set of filters; building takes longer than executing it."""
    matching = select(events).where(events.c.position > bindparam("after"), *(_FILTERS[name] for name in names))
    place = events.c.position.desc() if newest_first else events.c.position
    return matching.order_by(place).limit(bindparam("most"))
