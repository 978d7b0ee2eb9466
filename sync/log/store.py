"""The log's SQL. Every function runs inside a transaction of the caller (`Database.write` or `.read`)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
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
    hlcs_in_order,
    merge_hlc,
    milliseconds,
    new_event_id,
    next_hlc,
    timestamp,
    utc_offset_minutes,
    uuid7,
)
from sync.db.tables import REPLICA, events, replica, watermarks
from sync.errors import InvalidInput
from sync.log import outbox_store, replica_store
from sync.log.envelope import event_ms, event_of_row
from sync.log.model import (
    CLOUD,
    SCHEMA_VERSION,
    TAKING_AWAY,
    Draft,
    Event,
    Page,
    Query,
    Reach,
    Recorded,
    forgotten_by,
    reach_of,
)
from sync.log.newest import NEWEST, newest_asked

RULES: Final = ".rules"  # the end of the mark under which a view keeps the number of its rules
ORDER: Final = "document.order"  # counts how often the events' order has changed

_BEGIN: Final = insert(replica)
_ADVANCE: Final = update(replica).values(next_seq=bindparam("next"), hlc=bindparam("clock"))
_BY_ID: Final = select(events).where(events.c.event_id == bindparam("id"))
_KNOWN: Final = select(events.c.event_id).where(events.c.event_id.in_(bindparam("ids", expanding=True)))
_NUMBERS: Final = select(events.c.replica_id, events.c.replica_seq).where(
    events.c.replica_id.in_(bindparam("replicas", expanding=True)),
    events.c.replica_seq.in_(bindparam("numbers", expanding=True)),
)
_BLANK: Final = (
    update(events)
    .where(events.c.event_id.in_(bindparam("ids", expanding=True)), events.c.type.not_in(TAKING_AWAY))
    .values(payload="{}", extra="{}")
)
_REPLACE: Final = update(events).where(events.c.event_id == bindparam("id")).values(payload=bindparam("said"))
_INSERT: Final = insert(events)
_CONVERTED: Final = {"position", "ts_ms", "payload", "reach", "extra"}
_AS_IT_IS: Final = [column.name for column in events.columns if column.name not in _CONVERTED]
_LAST_INSERTED: Final = select(func.last_insert_rowid())
_NEWEST: Final = select(func.coalesce(func.max(events.c.position), 0))
_NEWEST_OF: Final = text(NEWEST)
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
_FILTERS: Final[Mapping[str, ColumnElement[bool]]] = {  # of a `Query`, by its fields
    "project_id": events.c.project_id == bindparam("project_id"),
    "session_id": events.c.session_id == bindparam("session_id"),
    "types": events.c.type.in_(bindparam("types", expanding=True)),
    "since_ms": events.c.ts_ms >= bindparam("since_ms"),
    "until_ms": events.c.ts_ms < bindparam("until_ms"),
}
_SET_WATERMARK: Final = insert(watermarks).prefix_with("or replace")
_WATERMARK: Final = select(watermarks.c.position).where(watermarks.c.name == bindparam("follower"))


def open_replica(connection: Connection, clock: Clock) -> str:
    """This database's replica id, minted at the first call."""
    row = connection.execute(replica_store.ROW).first()
    if row is not None:
        return str(row.replica_id)
    replica_id = _new_replica_id(clock)
    connection.execute(_BEGIN, {"one": 1, "replica_id": replica_id, "next_seq": 1, "hlc": None})
    return replica_id


def replica_id(connection: Connection) -> str:
    """The id of a database that has been opened before; empty where it never was."""
    row = connection.execute(replica_store.ROW).first()
    return "" if row is None else str(row.replica_id)


def _new_replica_id(clock: Clock) -> str:
    return f"{REPLICA}{uuid7(milliseconds(clock.now()), clock.random_bytes)}"


