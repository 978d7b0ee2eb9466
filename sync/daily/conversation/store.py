"""SQL of sessions in the log, and the offset up to which they are recorded."""

from collections.abc import Iterator, Sequence
from typing import Final

from sqlalchemy import select, text

from sync.clock import Clock, format_hlc
from sync.db.engine import Transaction
from sync.db.schema import events
from sync.log import erased_store
from sync.log import store as log_store
from sync.log.envelope import event_of_row
from sync.log.event_types import (
    LESSON_LEARNED,
    LESSON_OBSERVED,
    MEMORY_NOTE_CREATED,
    MEMORY_NOTE_UPDATED,
    MEMORY_QUESTION_ASKED,
)
from sync.log.local_state import DAILY_STARTED
from sync.log.model import Event
from sync.log.projections.registry import DAILY

MAX_EVENTS: Final = 2_000  # of one session, for its summary
# The session is a field of these. A note that was written in it goes with its later texts.
_SIDE_EVENTS: Final = text(f"""
with made as (
  select position, event_id, type, project_id, payload from events where type in
    ('{LESSON_OBSERVED}', '{LESSON_LEARNED}', '{MEMORY_QUESTION_ASKED}', '{MEMORY_NOTE_CREATED}')
  and :session in (json_extract(payload, '$.session_id'), json_extract(payload, '$.session'))
)
select event_id from made union
select event.event_id from events as event join made on made.type = '{MEMORY_NOTE_CREATED}'
  and event.project_id = made.project_id
  and json_extract(event.payload, '$.note_id') = json_extract(made.payload, '$.note_id')
where event.type in ('{MEMORY_NOTE_CREATED}', '{MEMORY_NOTE_UPDATED}')
""")  # noqa: S608 - names of ours


def session_events(connection: Transaction, session_id: str, types: Sequence[str]) -> list[Event]:
    """A session's newest events of these types, oldest first, without what waits to be forgotten."""
    held_ids = erased_store.held_ids(connection)
    statement = (
        select(events)
        .where(events.c.session_id == session_id, events.c.type.in_(types))
        .order_by(events.c.position.desc())
        .limit(MAX_EVENTS)
    )
    found = map(event_of_row, reversed(connection.execute(statement).mappings().all()))
    return [event for event in found if event.event_id not in held_ids]


def all_session_events(connection: Transaction, session_id: str) -> Iterator[Event]:
    """All events with a session's id, oldest first."""
    statement = select(events).where(events.c.session_id == session_id).order_by(events.c.position)
    return map(event_of_row, connection.execute(statement).mappings())


def side_event_ids(connection: Transaction, session_id: str) -> list[str]:
    """The lessons, notes and questions that a session brought about; their events have no session's id."""
    return list(connection.execute(_SIDE_EVENTS, {"session": session_id}).scalars())


def newest_first(connection: Transaction, device_id: str, types: Sequence[str]) -> Iterator[Event]:
    """A device's events of these types, newest first."""
    statement = (
        select(events)
        .where(events.c.device_id == device_id, events.c.type.in_(types))
        .order_by(events.c.position.desc())
        .execution_options(yield_per=20)  # the caller stops after a few
    )
    with connection.execute(statement) as rows:
        yield from map(event_of_row, rows.mappings())


def start_offset(connection: Transaction, device_id: str, since_ms: int, clock: Clock) -> int:
    """The position up to which sessions are recorded; at first that of this device's last event before `since_ms`."""
    if log_store.watermark(connection, DAILY_STARTED) == 0:
        before = (
            select(events.c.position)
            .where(events.c.device_id == device_id, events.c.hlc < format_hlc(since_ms))
            .order_by(events.c.position.desc())
            .limit(1)
        )
        log_store.set_watermark(connection, DAILY.name, connection.execute(before).scalar() or 0, clock)
        log_store.set_watermark(connection, DAILY_STARTED, 1, clock)
    return log_store.watermark(connection, DAILY.name)


def latest_session(connection: Transaction, device_id: str, types: Sequence[str]) -> str | None:
    """The session of this device's newest event of these types."""
    statement = (
        select(events.c.session_id)
        .where(events.c.device_id == device_id, events.c.type.in_(types), events.c.session_id != "")
        .order_by(events.c.position.desc())
        .limit(1)
    )
    return connection.execute(statement).scalar()
