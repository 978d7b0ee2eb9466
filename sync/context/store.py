"""SQL of the context: the folders of all projects, and the ledger of what each session was given.

The ledger has ids only, stays on this device, and forgets after a month. Its table is created with its first row, so
that a memory whose app names no sessions has none.
"""

from collections.abc import Sequence
from typing import Final

from sync.db.derived_tables import CONTEXT_TABLE
from sync.db.engine import Transaction

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
_EXISTS: Final = "select 1 from sqlite_master where name = 'context_given'"


def project_folders(connection: Transaction) -> dict[str, str]:
    """The folder of each project that has one, by the newest event of the project."""
    rows = connection.exec_driver_sql(_FOLDERS)
    return {project_id: path for project_id, path in rows if path}


def given_ids(connection: Transaction, session_id: str) -> frozenset[str]:
    """The events of the items that a session was given."""
    if connection.exec_driver_sql(_EXISTS).first() is None:
        return frozenset()
    rows = connection.exec_driver_sql("select event_id from context_given where session_id = ?", (session_id,))
    return frozenset(rows.scalars())


def record_given(connection: Transaction, session_id: str, event_ids: Sequence[str], now_ms: int) -> None:
    """Note what a session is given; forget what sessions were given long ago."""
    if connection.exec_driver_sql(_EXISTS).first() is None:
        connection.exec_driver_sql(CONTEXT_TABLE)
    connection.exec_driver_sql("delete from context_given where given_ms < ?", (now_ms - KEPT_MS,))
    connection.exec_driver_sql(
        "insert or replace into context_given values (?, ?, ?)",
        [(session_id, event_id, now_ms) for event_id in event_ids],
    )