def renumber(connection: Connection, positions: Sequence[int], clock: Clock) -> str:
    """Make this database a new replica whose first events are those at `positions`; its id.

    Nobody has seen them yet, so an HLC that damage has put out of order takes the next place in it.
    """
    replica_id = _new_replica_id(clock)
    hlc_at = select(events.c.hlc).where(events.c.position == bindparam("at"))
    ordered = hlcs_in_order([connection.execute(hlc_at, {"at": position}).scalar_one() for position in positions])
    for number, (position, hlc) in enumerate(zip(positions, ordered, strict=True), start=1):
        values = {"replica_id": replica_id, "replica_seq": number, "hlc": hlc}
        connection.execute(update(events).where(events.c.position == position).values(values))
    connection.execute(update(replica).values(replica_id=replica_id, next_seq=len(positions) + 1))
    if positions:
        note_reordered(connection, clock)
    return replica_id


def record(
    connection: Connection, drafts: Sequence[Draft], *, device_id: str, clock: Clock, session_id: str
) -> list[Recorded]:
    """The only write door: each event and its deliveries, numbered and stamped, in the caller's transaction.

    An event id that is known already is answered with the event recorded before; the same id with another payload
    raises InvalidInput, because one of the two would otherwise be lost.
    """
    state = replica_store.state(connection)
    now = clock.now()
    seq, hlc = state.next_seq, state.hlc
    fresh: dict[str, Event] = {}
    answers: list[tuple[Event, bool]] = []
    for draft in drafts:
        known = None
        if draft.event_id:
            known = fresh.get(draft.event_id) or find(connection, draft.event_id)
        if known is not None:
            answers.append((_same(connection, known, draft), True))
            continue
        hlc = next_hlc(hlc, milliseconds(now))
        event = Event(
            event_id=draft.event_id or new_event_id(clock),
            schema_version=SCHEMA_VERSION,
            project_id=draft.project_id,
            project_path=None if draft.project_path is None else str(draft.project_path),  # JSON knows no Clean
            session_id=draft.session_id or session_id,
            ts=draft.ts or timestamp(now),
            type=draft.type,
            payload=draft.payload.value,
            device_id=device_id,
            replica_id=state.replica_id,
            replica_seq=seq,
            hlc=hlc,
            origin=str(draft.origin),
            reach=reach_of(draft.type),
            local_date=draft.local_date or now.date().isoformat(),
            utc_offset=utc_offset_minutes(now) if draft.utc_offset is None else draft.utc_offset,
            extra=draft.extra.value if draft.extra else {},
        )
        fresh[event.event_id] = event
        answers.append((event, False))
        seq += 1
    added = {event.event_id: event for event in _add_in_order(connection, list(fresh.values()))}
    sent = [event.position for event in added.values() if event.reach is Reach.CLOUD]
    outbox_store.deliver(connection, CLOUD, sent)
    connection.execute(_ADVANCE, {"next": seq, "clock": hlc})
    return [Recorded(added.get(event.event_id, event), duplicate=duplicate) for event, duplicate in answers]


def _same(connection: Connection, known: Event, draft: Draft) -> Event:
    """The event recorded before, where the draft says the same, or what was forgotten since: it stays so."""
    if known.type == draft.type and (dict(known.payload) == draft.payload.value or _is_forgotten(connection, known)):
        return known
    raise InvalidInput(
        f"event_id {known.event_id} is already recorded with another content",
        field="event_id",
        hint="Give a new fact a new event_id; recorded events never change.",
    )


def _is_forgotten(connection: Connection, event: Event) -> bool:
    if event.payload:
        return False
    wishes = connection.execute(select(events).where(events.c.type.in_(TAKING_AWAY))).mappings()
    return any(event.event_id in forgotten_by(event_of_row(row)) for row in wishes)


def add(connection: Connection, event: Event) -> Event:
    """Insert one event; returns it with its position."""
    return replace(event, position=connection.execute(_INSERT, _row(event)).lastrowid)


def _add_in_order(connection: Connection, found: Sequence[Event]) -> list[Event]:
    """Insert events; returns them with their positions, which AUTOINCREMENT gives in order and without a gap."""
    if len(found) <= 1:
        return [add(connection, event) for event in found]
    add_all(connection, found)
    first = connection.execute(_LAST_INSERTED).scalar_one() - len(found) + 1
    return [replace(event, position=position) for position, event in enumerate(found, start=first)]


