"""Encrypt a plain database or decrypt an encrypted one, in place.

The new file is finished, checked and synced beside the old one; one rename replaces it. A kill at any moment leaves one
whole database. Reasons: docs/decisions/018-encryption.md.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import Connection
from typing import Final

from sync.db.engine import BUSY_TIMEOUT_MS
from sync.db.rebuild.salvage import create_empty, sync_to_disk
from sync.db.sqlite_errors import translate_sqlite_errors
from sync.encryption import encrypted_marker
from sync.encryption.database_encryption import DatabaseEncryption
from sync.encryption.driver import DatabaseAccess, cipher_driver
from sync.errors import StorageError
from sync.system.files import sync_folder, translate_os_errors

CONVERSION_PREFIX: Final = ".conversion-"  # the beginning of the name of the folder in which a new database is made

_TABLES: Final = """
select name, sql from source.sqlite_master
where type = 'table' and name not like 'sqlite\\_%' escape '\\'
order by sql not like 'create virtual%', rowid
"""
_INDEXES_AND_VIEWS: Final = (
    "select name, sql from source.sqlite_master where type in ('index', 'view') and sql is not null"
)
_TRIGGERS: Final = "select name, sql from main.sqlite_master where type = 'trigger'"
_COPY_SEQUENCES: Final = (  # the highest keys ever given, also of rows that are gone
    "delete from main.sqlite_sequence",
    "insert into main.sqlite_sequence select * from source.sqlite_sequence",
)


def remove_half_converted(path: Path) -> None:
    """Remove the files of a killed conversion. Only for the holder of the sidecar lock."""
    for workshop in path.parent.glob(f"{CONVERSION_PREFIX}*"):
        shutil.rmtree(workshop, ignore_errors=True)  # what cannot be removed now goes with the next start


def convert_database(path: Path, access: DatabaseAccess, encryption: DatabaseEncryption) -> DatabaseAccess:
    """Encrypt or decrypt a database; return its new access.

    Only for the holder of the sidecar lock; the database is intact, of the current schema and not open here. Raises
    StorageBusy if another process has it open, another StorageError without space or key; it is then unchanged.
    """
    becomes = encryption.keyed_access(path) if access.key is None else encryption.plain_access()
    working = DatabaseAccess(cipher_driver(), becomes.key)
    with translate_os_errors(path), tempfile.TemporaryDirectory(dir=path.parent, prefix=CONVERSION_PREFIX) as folder:
        new = Path(folder) / path.name
        with translate_sqlite_errors():
            create_empty(new, working)
            with closing(working.connect(new, timeout=BUSY_TIMEOUT_MS / 1000)) as connection:
                _attach_exclusively(connection, path, access)
                copy_all_rows(connection)
                check_converted(new, working)
                sync_to_disk(new)
                if becomes.key is not None:
                    encrypted_marker.write_marker(path)
                if os.name != "nt":
                    swap_in(new, path)
        if os.name == "nt":  # there an open file cannot be replaced: after the lock is gone
            swap_in(new, path)
    if becomes.key is None:
        encrypted_marker.remove_marker(path)
    encryption.set_access(path, becomes)
    return becomes


def _attach_exclusively(connection: Connection, path: Path, access: DatabaseAccess) -> None:
    """Attach the old database as `source`, exclusively until the connection is closed."""
    connection.execute("attach ? as source key ?", (str(path), access.key.sql_literal if access.key else ""))
    connection.execute("pragma source.journal_mode = delete")  # its log goes into the file and away
    connection.execute("pragma source.locking_mode = exclusive")
    connection.execute("pragma source.journal_mode = memory")  # a journal of its own would outlive it, in plain text
    connection.execute("begin exclusive")
    connection.execute("commit")
    if path.with_name(f"{path.name}-wal").exists():
        raise StorageError("the database could not be had alone")


def copy_all_rows(connection: Connection) -> None:
    """Copy all of `source` in one transaction. Raises StorageError if a table lacks rows afterwards."""
    connection.execute("begin")
    with _without_triggers(connection):
        tables = connection.execute(_TABLES).fetchall()
        for name, sql in tables:
            if not connection.execute("select 1 from main.sqlite_master where name = ?", (name,)).fetchone():
                connection.execute(sql)
        for name, sql in tables:
            if not _is_virtual(sql):
                _copy_table(connection, name)
        for name, sql in connection.execute(_INDEXES_AND_VIEWS).fetchall():
            if not connection.execute("select 1 from main.sqlite_master where name = ?", (name,)).fetchone():
                connection.execute(sql)
        for statement in _COPY_SEQUENCES:
            connection.execute(statement)
    connection.execute("commit")


@contextmanager
def _without_triggers(connection: Connection) -> Iterator[None]:
    """Copy the rows that triggers maintain instead of computing them again."""
    triggers = connection.execute(_TRIGGERS).fetchall()
    for name, _ in triggers:
        connection.execute(f"drop trigger main.{name}")
    yield
    for _, sql in triggers:
        connection.execute(sql)


def _is_virtual(sql: str) -> bool:
    """Whether other tables, which are in the list as well, hold this table's rows."""
    return sql.lower().startswith("create virtual")


def _copy_table(connection: Connection, table: str) -> None:
    names = ", ".join(f'"{row[1]}"' for row in connection.execute(f"pragma source.table_info('{table}')"))
    connection.execute(f"delete from main.'{table}'")  # noqa: S608 - names of ours; what making it put in
    connection.execute(f"insert into main.'{table}' ({names}) select {names} from source.'{table}'")  # noqa: S608
    counts = f"select (select count(*) from source.'{table}'), (select count(*) from main.'{table}')"  # noqa: S608
    theirs, ours = connection.execute(counts).fetchone()
    if ours != theirs:
        raise StorageError(f"{theirs - ours} rows of {table} were not copied")


def check_converted(new: Path, access: DatabaseAccess) -> None:
    """Read all of the new database through a new connection. Raises StorageError."""
    with closing(access.connect(new, read_only=True)) as connection:
        verdict = connection.execute("pragma quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise StorageError("the converted database is not sound, so it is not used")


def swap_in(new: Path, path: Path) -> None:
    new.replace(path)
    sync_folder(path.parent)
