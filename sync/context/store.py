"""SQL of the context: the folders of all projects, sources of daily records, and what each session was given.

The ledger has ids and a count of characters, stays on this device, and forgets after a month. Its table is created with
its first row, so that a memory whose app names no sessions has none.
"""

from collections.abc import Sequence
from typing import Final

from sync.db.derived_tables import CONTEXT_TABLE
from sync.db.engine import Transaction
from sync.log import store as log_store
from sync.log.event_types import CONVERSATION_TYPES, SESSION_RECORDED

KEPT_MS: Final = 30 * 86_400_000  # a conversation does not go on for longer
# One index lookup for each project; `select distinct` would read all events.
_FOLDERS: Final = """
with recursive projects(id) as (
  select min(project_id) from events
  union all
  select (select min(project_id) from events where project_id > projects.id) from projects where projects.id is not null
)
select id, (select project_path from events where project_id = projects.id order by position desc limit 1) from projects
where id is not null
"""
_TURNS_OF_SESSION: Final = """
select event_id from events where session_id = ? and device_id = ? and position <= ? and type in (?, ?)
order by position
"""
_SPENT: Final = "chars:"  # begins the row of a session that counts the characters it was given
_EXISTS: Final = "select 1 from sqlite_master where name = 'context_given'"


def project_folders(connection: Transaction) -> dict[str, str]:
    """The folder of each project that has one, by the newest event of the project."""
    rows = connection.exec_driver_sql(_FOLDERS)
    return {project_id: path for project_id, path in rows if path}


def sources_of_record(connection: Transaction, event_id: str) -> tuple[str, ...]:
    """The exchanges and messages that a daily record sums up; () for one that was written by itself."""
    event = log_store.find_event(connection, event_id)
    if event is None or event.type != SESSION_RECORDED:
        return ()
    last = log_store.find_event(connection, str(event.payload.get("until_event_id") or ""))
    if last is None:
        return ()
    values = (last.session_id, last.device_id, last.position, *CONVERSATION_TYPES)
    return tuple(connection.exec_driver_sql(_TURNS_OF_SESSION, values).scalars())


def given(connection: Transaction, session_id: str) -> tuple[frozenset[str], int]:
    """The events of the items that a session was given, and the characters of its turn blocks."""
    if connection.exec_driver_sql(_EXISTS).first() is None:
        return frozenset(), 0
    rows = connection.exec_driver_sql("select event_id from context_given where session_id = ?", (session_id,))
    names = frozenset(rows.scalars())
    spent = max((int(name.removeprefix(_SPENT)) for name in names if name.startswith(_SPENT)), default=0)
    return names, spent


def record_given(connection: Transaction, session_id: str, event_ids: Sequence[str], spent: int, now_ms: int) -> None:
    """Note what a session is given, and its characters so far; forget what sessions were given long ago."""
    if connection.exec_driver_sql(_EXISTS).first() is None:
        connection.exec_driver_sql(CONTEXT_TABLE)
    connection.exec_driver_sql("delete from context_given where given_ms < ?", (now_ms - KEPT_MS,))
    connection.exec_driver_sql(
        "insert or replace into context_given values (?, ?, ?)",
        [(session_id, name, now_ms) for name in (*event_ids, f"{_SPENT}{spent}")],
    )
