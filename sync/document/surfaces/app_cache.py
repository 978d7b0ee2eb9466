"""The Electron app's own SQLite cache: `ai_memory(id, content, created_at, updated_at)`, row 1.

The database is the app's: it is opened through SQLite for one call, never with plain file calls (its write-ahead log
may have the newest content). It is read-only unless the user wants the memory written back. No table is ever created.
"""

import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from sync.db.engine import Transaction
from sync.document import store
from sync.document.markdown.model import MemoryDocument, Version
from sync.document.markdown.parse import parse
from sync.document.merge.three_way import is_truncated
from sync.document.surfaces.notices import Notice
from sync.document.versions.ingest_edit import ingest_edit
from sync.document.versions.surface_edits import AppCacheEdit
from sync.document.versions.writer import EditResult, VersionWriter
from sync.errors import DocumentUntouchable, StorageBusy, StorageError, XiaobaiError
from sync.log.model import Door, Origin
from sync.system.digests import sha256
from sync.system.files import MAX_READ_BYTES

if TYPE_CHECKING:
    import aiosqlite

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

log = logging.getLogger(__name__)


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
async def _open(path: Path, mode: str) -> "AsyncIterator[aiosqlite.Connection | None]":
    """The app's database, or None if it has no such table. SQLite's errors are raised as StorageError."""
    import aiosqlite  # noqa: PLC0415 - few have such a cache

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


class AppCacheHistory:
    """The versions that were seen in, or written into, the app's cache: the bases of the app's edits."""

    def __init__(
        self,
        writer: VersionWriter,
        path: Path | None,
        notices: set[Notice],
        other_parked_folder: Callable[[MemoryDocument], Awaitable[Path | None]],
        *,
        write_back: bool,
    ) -> None:
        """`path`: None if there is no cache. `other_parked_folder`: where a document of another account would go."""
        self._writer, self._path, self._notices = writer, path, notices
        self._other_parked_folder, self._write_back = other_parked_folder, write_back

    async def ingest(self, *, file_first: bool) -> bytes | None:
        """Ingest what the app wrote; return what the cache holds, None if it cannot be read or is another account's.

        `file_first`: the memory file has something that was not ingested yet.
        """
        if self._path is None:
            return None
        try:
            content = await read_content(self._path)
            document = None if content is None else parse(content)
        except (StorageError, DocumentUntouchable) as error:
            self._report(error)
            return None
        self._notices.discard(Notice.APP_CACHE)
        if content is None or document is None or document.is_blank:
            return content or b""
        if await self._other_parked_folder(document) is not None:
            self._notices.add(Notice.STRANGER)
            return None
        await self._ingest_document(sha256(content), document, file_first=file_first)
        return content

    async def _ingest_document(self, digest: str, document: MemoryDocument, *, file_first: bool) -> EditResult | None:
        def ingest(connection: Transaction) -> EditResult | None:
            last_seen = store.newest(connection, store.APP_CACHE)
            if last_seen is not None and last_seen.sha256 == digest:
                return None
            if last_seen is not None and is_truncated(last_seen.snapshot.document, document):
                return None  # its last line may be half a line
            if last_seen is None and file_first and store.newest(connection, store.FILE) is None:
                return None  # the next call compares the cache with the file
            is_first = last_seen is None  # what stood there at the first start is the user's
            origin, door = (Origin.IMPORTED, Door.HAND) if is_first else (Origin.USER, Door.APP)
            edit = AppCacheEdit(self._writer, document, digest, origin, door=door, last_seen=last_seen)
            return ingest_edit(connection, edit)

        return await self._writer.edit(ingest)

    async def update(self, cached: bytes, version: Version | None) -> None:
        """Write the newest version over what `ingest` returned, if the settings ask for it."""
        if self._path is None or version is None or not self._write_back:
            return
        try:
            await self._write_version(self._path, cached, version)
        except StorageError as error:
            self._report(error)

    async def _write_version(self, path: Path, cached: bytes, version: Version) -> None:
        """Write a version over what the cache held, if all of that was ingested; the app's own write wins.

        What the app makes of it is an edit of this version.
        """
        text = version.snapshot.document.text
        if cached == text.encode():
            return
        if cached.strip() and not await self._is_newest(sha256(cached)):
            return  # it looks lost, or waits for the file: the user has not answered
        if await swap_content(path, cached, text):
            await self._record_written(version)

    async def _is_newest(self, digest: str) -> bool:
        """Whether this is what the cache was last seen, or left, with."""
        newest = await self._writer.log.database.read(store.newest, store.APP_CACHE)
        return newest is not None and newest.sha256 == digest

    async def _record_written(self, version: Version) -> None:
        clock, keep = self._writer.clock, self._writer.keep_versions
        await self._writer.log.database.write(store.append, store.APP_CACHE, version.snapshot, "log", clock, keep)

    def _report(self, error: XiaobaiError) -> None:
        self._notices.add(Notice.APP_CACHE)
        log.warning("the app's cache was left alone: %s", error.kind)
