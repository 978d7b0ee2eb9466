"""The Electron app's own SQLite cache: `ai_memory(id, content, created_at, updated_at)`, row 1 (seed 001).

It is somebody else's database: opened read-only through SQLite for the moment of one read, never with plain file
calls (the newest content may still be in its write-ahead log).
"""

import sqlite3
from pathlib import Path
from typing import Final
from urllib.parse import quote

import aiosqlite

from sync.errors import StorageBusy, StorageError

PATIENCE: Final = 2.0  # seconds to wait for the app's own write
CONTENT: Final = "select content from ai_memory where id = 1"


async def read_content(path: Path) -> bytes | None:
    """The cached document, or None where there is no database, table, row or content yet."""
    if not path.exists():
        return None
    address = f"file:{quote(str(path))}?mode=ro"
    try:
        async with (
            aiosqlite.connect(address, uri=True, timeout=PATIENCE) as connection,
            connection.execute(CONTENT) as rows,
        ):
            row = await rows.fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return None
        raise StorageBusy(f"{path.name} cannot be read now") from error
    except sqlite3.DatabaseError as error:
        raise StorageError(f"{path.name} is not a readable SQLite database") from error
    if row is None or row[0] is None:
        return None
    return row[0] if isinstance(row[0], bytes) else str(row[0]).encode()
