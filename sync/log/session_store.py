"""The SQL of sessions: where each stands in the log, and what was said about it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, RowMapping, Select, bindparam, exists, func, or_, select

from sync.clock import hlc_parts
from sync.db.tables import events
from sync.log.envelope import event_of_row
from sync.log.model import GLOBAL_PROJECT, TAKING_AWAY, Event
from sync.log.payloads import ENDED, SESSION_META, SKIPPED, STARTED
from sync.log.sessions import ABOUT, Session, Span, session_of

_IDS: Final[Any] = bindparam("ids", expanding=True)
_TALK: Final = events.c.type.not_in((SESSION_META, *TAKING_AWAY))  # none of them is a part of the conversation
_BOUNDS: Final = select(
    events.c.session_id,
    func.min(events.c.position).label("first"),
    func.max(events.c.position).filter(_TALK).label("last"),
    func.max(events.c.ts_ms).filter(_TALK, events.c.type.not_in(ENDED)).label("latest_ms"),
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
    select(events).where(events.c.session_id.in_(_IDS), events.c.type.in_(ABOUT)).order_by(events.c.position)
)
_IDS_AFTER: Final = (
    select(events.c.session_id)
    .where(events.c.session_id > bindparam("after"))
    .distinct()
    .order_by(events.c.session_id)
    .limit(bindparam("most"))
)
_OF_SAME: Final = events.alias("of_same")
_HAS_TALK: Final = exists(
    select(_OF_SAME.c.position).where(
        _OF_SAME.c.session_id == events.c.session_id, _OF_SAME.c.type.not_in((SESSION_META, *TAKING_AWAY))
    )
)
_AT_ONCE: Final = 500  # ids in one statement; SQLite takes 32,766
_SKIPS: Final = (
    select(events.c.payload, events.c.device_id, events.c.ts_ms)
    .where(events.c.type == SKIPPED)
    .order_by(events.c.hlc, events.c.event_id)
)


@dataclass(frozen=True, slots=True)
class Pauses:
    """Which sessions are not to be saved, and when this device last said so of what has no session id (Unix ms)."""

    sessions: frozenset[str]
    unnamed_ms: int | None


def pauses(connection: Connection, device_id: str) -> Pauses:
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
    return Pauses(frozenset(paused), unnamed)


def sessions(
    connection: Connection, session_ids: Sequence[str], left_of: Callable[[Event], Event] | None = None
) -> list[Session]:
    """These sessions, in the order given; without those that the log does not know.

    `left_of`: what is left of an event whose payload is to go and may still be there.
    """
    found: dict[str, Session] = {}
    for start in range(0, len(session_ids), _AT_ONCE):
        some = list(session_ids[start : start + _AT_ONCE])
        found |= _built(connection, list(connection.execute(_OF_IDS, {"ids": some}).mappings()), left_of)
    return [found[session_id] for session_id in dict.fromkeys(session_ids) if session_id in found]


def listed(connection: Connection, *, project_id: str | None, since_ms: int | None, limit: int) -> list[Session]:
    """Sessions in which something was said since a time, newest first; one without words by what is said about it."""
    statement = _recent(project_id, since_ms).limit(limit)
    return sessions(connection, list(connection.execute(statement).scalars()))


def unended(connection: Connection, device_id: str) -> list[Session]:
    """The sessions that an event of this device began and none has ended."""
    begun = (
        select(events.c.session_id.label("begun"))
        .where(events.c.device_id == device_id, events.c.type == STARTED, events.c.session_id != "")
        .distinct()
        .subquery()
    )
    of_it = select(func.max(events.c.position)).where(events.c.session_id == begun.c.begun)
    ended = of_it.where(events.c.type.in_(ENDED)).correlate(begun).scalar_subquery()
    last = of_it.where(_TALK).correlate(begun).scalar_subquery()
    statement = select(begun.c.begun).where(func.coalesce(ended, 0) < last)
    found = sessions(connection, list(connection.execute(statement).scalars()))
    return [session for session in found if session.is_open]


def ids_after(connection: Connection, session_id: str, limit: int) -> list[str]:
    """The next session ids in the order of their names."""
    return list(connection.execute(_IDS_AFTER, {"after": session_id, "most": limit}).scalars())


def _recent(project_id: str | None, since_ms: int | None) -> Select[Any]:
    statement = select(events.c.session_id).where(events.c.session_id != "").group_by(events.c.session_id)
    if project_id is not None:
        statement = statement.where(events.c.project_id == project_id)
    if since_ms is not None:
        statement = statement.where(events.c.ts_ms >= since_ms, or_(_TALK, ~_HAS_TALK))
    return statement.order_by(
        func.coalesce(func.max(events.c.ts_ms).filter(_TALK), func.max(events.c.ts_ms)).desc(), events.c.session_id
    )


def _built(
    connection: Connection, bounds: Sequence[RowMapping], left_of: Callable[[Event], Event] | None
) -> dict[str, Session]:
    ids = [row["session_id"] for row in bounds]
    places = {row[name] for row in bounds for name in ("first", "last") if row[name] is not None}
    at = {row["position"]: row for row in connection.execute(_AT, {"ids": sorted(places)}).mappings()}
    about: dict[str, list[Event]] = {session_id: [] for session_id in ids}
    for row in connection.execute(_ABOUT, {"ids": ids}).mappings():
        event = event_of_row(row)
        about[event.session_id].append(event if left_of is None else left_of(event))
    return {
        row["session_id"]: session_of(
            _span(row, at[row["first"]], at[row["last"] or row["first"]]), about[row["session_id"]]
        )
        for row in bounds
    }


def _span(row: RowMapping, first: RowMapping, last: RowMapping) -> Span:
    """A session that began before it knew its project belongs to that of its last event."""
    home = first if first["project_id"] != GLOBAL_PROJECT else last
    return Span(
        session_id=row["session_id"],
        device_id=first["device_id"],
        project_id=home["project_id"],
        project_path=home["project_path"],
        first_ms=first["ts_ms"],
        last_ms=last["ts_ms"],
        latest_ms=row["latest_ms"],
        recorded_ms=hlc_parts(last["hlc"])[0],
        last_position=last["position"],
        last_event_id=last["event_id"],
        events=row["events"],
    )


def all_ids(connection: Connection) -> Iterator[str]:
    """Every session id, in the order of their names."""
    after = ""
    while found := ids_after(connection, after, _AT_ONCE):
        yield from found
        after = found[-1]
