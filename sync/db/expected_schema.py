"""Compare the stored schema with what migrations and projections make.

A flipped bit in the text of a schema can leave one that SQLite reads: a column or a table of another name.
"""

import sqlite3
from contextlib import closing, suppress
from functools import cache
from typing import Any, Final

from sync.db.derived_tables import (
    CONTEXT_TABLE,
    DERIVED_PREFIXES,
    LESSON_INDEXES,
    LESSON_TABLES,
    RECALL_TABLES,
    UNMERGED_TABLE,
    VECTOR_TABLES,
)
from sync.db.migrate import APPLICATION_ID, known_migrations
from sync.db.sqlite_errors import corruption_errors
from sync.errors import StorageCorrupt

Stored = dict[str, tuple[Any, ...]]  # by name: type, table and text

_STORED: Final = "select name, type, tbl_name, sql from sqlite_master where name not glob 'sqlite_stat*'"
_OPTIONAL: Final = frozenset({"recall_unmerged"})
_FORMER_TEXTS: Final = {  # of a migration that was changed before the first release
    "events_by_number": ("index", "events", "CREATE INDEX events_by_number on events (server_seq)")
}


class CorruptionFound(StorageCorrupt):
    """Damage that opening does not detect."""


def check_schema(driver: Any) -> bool:
    """Whether a database is ours and not new; `driver` is in a write transaction.

    Raises CorruptionFound if the stored schema is not that of its own version. Derived tables of another layout are
    dropped. A foreign or newer database is left to `migrate`, which refuses it.
    """
    stored = _read_stored(driver)
    mark, version = (driver.execute(f"pragma {name}").fetchone()[0] for name in ("application_id", "user_version"))
    if not stored or version > known_migrations()[-1].version:
        return False
    if mark != APPLICATION_ID:
        if _own(stored) in (_own(_made(migration.version)) for migration in known_migrations()):
            raise CorruptionFound("the header of the database is damaged")
        return False
    if _own(stored) != _own(_made(version)):
        raise CorruptionFound(f"the stored schema is not that of version {version}")
    if not _has_current_derived(stored):
        _drop_derived(driver)
        if _read_stored(driver) != _own(stored):
            raise CorruptionFound("a derived table cannot be dropped")
    return True


def _read_stored(driver: Any) -> Stored:
    try:
        rows = driver.execute(_STORED).fetchall()
    except corruption_errors() as error:
        raise CorruptionFound("the schema of the database cannot be read") from error
    found = {row[0]: tuple(row[1:]) for row in rows}
    if not all(isinstance(name, str) and isinstance(what[1], str) for name, what in found.items()):
        raise CorruptionFound("a name in the stored schema is no text")
    former = {name: _made(1)[name] for name, what in _FORMER_TEXTS.items() if found.get(name) == what}
    return found | former


@cache
def _made(version: int) -> Stored:
    """What the migrations up to a version make; version 0 for what the projections make."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for migration in known_migrations():
            for statement in migration.statements if migration.version <= version else ():
                connection.execute(statement)
        if version == 0:
            for statement in (*LESSON_TABLES.values(), *LESSON_INDEXES, *VECTOR_TABLES, UNMERGED_TABLE, CONTEXT_TABLE):
                connection.execute(statement)
            with suppress(sqlite3.OperationalError):  # a SQLite without FTS5
                for statement in RECALL_TABLES:
                    connection.execute(statement)
        return {row[0]: tuple(row[1:]) for row in connection.execute(_STORED)}


def _own(stored: Stored) -> Stored:
    """Without the derived tables and their indexes."""
    return {name: what for name, what in stored.items() if not _is_derived(name, what)}


def _is_derived(name: str, what: tuple[Any, ...]) -> bool:
    return any(str(text).startswith(prefix) for text in (name, what[1]) for prefix in DERIVED_PREFIXES)


def _has_current_derived(stored: Stored) -> bool:
    """Whether each projection has all of its tables, or none, in the layout of now."""
    made = _made(0)
    for prefix in DERIVED_PREFIXES:
        here = {name: what for name, what in stored.items() if what[1].startswith(prefix) or name.startswith(prefix)}
        whole = {name: what for name, what in made.items() if what[1].startswith(prefix)}
        if here and here | {name: made[name] for name in _OPTIONAL & whole.keys()} != whole:
            return False
    return True


def _drop_derived(driver: Any) -> None:
    """Drop all derived tables, the virtual ones first: these drop their shadow tables."""
    tables = "select name from sqlite_master where type = 'table' and {} order by sql not like 'create virtual%'"
    try:
        for prefix, rules in DERIVED_PREFIXES.items():
            for (name,) in driver.execute(tables.format(f"name glob '{prefix}*'")).fetchall():
                driver.execute(f"drop table if exists {name}")
            driver.execute("delete from watermarks where name = ?", (rules,))
    except corruption_errors() as error:
        raise CorruptionFound("a derived table cannot be dropped") from error