def add_all(connection: Connection, found: Sequence[Event]) -> None:
    """Insert a page of events at once: statement by statement a first pull takes ten times as long."""
    if found:
        connection.execute(_INSERT, [_row(event) for event in found])


def _row(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in _AS_IT_IS} | {
        "ts_ms": event_ms(event),
        "payload": msgspec.json.encode(event.payload).decode(),
        "reach": str(event.reach),
        "extra": msgspec.json.encode(event.extra).decode(),
    }


def witness(connection: Connection, seen: Sequence[Event], clock: Clock) -> None:
    """Move this replica past events from elsewhere, so that what we say next comes after them.

    Events of our own replica come from elsewhere as well, out of an archive: their numbers are taken.
    """
    if not seen:
        return
    state = replica_store.state(connection)
    hlc, following = state.hlc, state.next_seq
    wall = milliseconds(clock.now())
    for event in seen:
        hlc = merge_hlc(hlc, event.hlc, wall)
        if event.replica_id == state.replica_id:
            following = max(following, event.replica_seq + 1)
    if (hlc, following) != (state.hlc, state.next_seq):
        connection.execute(_ADVANCE, {"next": following, "clock": hlc})


def known_ids(connection: Connection, event_ids: Sequence[str]) -> set[str]:
    """Which of these events we hold."""
    return set(connection.execute(_KNOWN, {"ids": event_ids}).scalars()) if event_ids else set()


def any_taken(connection: Connection, found: Sequence[Event]) -> bool:
    """Whether an event of ours, or two of these, stand under one number of one replica."""
    numbers = {(event.replica_id, event.replica_seq) for event in found}
    asked = {"replicas": list({replica for replica, _ in numbers}), "numbers": list({number for _, number in numbers})}
    taken = connection.execute(_NUMBERS, asked)
    return len(numbers) < len(found) or any((row.replica_id, row.replica_seq) in numbers for row in taken)


def blank(connection: Connection, event_ids: Iterable[str]) -> None:
    """Take the payloads of these events away; their rows stay. A wish to forget is not forgotten."""
    connection.execute(_BLANK, {"ids": list(event_ids)})


def replace_payload(connection: Connection, event_id: str, payload: Mapping[str, Any]) -> None:
    """Give an event another payload, redacted anew; everything else of it stays."""
    connection.execute(_REPLACE, {"id": event_id, "said": msgspec.json.encode(payload).decode()})


def find(connection: Connection, event_id: str) -> Event | None:
    row = connection.execute(_BY_ID, {"id": event_id}).mappings().first()
    return None if row is None else event_of_row(row)


def read(connection: Connection, query: Query) -> Page:
    """Events after `query.after`, oldest first."""
    found = tuple(event_of_row(row) for row in _asked(connection, query))
    return Page(found, found[-1].position if found else query.after)


def tail(connection: Connection, query: Query) -> Page:
    """The newest events of a query, oldest of them first."""
    found = tuple(event_of_row(row) for row in reversed(_asked(connection, query, newest_first=True)))
    return Page(found, found[-1].position if found else query.after)


def of_device(connection: Connection, device_id: str, *, after: int, types: Sequence[str]) -> list[Event]:
    """This device's own events of the given types, in log order: what its document follows."""
    asked = {"after": after, "device": device_id, "types": types}
    return [event_of_row(row) for row in connection.execute(_OF_DEVICE, asked).mappings()]


def following(connection: Connection, event: Event) -> Iterator[Event]:
    """What the same replica has said after an event, in its order; we may not hold all of it."""
    statement = (
        select(events)
        .where(events.c.replica_id == event.replica_id, events.c.replica_seq > event.replica_seq)
        .order_by(events.c.replica_seq)
        .execution_options(yield_per=20)  # whoever asks stops after a few
    )
    with connection.execute(statement) as rows:
        yield from (event_of_row(row) for row in rows.mappings())


