"""Open a database that may not be written.

In WAL mode SQLite needs an index of the WAL, even to read. If that exists or can be created, `mode=ro` is enough. If
not, SQLite refuses; `immutable=1` would read nonsense during another process's write. So the file is read into memory
and marked there as one without a WAL. An encrypted one is decrypted there.
"""

import os
import sqlite3
from functools import partial
from pathlib import Path

from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import StaticPool

from sync.encryption.driver import DatabaseAccess
from sync.encryption.key import DatabaseKey
from sync.encryption.sqlcipher_pages import FORMAT_VERSION_SLICE, FORMAT_WITHOUT_WAL, decrypt_database
from sync.errors import StorageBusy
from sync.system.files import stat_stamp, translate_os_errors


def read_only_engine(path: Path, access: DatabaseAccess) -> Engine:
    """Connections refuse every write, as SQLite's `query_only` does."""
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists() or os.access(path.parent, os.W_OK):
        driver, connect = access.driver, partial(access.connect, path, read_only=True)
    else:
        driver, connect = sqlite3, partial(_open_memory_copy, path, wal, access.key)
    return create_engine(
        "sqlite://",
        module=driver,
        poolclass=StaticPool,
        creator=lambda: _set_query_only(connect()),
        hide_parameters=True,
    )


def _set_query_only(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.execute("pragma query_only = on")
    return connection


def _open_memory_copy(path: Path, wal: Path, key: DatabaseKey | None) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.deserialize(_read_image(path, wal, key))
    return connection


def _read_image(path: Path, wal: Path, key: DatabaseKey | None) -> bytes:
    """Read a database's bytes while no process writes: a writer first creates a WAL."""
    before = stat_stamp(path)
    with translate_os_errors(path):
        image = bytearray(path.read_bytes())
    if wal.exists() or stat_stamp(path) != before:
        raise StorageBusy(f"{path} is being written by another user")
    if key is not None:
        return decrypt_database(bytes(image), b"", key)
    image[FORMAT_VERSION_SLICE] = FORMAT_WITHOUT_WAL
    return bytes(image)
