"""Read the rows of a damaged database that can still be read, from a private copy.

Rows are read by ranges of keys; in a range with damage, key by key. A lost page 1 is replaced by that of a database of
the first schema, which has the same tables on the same pages. Every row's types, JSON and hash are checked. Reasons
and limits: docs/decisions/017-salvage.md.
"""

import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import Integer, LargeBinary, Table

from sync.clock import parse_hlc
from sync.db.migrate import known_migrations
from sync.db.schema import MAX_KEY, REPLICA_ID_PREFIX
from sync.db.sqlite_errors import corruption_errors
from sync.encryption.emptied_marker import MIN_DATABASE_BYTES
from sync.encryption.key import DatabaseKey
from sync.encryption.sqlcipher_pages import PAGE_BYTES, SQLITE_MAGIC, decrypt_database
from sync.errors import SchemaTooNew

HEADER_BYTES: Final = 100  # https://www.sqlite.org/fileformat2.html
PAGE_COUNT_SLICE: Final = slice(28, 32)
USER_VERSION_SLICE: Final = slice(60, 64)  # where `pragma user_version` is kept
ROWS_PER_READ: Final = 512  # rows asked for at once
KEYS_PER_PAGE: Final = 32  # more events or versions than fit on a page
MAX_FINDINGS: Final = 100  # findings of integrity_check that are counted

_POSITION_OF_ID: Final = "select position from events indexed by sqlite_autoindex_events_1 where event_id = ?"

Row = dict[str, Any]
Values = tuple[Any, ...]


