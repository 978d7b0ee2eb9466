"""The SQL of sessions: where each stands in the log, and what was said about it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import RowMapping, Select, bindparam, exists, func, or_, select

from sync.clock import parse_hlc
from sync.db.engine import Transaction
from sync.db.schema import events
from sync.log.envelope import event_of_row
from sync.log.event_types import (
    ERASING_TYPES,
    SESSION_END_TYPES,
    SESSION_EVENT_TYPES,
    SESSION_META,
    SESSION_SKIPPED,
    SESSION_STARTED,
)
from sync.log.model import GLOBAL_PROJECT, Event
from sync.log.sessions.model import Session, SessionSpan, session_of

_IDS: Final[Any] = bindparam("ids", expanding=True)
_IS_CONVERSATION: Final = events.c.type.not_in(
    (SESSION_META, *ERASING_TYPES)
)  # none of them is a part of the conversation
_BOUNDS: Final = select(
    events.c.session_id,
    func.min(events.c.position).label("first"),
    func.max(events.c.position).filter(_IS_CONVERSATION).label("last"),
    func.max(events.c.ts_ms).filter(_IS_CONVERSATION, events.c.type.not_in(SESSION_END_TYPES)).label("latest_ms"),
    func.count().label("events"),
)
_OF_IDS: Final = _BOUNDS.where(events.c.session_id.in_(_IDS)).group_by(events.c.session_id)
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
    .where(events.c.session_id.in_(_IDS), events.c.type.in_(SESSION_EVENT_TYPES))
    .order_by(events.c.position)
)
_IDS_AFTER: Final = (
    select(events.c.session_id)
    .where(events.c.session_id > bindparam("after"))
    .distinct()
    .order_by(events.c.session_id)
    .limit(bindparam("most"))
)
_OF_SAME: Final = events.alias("of_same")
_HAS_CONVERSATION: Final = exists(
    select(_OF_SAME.c.position).where(
        _OF_SAME.c.session_id == events.c.session_id, _OF_SAME.c.type.not_in((SESSION_META, *ERASING_TYPES))
    )
)
_BATCH: Final = 500  # ids in one statement; SQLite takes 32,766
_SKIPS: Final = (
    select(events.c.payload, events.c.device_id, events.c.ts_ms)
    .where(events.c.type == SESSION_SKIPPED)
    .order_by(events.c.hlc, events.c.event_id)
)


@dataclass(frozen=True, slots=True)
class PausedSessions:
    """Which sessions are not to be saved, and when this device last said so of what has no session id (Unix ms)."""

    session_ids: frozenset[str]
    unnamed_since_ms: int | None


def read_paused_sessions(connection: Transaction, device_id: str) -> PausedSessions:
    """What a person asked not to save; the newest word about a session decides."""
    paused: set[str] = set()
    unnamed: int | None = None
    for payload, by, ts_ms in connection.execute(_SKIPS):
        told = msgspec.json.decode(payload)
        session_id, on = told.get("session_id"), told.get("on") is not False
        if isinstance(session_id, str):
            (paused.add if on else paused.discard)(session_id)
        elif told.get("unnamed") is True and by == device_id:
            unnamed = ts_ms if on else None
    return PausedSessions(frozenset(paused), unnamed)


def read_sessions(
    connection: Transaction, session_ids: Sequence[str], effective_event: Callable[[Event], Event] | None = None
) -> list[Session]:
    """These sessions, in the order given; without those that the log does not know.

    `left_of`: what is left of an event whose payload is to go and may still be there.
    """
    found: dict[str, Session] = {}
    for start in range(0, len(session_ids), _BATCH):
        some = list(session_ids[start : start + _BATCH])
        found |= _build_sessions(
            connection, list(connection.execute(_OF_IDS, {"ids": some}).mappings()), effective_event
        )
    return [found[session_id] for session_id in dict.fromkeys(session_ids) if session_id in found]


def list_sessions(
    connection: Transaction, *, project_id: str | None, since_ms: int | None, limit: int
) -> list[Session]:
    """Sessions in which something was said since a time, newest first; one without words by what is said about it."""
    statement = _recent_session_ids(project_id, since_ms).limit(limit)
    return read_sessions(connection, list(connection.execute(statement).scalars()))


def open_sessions(connection: Transaction, device_id: str) -> list[Session]:
    """The sessions that an event of this device began and none has ended."""
    begun = (
        select(events.c.session_id.label("begun"))
        .where(events.c.device_id == device_id, events.c.type == SESSION_STARTED, events.c.session_id != "")
        .distinct()
        .subquery()
    )
    of_it = select(func.max(events.c.position)).where(events.c.session_id == begun.c.begun)
    ended = of_it.where(events.c.type.in_(SESSION_END_TYPES)).correlate(begun).scalar_subquery()
    last = of_it.where(_IS_CONVERSATION).correlate(begun).scalar_subquery()
    statement = select(begun.c.begun).where(func.coalesce(ended, 0) < last)
    found = read_sessions(connection, list(connection.execute(statement).scalars()))
    return [session for session in found if session.is_open]


def session_ids_after(connection: Transaction, session_id: str, limit: int) -> list[str]:
    """The next session ids in the order of their names."""
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
    connection: Transaction, bounds: Sequence[RowMapping], effective_event: Callable[[Event], Event] | None
) -> dict[str, Session]:
    ids = [row["session_id"] for row in bounds]
    places = {row[name] for row in bounds for name in ("first", "last") if row[name] is not None}
    at = {row["position"]: row for row in connection.execute(_AT, {"ids": sorted(places)}).mappings()}
    about: dict[str, list[Event]] = {session_id: [] for session_id in ids}
    for row in connection.execute(_ABOUT, {"ids": ids}).mappings():
        event = event_of_row(row)
        about[event.session_id].append(event if effective_event is None else effective_event(event))
    return {
        row["session_id"]: session_of(
            _span_of_rows(row, at[row["first"]], at[row["last"] or row["first"]]), about[row["session_id"]]
        )
        for row in bounds
    }


def _span_of_rows(row: RowMapping, first: RowMapping, last: RowMapping) -> SessionSpan:
    """A session that began before it knew its project belongs to that of its last event."""
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
    """Every session id, in the order of their names."""
    after = ""
    while found := session_ids_after(connection, after, _BATCH):
        yield from found
        after = found[-1]
