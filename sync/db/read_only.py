"""A database that may not be written, opened to be read all the same.

SQLite needs an index of the WAL beside a database in WAL mode, even to read it. Where a write-ahead log is there, or
may be made, `mode=ro` is enough. Where it is not (the last writer has left in good order, and the folder may not be
written), SQLite refuses; `immutable=1` would read nonsense as soon as somebody else writes, so the file is read into
memory as it stands, and marked there as one without a WAL. That costs its size in memory for as long as it is open.
An encrypted one is decrypted there: its driver cannot open a database that is no file.
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
    """The bytes of a database that nobody writes meanwhile: a writer makes a WAL before it does anything else."""
    before = stat_stamp(path)
    with translate_os_errors(path):
        image = bytearray(path.read_bytes())
    if wal.exists() or stat_stamp(path) != before:
        raise StorageBusy(f"{path} is being written by another user")
    if key is not None:
        return decrypt_database(bytes(image), b"", key)
    image[FORMAT_VERSION_SLICE] = FORMAT_WITHOUT_WAL
    return bytes(image)
