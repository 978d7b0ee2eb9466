"""Copies the rows of a damaged database into a new one, and completes what follows from them.

Positions, event ids and versions stay what they were, and the numbers of lost ones are not used again.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from sqlalchemy import Connection, Table, text

from sync.db.rebuild.corrupt_reader import CorruptDatabase, Row
from sync.db.schema import (
    KEYED_TABLES,
    SMALL_TABLES,
    deliveries,
    events,
    quarantine,
    table_of_watermark,
    watermarks,
    written,
)
from sync.encryption.driver import driver_errors

# A version that is stored as its difference from one that was lost is lost with it.
DELETE_ORPHANED_VERSIONS: Final = """
delete from written where base is not null and base not in (select version from written where base is null)
"""


def copy_readable_rows(
    sources: Sequence[CorruptDatabase], target: sqlite3.Connection, destination: str
) -> dict[str, int]:
    """Of the later ones what those before did not have."""
    copied: Counter[str] = Counter()
    for table, key in KEYED_TABLES:
        for damaged in sources:
            rows = damaged.rows(table, key, damaged.recorded_sequence(table))
            sound = filter(damaged.has_its_own_id, rows) if table is events else rows
            copied[table.name] += _insert_rows(target, table, sound)
    last = _highest_key(target, events, "position")
    for damaged in sources:
        for table in (deliveries, quarantine):
            rows = damaged.rows(table, "position", last, destination=destination)
            copied[table.name] += _insert_rows(target, table, rows)
        for table in SMALL_TABLES:
            if table is not quarantine:
                copied[table.name] += _insert_rows(target, table, damaged.all_rows(table))
    if copied[events.name] < max(damaged.highest_key_used(events, last) for damaged in sources):
        for damaged in sources:  # a page that is whole and in the wrong place costs rows without an error
            damaged.damaged_tables.add(events.name)
    _drop_orphaned_versions(sources, target)
    for table, key in KEYED_TABLES:
        _reserve_used_keys(sources, target, table, _highest_key(target, table, key))
    return dict(copied)


def _drop_orphaned_versions(sources: Sequence[CorruptDatabase], target: sqlite3.Connection) -> None:
    if target.execute(DELETE_ORPHANED_VERSIONS).rowcount:
        for damaged in sources:
            damaged.damaged_tables.add(written.name)


def _highest_key(target: sqlite3.Connection, table: Table, key: str) -> int:
    return int(target.execute(f"select coalesce(max({key}), 0) from {table}").fetchone()[0])  # noqa: S608 - names of ours


def _insert_rows(target: sqlite3.Connection, table: Table, rows: Iterator[Row]) -> int:
    """How many went in. What a constraint refuses (an event is missing, a number is taken) is not copied."""
    inserted = 0
    for row in rows:
        names = ", ".join(row)
        places = ", ".join(f":{name}" for name in row)
        try:
            cursor = target.execute(f"insert or ignore into {table} ({names}) values ({places})", row)  # noqa: S608 - names of ours
        except driver_errors("IntegrityError"):
            continue
        inserted += cursor.rowcount
    return inserted


def _reserve_used_keys(
    sources: Sequence[CorruptDatabase], target: sqlite3.Connection, table: Table, highest: int
) -> None:
    """The keys of lost rows are not given to new ones: others may have noted how far they have read.

    Marks that are beyond every possible key are removed: what follows the log from there would never see an event.
    """
    marks = [
        (name, mark)
        for name, mark in target.execute("select name, position from watermarks")
        if table_of_watermark(name) is table
    ]
    used = max(damaged.highest_key_used(table, highest) for damaged in sources)
    used = max([used, *(mark for _, mark in marks if any(one.is_possible_key(mark, highest) for one in sources))])
    for name in [name for name, mark in marks if mark > used]:
        target.execute("delete from watermarks where name = ?", (name,))
        for damaged in sources:
            damaged.damaged_tables.add(watermarks.name)
    if used:
        target.execute("delete from sqlite_sequence where name = ?", (table.name,))
        target.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (table.name, used))


CLAIM_FOR_UNKNOWN_OWNER: Final = """
insert or ignore into accounts (one, user_id, label, claimed_at) values (1, ?, 'unknown owner', datetime('now'))
"""
# The newest event of this device that had to go somewhere, or was never numbered by a server, names the replica.
_RESTORE_REPLICA_ROW: Final = """
insert or ignore into replica (one, replica_id, next_seq)
select 1, replica_id, 1 from events
where (server_seq is null or position in (select position from deliveries)) and replica_id glob 'rep_*'
and device_id in (select value from json_each(:own))
order by position desc limit 1
"""
_ADVANCE_REPLICA: Final = """
update replica set
  next_seq = max(next_seq,
    1 + coalesce((select max(replica_seq) from events where replica_id = replica.replica_id), 0)),
  hlc = nullif(max(coalesce(hlc, ''),
    coalesce((select max(hlc) from events where replica_id = replica.replica_id), '')), '')
"""
_CREATE_DELIVERIES: Final = """
insert or ignore into deliveries (destination, position, state)
select :to, position, case when server_seq is not null then 'acked'
  when position in (select position from quarantine where destination = :to) then 'quarantined' else 'pending' end
from events where reach = 'cloud' and (replica_id = (select replica_id from replica)
  or (server_seq is null and device_id in (select value from json_each(:own))))
"""  # what no server numbered is our own, whatever became of its replica's id
_REQUEUE_UNQUARANTINED: Final = """
update deliveries set state = 'pending' where destination = :to and state = 'quarantined'
and position not in (select position from quarantine where destination = :to)
"""


def rebuild_outbox(connection: Connection, destination: str, own_device_ids: Sequence[str]) -> None:
    """Rebuild what follows from the events: this replica's numbers, and what still has to be sent."""
    values = {"to": destination, "own": json.dumps(own_device_ids)}
    for statement in (_RESTORE_REPLICA_ROW, _ADVANCE_REPLICA, _CREATE_DELIVERIES, _REQUEUE_UNQUARANTINED):
        connection.execute(text(statement), values if ":to" in statement or ":own" in statement else {})


def count_missing(connection: Connection) -> int:
    """How many positions up to the highest that was ever given have no event."""
    given = "select coalesce(max(seq), 0) from sqlite_sequence where name = 'events'"
    return int(connection.exec_driver_sql(f"select ({given}) - count(*) from events").scalar_one())  # noqa: S608 - words of ours