def newest(connection: Connection, types: Sequence[str], *, limit: int, besides: Collection[str] = ()) -> list[Event]:
    """Events of all devices but some, newest first in the log's own order (HLC, replica, number)."""
    rows = connection.execute(_NEWEST_OF, newest_asked(types, besides, limit)).mappings()
    return [event_of_row(row) for row in rows]


def of_types(connection: Connection, types: Sequence[str], *, after: int) -> Iterator[Event]:
    """Events of all devices of the given types, in log order: what a shared document is made of."""
    return (event_of_row(row) for row in connection.execute(_OF_TYPES, {"after": after, "types": types}).mappings())


def says(connection: Connection, device_id: str, kind: str, words: str) -> bool:
    """Whether an event of this type and device holds these words. It looks at all of them: ask rarely."""
    found = select(events.c.position).where(
        events.c.device_id == device_id, events.c.type == kind, events.c.payload.contains(words, autoescape=True)
    )
    return connection.execute(found.limit(1)).first() is not None


def newest_of_types(connection: Connection, types: Sequence[str]) -> int:
    """The position of the newest event of the given types; 0 where there is none."""
    return int(connection.execute(_newest_of(tuple(types))).scalar_one())


@cache
def _newest_of(types: tuple[str, ...]) -> Select[Any]:
    """One look into the index for each type; an aggregate over all of them would read them all."""
    looks = (select(func.max(events.c.position)).where(events.c.type == kind).scalar_subquery() for kind in types)
    return select(func.max(0, *(func.coalesce(look, 0) for look in looks)))


def at_positions(connection: Connection, positions: Sequence[int]) -> list[Event]:
    """The events at the given places, in log order."""
    if not positions:
        return []
    return [event_of_row(row) for row in connection.execute(_AT, {"positions": positions}).mappings()]


def last_own_seq(connection: Connection) -> int:
    """The number of this replica's newest event; 0 before the first."""
    return int(replica_store.state(connection).next_seq) - 1


def newest_position(connection: Connection) -> int:
    return int(connection.execute(_NEWEST).scalar_one())


def last_position(connection: Connection) -> int:
    """The highest position that was ever given, also to events that damage took; 0 before the first."""
    return int(connection.execute(_LAST).scalar_one())


def watermark(connection: Connection, name: str) -> int:
    return int(connection.execute(_WATERMARK, {"follower": name}).scalar() or 0)


def set_watermark(connection: Connection, name: str, position: int, clock: Clock) -> None:
    values = {"name": name, "position": position, "updated_at": timestamp(clock.now())}
    connection.execute(_SET_WATERMARK, values)


def begin_views_anew(connection: Connection) -> None:
    """Let every view be built anew: what it had stored is not there any more."""
    connection.execute(delete(watermarks).where(watermarks.c.name.endswith(RULES, autoescape=True)))


def order(connection: Connection) -> int:
    """A number that changes whenever an event that we hold gets another place in the order."""
    return watermark(connection, ORDER)


def note_reordered(connection: Connection, clock: Clock) -> None:
    """Events have got another place in the order; call it in the transaction that numbers them."""
    set_watermark(connection, ORDER, order(connection) + 1, clock)


def _asked(connection: Connection, query: Query, *, newest_first: bool = False) -> Sequence[RowMapping]:
    given = {name: value for name in _FILTERS if (value := getattr(query, name)) not in (None, ())}
    statement = _filtered(tuple(given), newest_first=newest_first)
    return connection.execute(statement, {**given, "after": query.after, "most": query.limit}).mappings().all()


@cache
def _filtered(names: tuple[str, ...], *, newest_first: bool) -> Select[Any]:
    """One statement for each set of filters: to build it anew takes longer than SQLite takes to answer it."""
    wanted = select(events).where(events.c.position > bindparam("after"), *(_FILTERS[name] for name in names))
    place = events.c.position.desc() if newest_first else events.c.position
    return wanted.order_by(place).limit(bindparam("most"))
