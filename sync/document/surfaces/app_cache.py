"""The Electron app's own SQLite cache: `ai_memory(id, content, created_at, updated_at)`, row 1 (seed 001).

The database is the app's: it is opened through SQLite for one call, never with plain file calls (its write-ahead log
may have the newest content). It is read-only unless the user wants the memory written back. No table is ever created.
"""

import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiosqlite

from sync.errors import StorageBusy, StorageError
from sync.system.files import MAX_READ_BYTES

BUSY_TIMEOUT: Final = 2.0  # seconds to wait for the app's own write
CALL_TIMEOUT: Final = 5.0  # seconds in all
PROGRESS_STEPS: Final = 10_000  # SQLite instructions between two checks of the time
FIND_TABLE: Final = "select 1 from sqlite_master where name = 'ai_memory' and type = 'table'"  # a view may never end
UPDATE: Final = (  # the bytes are compared: a column without a type may hold a blob; nothing and empty are the same
    "update ai_memory set content = ?, updated_at = current_timestamp"
    " where id = 1 and coalesce(cast(content as blob), x'') = ?"
)
INSERT: Final = (
    "insert into ai_memory (id, content, created_at, updated_at)"
    " select 1, ?, current_timestamp, current_timestamp where not exists (select 1 from ai_memory where id = 1)"
)
SELECT_CONTENT: Final = "select content from ai_memory where id = 1"


class _BoundedConnection(sqlite3.Connection):
    """A connection to an untrusted file: the time of statements and the size of values are limited."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_READ_BYTES)
        ends = time.monotonic() + CALL_TIMEOUT
        self.set_progress_handler(lambda: time.monotonic() > ends, PROGRESS_STEPS)


async def read_content(path: Path) -> bytes | None:
    """The cached document, or None if there is no database, table, row or content yet."""
    if not path.is_file():
        return None
    async with _open(path, "ro") as connection:
        if connection is None:
            return None
        async with connection.execute(SELECT_CONTENT) as rows:
            row = await rows.fetchone()
    if row is None or row[0] is None:
        return None
    return row[0] if isinstance(row[0], bytes) else str(row[0]).encode()


async def swap_content(path: Path, expected: bytes, text: str) -> bool:
    """Write the document if the cache still holds `expected` (empty for no content); whether it was written."""
    if not path.is_file():
        return False
    async with _open(path, "rw") as connection:
        if connection is None:
            return False
        done = await connection.execute(UPDATE, (text, expected))
        if done.rowcount == 0 and not expected:
            done = await connection.execute(INSERT, (text,))
        await connection.commit()
        return done.rowcount == 1


@asynccontextmanager
async def _open(path: Path, mode: str) -> AsyncIterator[aiosqlite.Connection | None]:
    """The app's database, or None if it has no such table. SQLite's errors are raised as StorageError."""
    address = f"file:{quote(str(path))}?mode={mode}"
    try:
        async with aiosqlite.connect(address, uri=True, timeout=BUSY_TIMEOUT, factory=_BoundedConnection) as connection:
            async with connection.execute(FIND_TABLE) as rows:
                table = await rows.fetchone()
            yield connection if table else None
    except sqlite3.OperationalError as error:
        raise StorageBusy(f"{path.name} cannot be read or written now") from error
    except sqlite3.DatabaseError as error:
        raise StorageError(f"{path.name} is not a readable SQLite database") from error
