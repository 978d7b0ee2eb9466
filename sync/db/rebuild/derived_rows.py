"""Rows of derived data that cannot be understood: they are dropped, and what follows from the events is made again.

SQLite stores any type in any column, so one flipped bit in a sound page is enough for a row that fails every reader.
Everything here can be rebuilt or fetched again; the events themselves are never touched.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Column, Connection, Integer, Table, Text

from sync.db.rebuild.corrupt_reader import Row, decode_row
from sync.db.rebuild.row_copy import (
    ADVANCE_REPLICA,
    CLAIM_FOR_UNKNOWN_OWNER,
    DELETE_ORPHANED_VERSIONS,
    REQUEUE_UNQUARANTINED,
    RESTORE_REPLICA_ROW,
)
from sync.db.schema import (
    DOCUMENT_LOG_OFFSET,
    MAX_KEY,
    RECOVERY_STARTED,
    UNKNOWN_OWNER,
    accounts,
    captured,
    cursors,
    device_keys,
    erased_lines,
    erasure_key,
    events,
    paired_devices,
    quarantine,
    replica,
    table_of_watermark,
    watermarks,
    written,
)

KEYED_TABLES: Final = ((events, "position"), (written, "version"))
SMALL_TABLES: Final = (
    cursors,
    quarantine,
    captured,
    accounts,
    replica,
    watermarks,
    erasure_key,
    erased_lines,
    device_keys,
    paired_devices,
)

_DELIVERIES_UNSOUND: Final = """
delete from deliveries where typeof(destination) <> 'text' or typeof(position) <> 'integer'
or state not in ('pending', 'acked', 'quarantined', 'dropped') or position not in (select position from events)
"""
_QUARANTINED_WITHOUT_EVENT: Final = "delete from quarantine where position not in (select position from events)"
_DELIVERIES_MISSING: Final = """
insert into deliveries (destination, position, state)
select :to, position, case when server_seq is null then 'pending' else 'acked' end from events
where reach = 'cloud' and replica_id = (select replica_id from replica)
and position not in (select position from deliveries where destination = :to)
"""
_NEWEST_VERSIONS: Final = "select max(version) from written group by surface"
_BASES_OF_NEWEST: Final = f"select base from written where version in ({_NEWEST_VERSIONS})"  # noqa: S608 - words of ours
_BEGIN_RECOVERY: Final = """
insert or replace into watermarks (name, position, updated_at)
values (?, cast((julianday('now') - 2440587.5) * 86400000 as integer), strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
"""
_COUNT_DELIVERIES: Final = (
    "select destination, state, count(*) from deliveries group by destination, state order by 1, 2"
)
_STORED_COUNTS: Final = "select destination, state, count from delivery_counts where count <> 0 order by 1, 2"


def repair_derived_rows(connection: Connection, destination: str, *, thorough: bool) -> Counter[str]:
    """Drop what cannot be understood, and rebuild it; how many rows of which table.

    `whole`: look at every delivery and every version, which takes as long as there are many; else at the newest
    versions only.
    """
    driver: Any = connection.connection.driver_connection
    plain, driver.text_factory = driver.text_factory, _TextBytes  # text that is no UTF-8 fails the driver
    try:
        return _DerivedRowRepair(driver, destination).run(thorough=thorough)
    finally:
        driver.text_factory = plain


class _TextBytes(bytes):
    """What SQLite holds as text; other bytes are a blob."""


class _DerivedRowRepair:
    def __init__(self, driver: sqlite3.Connection, destination: str) -> None:
        self._driver = driver
        self._destination = destination
        self._dropped: Counter[str] = Counter()

    def run(self, *, thorough: bool) -> Counter[str]:
        for table in SMALL_TABLES:
            self._drop_invalid_rows(table)
        self._repair_versions(thorough=thorough)
        if thorough:
            self._repair_deliveries()
        for table, key in KEYED_TABLES:
            self._repair_sequence(table, key)
        self._drop_impossible_watermarks()
        if self._dropped[accounts.name]:
            self._driver.execute(CLAIM_FOR_UNKNOWN_OWNER, (UNKNOWN_OWNER,))
        if self._dropped[quarantine.name]:
            self._driver.execute(REQUEUE_UNQUARANTINED, {"to": self._destination})
        if self._dropped[replica.name] or self._next_seq_is_used():
            self._dropped[replica.name] = 1
            for statement in (RESTORE_REPLICA_ROW, ADVANCE_REPLICA):
                self._driver.execute(statement)
        return +self._dropped

    def _drop_invalid_rows(self, table: Table) -> None:
        """Write a small table again with the rows that are sound, if one is not."""
        found = list(self._rows(f"select * from {table}"))  # noqa: S608 - a name of ours
        sound = [row for row in found if _is_valid_row(table, row)]
        if len(sound) == len(found):
            return
        self._dropped[table.name] += len(found) - len(sound)
        self._driver.execute(f"delete from {table}")  # noqa: S608 - a name of ours
        for row in sound:
            names, places = ", ".join(row), ", ".join(f":{name}" for name in row)
            self._driver.execute(f"insert into {table} ({names}) values ({places})", decode_row(table, row) or {})  # noqa: S608 - names of ours

    def _repair_versions(self, *, thorough: bool) -> None:
        newest = "" if thorough else f" where version in ({_NEWEST_VERSIONS}) or version in ({_BASES_OF_NEWEST})"
        wrong = [
            (row["version"],)
            for row in self._rows(f"select * from written{newest}")  # noqa: S608 - words of ours
            if not _is_valid_row(written, row)
        ]
        self._driver.executemany("delete from written where version = ?", wrong)
        without_base = self._driver.execute(DELETE_ORPHANED_VERSIONS).rowcount if wrong else 0
        self._dropped[written.name] += len(wrong) + without_base
        if wrong:  # what those versions had of the log, the ones that are left may lack
            self._driver.execute("delete from watermarks where name = ?", (DOCUMENT_LOG_OFFSET,))
            self._driver.execute(_BEGIN_RECOVERY, (RECOVERY_STARTED,))
        if wrong and not thorough:
            self._repair_versions(thorough=False)  # those before them are the newest now

    def _repair_deliveries(self) -> None:
        self._dropped[quarantine.name] += self._driver.execute(_QUARANTINED_WITHOUT_EVENT).rowcount
        dropped = self._driver.execute(_DELIVERIES_UNSOUND).rowcount
        missing = self._driver.execute(_DELIVERIES_MISSING, {"to": self._destination}).rowcount
        self._dropped["deliveries"] += max(dropped, missing)
        if self._driver.execute(_COUNT_DELIVERIES).fetchall() != self._driver.execute(_STORED_COUNTS).fetchall():
            self._driver.execute("delete from delivery_counts")
            self._driver.execute(f"insert into delivery_counts {_COUNT_DELIVERIES}")
            self._dropped["delivery_counts"] += 1

    def _repair_sequence(self, table: Table, key: str) -> None:
        """The highest key ever given is one number, from which others can be counted on."""
        highest = self._scalar(f"select coalesce(max({key}), 0) from {table} where {key} <= {MAX_KEY}")  # noqa: S608 - names of ours
        noted = [
            row["seq"] for row in self._rows("select * from sqlite_sequence") if row["name"] == table.name.encode()
        ]
        if not (highest or noted) or (len(noted) == 1 and _is_valid_number(noted[0]) and highest <= noted[0]):
            return
        marks = [mark for mark in self._watermarks_of(table).values() if mark <= MAX_KEY]
        self._driver.execute("delete from sqlite_sequence where name = ?", (table.name,))
        used = max([highest, *marks])
        self._driver.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (table.name, used))
        self._dropped["sqlite_sequence"] += 1

    def _drop_impossible_watermarks(self) -> None:
        """A mark behind which no key can come would hide every later one."""
        for table, _ in KEYED_TABLES:
            query = "select coalesce(max(seq), 0) from sqlite_sequence where name = ?"
            last = self._scalar(query, table.name)
            beyond = [(name,) for name, mark in self._watermarks_of(table).items() if mark > last]
            self._driver.executemany("delete from watermarks where name = ?", beyond)
            self._dropped[watermarks.name] += len(beyond)

    def _watermarks_of(self, table: Table) -> dict[str, int]:
        rows = self._driver.execute("select name, position from watermarks")
        return {name.decode(): mark for name, mark in rows if table_of_watermark(name.decode()) is table}

    def _next_seq_is_used(self) -> bool:
        """Whether the next number of this replica is one that an event has."""
        newest = "(select max(replica_seq) from events where replica_id = replica.replica_id)"
        return bool(self._scalar(f"select count(*) from replica where next_seq <= {newest}"))  # noqa: S608 - words of ours

    def _scalar(self, query: str, *parameters: object) -> int:
        return int(self._driver.execute(query, parameters).fetchone()[0])

    def _rows(self, query: str) -> Iterator[Row]:
        cursor = self._driver.execute(query)
        names = [column[0].decode() if isinstance(column[0], bytes) else column[0] for column in cursor.description]
        return (dict(zip(names, values, strict=True)) for values in cursor)


def _is_valid_row(table: Table, row: Row) -> bool:
    """Whether a row has our types, and numbers that can be counted on from."""
    return all(_is_of_type(column, row[column.name]) for column in table.columns) and decode_row(table, row) is not None


def _is_of_type(column: Column[Any], value: object) -> bool:
    if value is None:
        return bool(column.nullable)
    if isinstance(column.type, Integer):
        return _is_valid_number(value)
    return isinstance(value, _TextBytes) if isinstance(column.type, Text) else type(value) is bytes


def _is_valid_number(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= MAX_KEY
