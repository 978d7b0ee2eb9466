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

from sync.errors import StorageBusy
from sync.files import stamp, told
from sync.vault.access import Access
from sync.vault.key import DatabaseKey
from sync.vault.pages import FORMAT_VERSIONS, WITHOUT_WAL, decrypted


def engine_to_read(path: Path, access: Access) -> Engine:
    """Connections refuse every write, as SQLite's `query_only` does."""
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists() or os.access(path.parent, os.W_OK):
        driver, connect = access.driver, partial(access.connect, path, read_only=True)
    else:
        driver, connect = sqlite3, partial(_in_memory, path, wal, access.key)
    return create_engine(
        "sqlite://",
        module=driver,
        poolclass=StaticPool,
        creator=lambda: _reading_only(connect()),
        hide_parameters=True,
    )


def _reading_only(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.execute("pragma query_only = on")
    return connection


def _in_memory(path: Path, wal: Path, key: DatabaseKey | None) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.deserialize(_image(path, wal, key))
    return connection


def _image(path: Path, wal: Path, key: DatabaseKey | None) -> bytes:
    """The bytes of a database that nobody writes meanwhile: a writer makes a WAL before it does anything else."""
    before = stamp(path)
    with told(path):
        image = bytearray(path.read_bytes())
    if wal.exists() or stamp(path) != before:
        raise StorageBusy(f"{path} is being written by another user")
    if key is not None:
        return decrypted(bytes(image), b"", key)
    image[FORMAT_VERSIONS] = WITHOUT_WAL
    return bytes(image)
