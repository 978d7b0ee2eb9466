"""SQL of the JSONL export. It only reads."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, func, select

from sync.db.engine import Transaction
from sync.db.schema import events
from sync.jsonl.model import FileKey, month_of
from sync.log import store as log_store
from sync.log.envelope import event_of_row
from sync.log.event_types import HIDING_TYPES, SESSION_EVENT_TYPES, TYPES_WITH_TAGS
from sync.log.model import Event

_PLACE: Final = select(events.c.position, events.c.event_id, events.c.project_id, events.c.ts_ms)
_PLACES: Final = (
    _PLACE.where(events.c.position > bindparam("after"), events.c.position <= bindparam("upto"))
    .order_by(events.c.position)
    .limit(bindparam("most"))
)
_PROJECTS: Final = select(events.c.project_id).distinct()
_LAST_PATHS: Final = (
    select(events.c.project_id, func.max(events.c.position).label("at"))
    .where(events.c.project_path.is_not(None))
    .group_by(events.c.project_id)
    .subquery()
)
_PATHS: Final = select(events.c.project_id, events.c.project_path).join(
    _LAST_PATHS, events.c.position == _LAST_PATHS.c.at
)
_SESSIONS: Final = select(events.c.project_id, events.c.session_id).where(events.c.session_id != "").distinct()
_OF_FILE: Final = (
    select(events)
    .where(events.c.project_id == bindparam("project"))
    .where(events.c.position > bindparam("after"), events.c.position <= bindparam("upto"))
    .where(events.c.ts_ms >= bindparam("first"), events.c.ts_ms < bindparam("past"))
    .order_by(events.c.position)
    .limit(bindparam("most"))
)


class LinePosition(msgspec.Struct, frozen=True):
    """The file of an event, and its position."""

    key: FileKey
    position: int
    event_id: str


def read_file_events(connection: Transaction, key: FileKey, *, after: int, upto: int, limit: int) -> list[Event]:
    """Return the events of one file, in log order."""
    first, past = key.bounds_ms()
    parameters = {"project": key.project_id, "after": after, "upto": upto, "first": first, "past": past, "most": limit}
    return [event_of_row(row) for row in connection.execute(_OF_FILE, parameters).mappings()]


def read_line_positions(connection: Transaction, *, after: int, upto: int, limit: int) -> list[LinePosition]:
    """Return the line positions of the next events, in log order."""
    rows = connection.execute(_PLACES, {"after": after, "upto": upto, "most": limit}).mappings()
    return [_line_position(row) for row in rows]


def read_line_positions_of(connection: Transaction, event_ids: Sequence[str], *, upto: int) -> list[LinePosition]:
    """Return the line positions of those of these events that the log holds up to a position."""
    statement = _PLACE.where(events.c.event_id.in_(event_ids), events.c.position <= upto)
    return [_line_position(row) for row in connection.execute(statement).mappings()]


def read_line_position_at(connection: Transaction, position: int) -> LinePosition | None:
    row = connection.execute(_PLACE.where(events.c.position == position)).mappings().first()
    return None if row is None else _line_position(row)


def read_retracting_events(connection: Transaction, *, after: int) -> list[Event]:
    """Return the events that hide or retract others, in log order."""
    return list(log_store.read_by_types(connection, HIDING_TYPES, after=after))


def read_projects(connection: Transaction) -> dict[str, str | None]:
    """Return every project with its last known path."""
    projects: dict[str, str | None] = dict.fromkeys(connection.execute(_PROJECTS).scalars())
    projects |= {row.project_id: row.project_path for row in connection.execute(_PATHS)}
    return projects


def read_sessions_by_project(connection: Transaction) -> list[tuple[str, str]]:
    return [(row.project_id, row.session_id) for row in connection.execute(_SESSIONS)]


def read_events_with_tags(connection: Transaction) -> Iterator[Event]:
    """Yield the events whose payloads may have tags, in log order."""
    return log_store.read_by_types(connection, TYPES_WITH_TAGS, after=0)


def read_described_session_ids(connection: Transaction, event_ids: Sequence[str]) -> list[str]:
    """Return the sessions that these events describe."""
    statement = select(events.c.session_id).where(
        events.c.event_id.in_(event_ids), events.c.type.in_(SESSION_EVENT_TYPES)
    )
    return list(connection.execute(statement.distinct()).scalars())


def _line_position(row: Any) -> LinePosition:
    return LinePosition(FileKey(month_of(row["ts_ms"]), row["project_id"]), row["position"], row["event_id"])