class CorruptDatabase:
    """An opened copy. `damaged_tables`: tables of which something could not be read or was not sound."""

    def __init__(self, connection: sqlite3.Connection, pages: int) -> None:
        self._connection = connection
        self._max_keys = pages * KEYS_PER_PAGE  # how many keys the file can hold
        self.damaged_tables: set[str] = set()
        self.denied_ids: set[str] = set()  # of events whose own index denies them

    def close(self) -> None:
        self._connection.close()

    def count_findings(self) -> int:
        """How much `integrity_check` finds; 100 means at least that."""
        try:
            found = self._connection.execute(f"pragma integrity_check({MAX_FINDINGS})").fetchall()
        except corruption_errors():
            return MAX_FINDINGS
        return 0 if found == [(b"ok",)] else len(found)

    def highest_key_used(self, table: Table, highest_read: int) -> int:
        """The highest key that was ever given, also to a lost row; `highest_read` is that of the rows that were read.

        A recorded number that the file cannot have reached is damaged itself, or was never a key.
        """
        recorded = self.recorded_sequence(table)
        if self.is_possible_key(recorded, highest_read):
            return recorded
        return highest_read + self._max_keys if table.name in self.damaged_tables else highest_read

    def is_possible_key(self, key: int, highest_read: int) -> bool:
        """Whether rows that cannot be read may have had the keys up to this one."""
        return highest_read <= key <= highest_read + self._max_keys

    def recorded_sequence(self, table: Table) -> int:
        """The highest key that was ever given, as SQLite recorded it: any number. 0 if that cannot be read."""
        try:
            query = "select seq from sqlite_sequence where name = ?"
            row = self._connection.execute(query, (table.name,)).fetchone()
        except corruption_errors():
            return 0
        return row[0] if row and isinstance(row[0], int) else 0

    def has_its_own_id(self, row: Row) -> bool:
        """False if the index denies the id of an event that the server can give back: a bit flipped in one of them."""
        if not {"event_id", "server_seq"} <= row.keys():
            return True  # a column's name is damaged; a row without its id is refused when it is inserted
        try:
            found = self._connection.execute(_POSITION_OF_ID, (row["event_id"],)).fetchone()
        except corruption_errors():
            return True
        if row["server_seq"] is None or (found is not None and found[0] == row["position"]):
            return True
        self.damaged_tables.add("events")
        self.denied_ids.add(row["event_id"])
        return False

    def rows(self, table: Table, key: str, recorded: int, **fixed: str) -> Iterator[Row]:
        """The sound rows by their keys. `recorded`: the highest key by SQLite's record; `fixed`: a column before it."""
        columns = self._columns(table)
        if not columns:
            return
        these = " and ".join((*(f"{name} = :{name}" for name in fixed), ""))
        rows = f"select {', '.join(columns)} from {table} not indexed where {these}"  # noqa: S608 - names of ours
        is_key = f"{key} >= :key and typeof({key}) = 'integer'"  # a cell of another table may lie here
        first = f"select {key} from {table} not indexed where {these}{is_key} order by {key} limit 1"  # noqa: S608 - names of ours
        low: int | None = 1
        highest = 0
        while low is not None:
            high = low + ROWS_PER_READ - 1
            query = f"{rows}{key} between :low and :high order by {key}"
            found = self._read(table, query, {**fixed, "low": low, "high": high})
            for missing in set(range(low, high + 1)).difference(values[columns.index(key)] for values in found):
                found += self._read_one(table, f"{rows}{key} = :key", {**fixed, "key": missing})
            highest = max([highest, *(values[columns.index(key)] for values in found)])
            for values in found:
                yield from self._decode_valid(table, dict(zip(columns, values, strict=True)))
            low = self._next_key(partial(self._first_key, first, fixed), high + 1, highest, recorded)

    def _first_key(self, query: str, fixed: Mapping[str, object], key: int) -> int | None:
        """The first key from this one on; None if there is none. Raises what a damaged page raises."""
        row = self._connection.execute(query, {**fixed, "key": key}).fetchone()
        return max(key, row[0]) if row and row[0] <= MAX_KEY else None

    def _next_key(self, first: Callable[[int], int | None], low: int, highest: int, recorded: int) -> int | None:
        """The key from which to read on, `low` or a later one; None if there is nothing more.

        Keys are read one after the other as long as a key was recorded that is not there, and behind a bad page as
        far as the file can hold keys: a bad page hides the good ones between two of them.
        """
        expected = recorded if self.is_possible_key(recorded, highest) else 0
        try:
            found = first(low)
        except corruption_errors():
            return low if low <= (expected or highest + self._max_keys) else _first_readable(first, low)
        return low if low <= expected and (found is None or found > expected) else found

    def all_rows(self, table: Table) -> Iterator[Row]:
        """The sound rows of a table that fits on a page."""
        columns = self._columns(table)
        if not columns:
            return
        try:
            found = self._connection.execute(f"select {', '.join(columns)} from {table}").fetchall()  # noqa: S608 - names of ours
        except corruption_errors():
            self.damaged_tables.add(table.name)
            return
        for values in found:
            yield from self._decode_valid(table, dict(zip(columns, values, strict=True)))

    def _columns(self, table: Table) -> list[str]:
        """An older schema may lack some; the new database then has its own default."""
        try:
            here = {row[1].decode() for row in self._connection.execute(f"pragma table_info({table})")}
        except corruption_errors():
            here = set()
        if not here:
            self.damaged_tables.add(table.name)
        return [column.name for column in table.columns if column.name in here]

    def _read(self, table: Table, query: str, keys: Mapping[str, object]) -> list[Values]:
        try:
            return self._connection.execute(query, keys).fetchall()
        except corruption_errors():
            self.damaged_tables.add(table.name)
            return []

    def _read_one(self, table: Table, query: str, key: Mapping[str, object]) -> list[Values]:
        """One row, also from a page on which another row's cell has an impossible size."""
        try:
            return self._connection.execute(query, key).fetchall()
        except corruption_errors():
            self._connection.execute("pragma cell_size_check = off")
        try:
            return self._read(table, query, key)
        finally:
            self._connection.execute("pragma cell_size_check = on")

    def _decode_valid(self, table: Table, row: Row) -> Iterator[Row]:
        checked = decode_row(table, row)
        if checked is None:
            self.damaged_tables.add(table.name)
        else:
            yield checked


def decode_row(table: Table, row: Row) -> Row | None:
    """The row of bytes and numbers with its texts decoded; None if it is not one that we wrote."""
    try:
        checked = {
            column.name: _decode_value(column, row[column.name]) for column in table.columns if column.name in row
        }
        _check_row(table.name, checked)
    except (ValueError, TypeError, KeyError, zlib.error, msgspec.MsgspecError):
        return None
    return checked


def _first_readable(first: Callable[[int], int | None], low: int) -> int | None:
    """The first key behind a bad page at `low`, by a search in growing steps and back; None if there is none."""
    bad, good, step = low, low + ROWS_PER_READ, ROWS_PER_READ
    while not _can_read(first, good):
        bad, step = good, 2 * step
        good = low + step
        if good > MAX_KEY:
            return None
    while good - bad > 1:
        middle = (bad + good) // 2
        bad, good = (bad, middle) if _can_read(first, middle) else (middle, good)
    return first(good)


