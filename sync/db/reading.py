"""A database that may not be written, opened to be read all the same.

SQLite needs an index of the WAL beside a database in WAL mode, even to read it. Where a write-ahead log is there, or
may be made, `mode=ro` is enough. Where it is not (the last writer has left in good order, and the folder may not be
written), SQLite refuses; `immutable=1` would read nonsense as soon as somebody else writes, so the file is read into
memory as it stands, and marked there as one without a WAL. That costs its size in memory for as long as it is open.
"""

import os
import sqlite3
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import StaticPool

from sync.errors import StorageBusy
from sync.files import stamp, told

FORMAT_VERSIONS: Final = slice(18, 20)  # of the header: 2 for WAL, 1 without (sqlite.org/fileformat2.html, 1.3)
WITHOUT_WAL: Final = b"\x01\x01"


def engine_to_read(path: Path) -> Engine:
    """Connections refuse every write, as SQLite's `query_only` does."""
    return create_engine("sqlite://", poolclass=StaticPool, creator=partial(_connect, path), hide_parameters=True)


def _connect(path: Path) -> sqlite3.Connection:
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists() or os.access(path.parent, os.W_OK):
        address = f"file:{quote(str(path))}?mode=ro"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    else:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.deserialize(_image(path, wal))
    connection.execute("pragma query_only = on")
    return connection


def _image(path: Path, wal: Path) -> bytes:
    """The bytes of a database that nobody writes meanwhile: a writer makes a WAL before it does anything else."""
    before = stamp(path)
    with told(path):
        image = bytearray(path.read_bytes())
    if wal.exists() or stamp(path) != before:
        raise StorageBusy(f"{path} is being written by another user")
    image[FORMAT_VERSIONS] = WITHOUT_WAL
    return bytes(image)
