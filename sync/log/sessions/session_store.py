"""SQL of sessions: their places in the log, and the events about them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, FromClause, RowMapping, Select, and_, bindparam, exists, func, or_, select

from sync.clock import parse_hlc
from sync.db.engine import Transaction
from sync.db.schema import events
from sync.log.devices import store as registry_store
from sync.log.envelope import event_of_row
from sync.log.event_types import (
    ERASING_TYPES,
    HOLDING_TYPES,
    SESSION_END_TYPES,
    SESSION_EVENT_TYPES,
    SESSION_META,
    SESSION_SKIPPED,
    SESSION_STARTED,
)
from sync.log.model import DOOR_FIELD, GLOBAL_PROJECT, UNPROVEN_FIELD, Event
from sync.log.sessions.model import Session, SessionSpan, session_of

MAX_UNNAMED_PAUSE_MS: Final = 86_400_000  # a pause that refused calls extend ends at the latest after a day
_IDS: Final[Any] = bindparam("ids", expanding=True)
_OF_SAME: Final = events.alias("of_same")


def _is_by_own(table: FromClause) -> ColumnElement[bool]:
    is_proven = func.json_extract(table.c.extra, f"$.{UNPROVEN_FIELD}").is_(None)
    return and_(table.c.device_id.in_(bindparam("own", expanding=True)), is_proven)


_HAS_OWN: Final = exists(
    select(_OF_SAME.c.position).where(_OF_SAME.c.session_id == events.c.session_id, _is_by_own(_OF_SAME))
)
_COUNTS: Final = or_(bindparam("is_open"), _is_by_own(events), ~_HAS_OWN)
_NO_CONVERSATION: Final = (SESSION_META, *ERASING_TYPES, *HOLDING_TYPES)
_IS_CONVERSATION: Final = events.c.type.not_in(_NO_CONVERSATION)
_BOUNDS: Final = select(
    events.c.session_id,
    func.min(events.c.position).label("first"),
    func.max(events.c.position).filter(_IS_CONVERSATION).label("last"),
    func.max(events.c.ts_ms).filter(_IS_CONVERSATION, events.c.type.not_in(SESSION_END_TYPES)).label("latest_ms"),
    func.count().label("events"),
)
_OF_IDS: Final = _BOUNDS.where(events.c.session_id.in_(_IDS), _COUNTS).group_by(events.c.session_id)
_COLUMNS: Final = (
    events.c.position,
    events.c.event_id,
    events.c.ts_ms,
    events.c.hlc,
    events.c.device_id,
    events.c.project_id,
    events.c.project_path,
)
_AT: Final = select(*_COLUMNS).where(events.c.position.in_(_IDS))
_ABOUT: Final = (
    select(events)
    .where(events.c.session_id.in_(_IDS), events.c.type.in_(SESSION_EVENT_TYPES), _COUNTS)
    .order_by(events.c.position)
)
_IDS_AFTER: Final = (
    select(events.c.session_id)
    .where(events.c.session_id > bindparam("after"))
    .distinct()
    .order_by(events.c.session_id)
    .limit(bindparam("most"))
)
_HAS_CONVERSATION: Final = exists(
    select(_OF_SAME.c.position).where(
        _OF_SAME.c.session_id == events.c.session_id, _OF_SAME.c.type.not_in(_NO_CONVERSATION)
    )
)
_BATCH: Final = 500  # ids in one statement; SQLite's limit is 32,766
_SKIPS: Final = (
    select(events.c.payload, events.c.extra, events.c.ts_ms)
    .where(events.c.type == SESSION_SKIPPED, _is_by_own(events))
    .order_by(events.c.hlc, events.c.event_id)
)


class PausedSessions(msgspec.Struct, frozen=True):
    """Paused sessions, and when (Unix ms) this device's pause for events without a session id was extended and began.

    `unnamed_door`: where that pause was set; None for one of a program or of an earlier version.
    """

    session_ids: frozenset[str]
    unnamed_since_ms: int | None
    unnamed_begun_ms: int = 0
    unnamed_door: str | None = None


def read_paused_sessions(connection: Transaction, own_device_ids: Collection[str]) -> PausedSessions:
    """Return the pauses that this device set; the newest event of a session decides."""
    paused: set[str] = set()
    unnamed, begun, door = None, 0, None
    for payload, extra, ts_ms in connection.execute(_SKIPS, {"own": [*own_device_ids]}):
        fields, set_at = msgspec.json.decode(payload), msgspec.json.decode(extra).get(DOOR_FIELD)
        session_id, on = fields.get("session_id"), fields.get("on") is not False
        if isinstance(session_id, str):
            (paused.add if on else paused.discard)(session_id)
        elif fields.get("unnamed") is True:
            if set_at is not None or unnamed is None or ts_ms - unnamed > MAX_UNNAMED_PAUSE_MS:  # no extension
                begun, door = ts_ms, set_at
            unnamed = ts_ms if on else None
    return PausedSessions(frozenset(paused), unnamed, begun, door)


def read_sessions(
    connection: Transaction,
    session_ids: Sequence[str],
    own_device_ids: Collection[str],
    effective_event: Callable[[Event], Event] | None = None,
) -> list[Session]:
    """Return these sessions in the given order, without unknown ones.

    In a session of this device or of an admitted one, events of devices that are not admitted do not count.
    `effective_event` maps an event to what is left of it after retractions.
    """
    registry = registry_store.read_registry(connection)
    admitted = [name for name, device in registry.devices.items() if device.was_admitted]
    trusted = {"is_open": not registry.has_first, "own": [*own_device_ids, *admitted]}
    sessions: dict[str, Session] = {}
    for start in range(0, len(session_ids), _BATCH):
        batch = list(session_ids[start : start + _BATCH])
        sessions |= _build_sessions(connection, {**trusted, "ids": batch}, effective_event)
    return [sessions[session_id] for session_id in dict.fromkeys(session_ids) if session_id in sessions]


def list_sessions(
    connection: Transaction, own_device_ids: Collection[str], project_id: str | None, since_ms: int | None, limit: int
) -> list[Session]:
    """Return sessions active since a time, newest first; one without a conversation counts by the events about it."""
    statement = _recent_session_ids(project_id, since_ms).limit(limit)
    return read_sessions(connection, list(connection.execute(statement).scalars()), own_device_ids)


def open_sessions(connection: Transaction, device_id: str) -> list[Session]:
    """Return the sessions that an event of this device started and none of its events ended."""
    started = (
        select(events.c.session_id.label("session_id"))
        .where(events.c.device_id == device_id, events.c.type == SESSION_STARTED, events.c.session_id != "")
        .distinct()
        .subquery()
    )
    is_of_it = (events.c.session_id == started.c.session_id, events.c.device_id == device_id)
    of_it = select(func.max(events.c.position)).where(*is_of_it)
    ended = of_it.where(events.c.type.in_(SESSION_END_TYPES)).correlate(started).scalar_subquery()
    last = of_it.where(_IS_CONVERSATION).correlate(started).scalar_subquery()
    statement = select(started.c.session_id).where(func.coalesce(ended, 0) < last)
    sessions = read_sessions(connection, list(connection.execute(statement).scalars()), [device_id])
    return [session for session in sessions if session.is_open]


def session_ids_after(connection: Transaction, session_id: str, limit: int) -> list[str]:
    """Return the next session ids, sorted."""
    return list(connection.execute(_IDS_AFTER, {"after": session_id, "most": limit}).scalars())


def _recent_session_ids(project_id: str | None, since_ms: int | None) -> Select[Any]:
    statement = select(events.c.session_id).where(events.c.session_id != "").group_by(events.c.session_id)
    if project_id is not None:
        statement = statement.where(events.c.project_id == project_id)
    if since_ms is not None:
        statement = statement.where(events.c.ts_ms >= since_ms, or_(_IS_CONVERSATION, ~_HAS_CONVERSATION))
    return statement.order_by(
        func.coalesce(func.max(events.c.ts_ms).filter(_IS_CONVERSATION), func.max(events.c.ts_ms)).desc(),
        events.c.session_id,
    )


def _build_sessions(
    connection: Transaction, parameters: Mapping[str, Any], effective_event: Callable[[Event], Event] | None
) -> dict[str, Session]:
    bounds = connection.execute(_OF_IDS, parameters).mappings().all()
    ids = [row["session_id"] for row in bounds]
    places = {row[name] for row in bounds for name in ("first", "last") if row[name] is not None}
    at = {row["position"]: row for row in connection.execute(_AT, {"ids": sorted(places)}).mappings()}
    about: dict[str, list[Event]] = {session_id: [] for session_id in ids}
    for row in connection.execute(_ABOUT, parameters).mappings():
        event = event_of_row(row)
        about[event.session_id].append(event if effective_event is None else effective_event(event))
    return {
        row["session_id"]: session_of(
            _span_of_rows(row, at[row["first"]], at[row["last"] or row["first"]]), about[row["session_id"]]
        )
        for row in bounds
    }


def _span_of_rows(row: RowMapping, first: RowMapping, last: RowMapping) -> SessionSpan:
    """Build a span. A session that started without a project belongs to that of its last event."""
    home = first if first["project_id"] != GLOBAL_PROJECT else last
    return SessionSpan(
        session_id=row["session_id"],
        device_id=first["device_id"],
        project_id=home["project_id"],
        project_path=home["project_path"],
        first_ms=first["ts_ms"],
        last_ms=last["ts_ms"],
        newest_ts_ms=row["latest_ms"],
        recorded_ms=parse_hlc(last["hlc"])[0],
        last_position=last["position"],
        last_event_id=last["event_id"],
        event_count=row["events"],
    )


def all_session_ids(connection: Transaction) -> Iterator[str]:
    """Yield every session id, sorted."""
    after = ""
    while page := session_ids_after(connection, after, _BATCH):
        yield from page
        after = page[-1]