def _can_read(first: Callable[[int], int | None], key: int) -> bool:
    try:
        first(key)
    except corruption_errors():
        return False
    return True


def open_corrupt(copy: Path, page_one: bytes, key: DatabaseKey | None) -> CorruptDatabase | None:
    """Open a copy for reading, and replace its page 1 if necessary. None if nothing can be read.

    An encrypted one is decrypted in memory, never on the disk. Raises SchemaTooNew: a newer program's rows are not ours
    to judge.
    """
    refuse_newer_schema(copy, key)
    image = None if key is None else _decrypt_copy(copy, key)
    size = copy.stat().st_size if image is None else len(image)
    pages = size // len(page_one)
    for mended in (b"", page_one[:HEADER_BYTES], page_one):
        if size < MIN_DATABASE_BYTES and not mended:
            continue  # SQLite would take it for a new one, and delete its log
        connection = (
            _open_patched_file(copy, mended, pages) if image is None else _open_patched_image(image, mended, pages)
        )
        connection.text_factory = bytes  # SQLite promises no valid UTF-8 in a damaged file
        try:
            connection.execute("pragma cell_size_check = on")
            if connection.execute("select 1 from sqlite_master where name = 'events'").fetchone():
                return CorruptDatabase(connection, pages)
        except corruption_errors():
            pass
        connection.close()
    return None


def _open_patched_file(copy: Path, patch: bytes, pages: int) -> sqlite3.Connection:
    if patch:
        with copy.open("r+b") as file:
            file.write(patch)
            file.seek(PAGE_COUNT_SLICE.start)
            file.write(pages.to_bytes(4, "big"))
    return sqlite3.connect(copy)


def _open_patched_image(image: bytearray, patch: bytes, pages: int) -> sqlite3.Connection:
    if patch:
        image[: len(patch)] = patch
        image[PAGE_COUNT_SLICE] = pages.to_bytes(4, "big")
    connection = sqlite3.connect(":memory:")
    connection.deserialize(bytes(image))
    return connection


def _decrypt_copy(copy: Path, key: DatabaseKey) -> bytearray:
    wal = copy.with_name(f"{copy.name}-wal")
    return bytearray(decrypt_database(copy.read_bytes(), wal.read_bytes() if wal.exists() else b"", key))


def refuse_newer_schema(path: Path, key: DatabaseKey | None) -> None:
    with path.open("rb") as file:
        header = (
            file.read(HEADER_BYTES) if key is None else decrypt_database(file.read(PAGE_BYTES), b"", key)[:HEADER_BYTES]
        )
    version = int.from_bytes(header[USER_VERSION_SLICE], "big")
    if header.startswith(SQLITE_MAGIC) and version > known_migrations()[-1].version:
        raise SchemaTooNew(f"the database has schema {version}, this program knows {known_migrations()[-1].version}")


def _decode_value(column: Any, value: object) -> object:
    if value is None and column.nullable:
        return None
    if isinstance(column.type, Integer):
        if not isinstance(value, int):
            raise TypeError(column.name)
        return value
    if not isinstance(value, bytes):
        raise TypeError(column.name)
    return value if isinstance(column.type, LargeBinary) else value.decode()


def _check_row(table: str, row: Row) -> None:
    """Checks beyond types. Raises if the row is not one that we wrote."""
    if table == "events":
        msgspec.json.decode(row["payload"], type=dict[str, Any])
        msgspec.json.decode(row["extra"], type=dict[str, Any])
        parse_hlc(row["hlc"])
    elif table == "replica":
        if not row["replica_id"].startswith(REPLICA_ID_PREFIX):
            raise ValueError(table)
        if row["hlc"] is not None:
            parse_hlc(row["hlc"])
    elif table == "written":
        content = zlib.decompress(
            row["bytes"]
        )  # with a checksum of its own; the hash may be that of words since forgotten
        if row.get("base") is not None:
            msgspec.json.decode(row["entry_ids"], type=list[list[int] | str])
            msgspec.json.decode(content)
        else:
            msgspec.json.decode(row["entry_ids"], type=list[str])
