"""One SQLite file: a writer that never loses an acknowledged transaction, and readers that never wait for it.

A transaction is a plain function that runs on one writer thread; callers that arrive during a commit share the next
one. The reasons are in docs/decisions/016-database-engine.md.
"""

import asyncio
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import msgspec
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import StaticPool

from sync.db.migrate import migrate
from sync.db.read_only import read_only_engine
from sync.db.sqlite_errors import (
    breaks_transaction,
    is_disk_failure,
    to_storage_error,
    translate_sqlite_errors,
    translate_undecodable_schema,
)
from sync.db.write_lock import BEGIN_IMMEDIATE, Upkeep, begin_immediate, is_locked_with_current_schema
from sync.encryption import emptied_marker
from sync.encryption.driver import PLAIN_ACCESS, DatabaseAccess
from sync.errors import StorageBusy, StorageCorrupt, StorageError, StorageReadOnly
from sync.system.files import PRIVATE_FILE, FileStamp, stat_stamp, translate_os_errors

T = TypeVar("T")
P = ParamSpec("P")
Transaction = Connection  # the argument of a unit of work; only stores use its methods
Work = Callable[[Transaction], T]

BUSY_TIMEOUT_MS: Final = 20_000  # 20 writers on a machine at load 12 need 4 s; a call's own deadline is 60 s
WAL_PUBLISH_GRACE_NS: Final = 1_000_000_000  # far longer than an fsync takes
SYNCHRONOUS_FULL: Final = 2
BEGIN_DEFERRED: Final = "BEGIN"
# secure_delete: erased text is overwritten, not only freed
PRAGMAS: Final = (
    "journal_mode = wal",
    "synchronous = full",
    "foreign_keys = on",
    "temp_store = memory",
    "secure_delete = on",
)
MAX_GROUP_COMMIT: Final = 64  # works in one commit: enough for any burst, short enough for the next reader of the lock

log = logging.getLogger(__name__)


class _QueuedWork(msgspec.Struct, frozen=True):
    work: Work[Any]
    outcome: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop

    def succeed(self, value: object) -> None:
        self.loop.call_soon_threadsafe(self._set_outcome, value, None)

    def fail(self, error: BaseException) -> None:
        self.loop.call_soon_threadsafe(self._set_outcome, None, error)

    def _set_outcome(self, value: object, error: BaseException | None) -> None:
        if self.outcome.done():  # the caller was cancelled; the transaction was committed all the same
            return
        if error is None:
            self.outcome.set_result(value)
        else:
            self.outcome.set_exception(error)


class Database:
    """Use `await Database.open(path)`; then `await db.write(work)` and `await db.read(work)`."""

    def __init__(
        self, path: Path, access: DatabaseAccess, writer: Executor, reader: Executor, *, read_only: bool = False
    ) -> None:
        self.path = path
        self.read_only = read_only
        self._writer = writer
        self._reader = reader
        self._write_engine = _engine_with_pragmas(path, access)
        self._read_engine = read_only_engine(path, access) if read_only else _engine_with_pragmas(path, access)
        self._queue: list[_QueuedWork] = []
        self._queue_lock = threading.Lock()
        self._commits = 0
        self._own_wal_stamp: FileStamp | None = None
        self._inode: int | None = None
        self._disk_failed = False  # what the disk holds is not known then
        self._wal_path = path.with_name(f"{path.name}-wal")
        self.purge_pending = False  # the WAL may hold deleted text: of a killed process, or while another one reads
        self.upkeep = Upkeep(is_possible=not read_only)

    @classmethod
    async def open(
        cls,
        path: Path,
        access: DatabaseAccess = PLAIN_ACCESS,
        *,
        writer: Executor | None = None,
        reader: Executor | None = None,
        wait: bool = True,
        check: Callable[[Any], None] | None = None,
    ) -> "Database":
        """Create or open the file (0600) and migrate it. Raises a StorageError.

        Raises EmptiedDatabase instead of replacing a database that had content. Without `wait`, a file with the current
        schema is opened also while another process holds the write lock (`upkeep.is_locked_out`). `check` is
        called with the driver's connection before a migration.
        """
        database = cls(
            path,
            access,
            writer or ThreadPoolExecutor(1, "xiaobai-write"),
            reader or ThreadPoolExecutor(1, "xiaobai-read"),
        )
        wal = stat_stamp(database._wal_path)
        database.purge_pending = wal is not None and wal[0] > 0
        try:
            with translate_undecodable_schema():
                open_file = partial(_create_and_migrate, path, database._write_engine, wait=wait, check=check)
                database.upkeep.is_locked_out = await database._run_in(database._writer, open_file)
            database._inode = path.stat().st_ino
        except BaseException:
            await database.close()
            raise
        return database

    @classmethod
    async def open_read_only(cls, path: Path, access: DatabaseAccess = PLAIN_ACCESS) -> "Database":
        """Open a file that may not be written; `write` raises StorageReadOnly. Raises a StorageError."""
        executors = ThreadPoolExecutor(1, "xiaobai-write"), ThreadPoolExecutor(1, "xiaobai-read")
        database = cls(path, access, *executors, read_only=True)
        try:
            with translate_undecodable_schema():
                await database.read(migrate)  # raises if the schema is older
        except BaseException:
            await database.close()
            raise
        return database

    def check_writable(self) -> None:
        """Raise StorageReadOnly before work whose result could not be stored."""
        if self.read_only:
            raise StorageReadOnly(f"no permission to write {self.path}")

    async def write(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` with a transaction of its own, which is on disk when this returns, and these arguments."""
        self.check_writable()
        return await self._enqueue(lambda connection: work(connection, *args, **kwargs))

    async def _enqueue(self, work: Work[T]) -> T:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        with self._queue_lock:
            self._queue.append(_QueuedWork(work, outcome, loop))
            first = len(self._queue) == 1
        if first:
            self._start_draining()
        return await outcome

    async def read(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` on a consistent view of the last commit."""

        def reading() -> T:
            with translate_sqlite_errors(), transaction(self._read_engine, BEGIN_DEFERRED) as connection:
                return work(connection, *args, **kwargs)

        return await self._run_in(self._reader, reading)

    def change_token(self) -> tuple[int, FileStamp | None]:
        """A value that differs after any commit of any process: our own are counted, the others' touch the WAL.

        It costs two microseconds, so an answer can be cached until it changes.
        """
        return self._commits, stat_stamp(self._wal_path)

    def is_token_readable(self, token: tuple[int, FileStamp | None]) -> bool:
        """Whether the commits of a token can be read by now.

        Another process writes the WAL first and publishes the commit a moment later; a read in between is old under the
        new token. Our own last commit is published when it is counted.
        """
        _, wal = token
        return wal is None or wal == self._own_wal_stamp or time.time_ns() - wal[1] > WAL_PUBLISH_GRACE_NS

    async def purge(self, *, vacuum: bool = False, wait_for_readers: bool = True) -> bool:
        """Leave nothing deleted or replaced in the write-ahead log; False while another process reads it.

        `vacuum`: nor in freed pages; this rewrites the file. `wait_for_readers`: wait as long as for a lock; our own
        writers wait too.
        """

        def purging() -> bool:
            with translate_sqlite_errors(), closing(self._write_engine.raw_connection()) as connection:
                driver: Any = connection.driver_connection
                if vacuum:
                    driver.execute("vacuum")
                driver.execute(f"pragma busy_timeout = {BUSY_TIMEOUT_MS if wait_for_readers else 0}")
                try:
                    return not driver.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
                finally:
                    driver.execute(f"pragma busy_timeout = {BUSY_TIMEOUT_MS}")

        self.check_writable()
        done = await self._run_in(self._writer, purging)
        self.purge_pending = not done
        return done

    async def close(self) -> None:
        """Finish what was begun, then close the file."""
        await self._run_in(self._reader, self._read_engine.dispose)
        await self._run_in(self._writer, self._write_engine.dispose)
        for executor in (self._reader, self._writer):
            executor.shutdown(wait=False)

    async def _run_in(self, executor: Executor, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(executor, call)

    def _start_draining(self) -> None:
        try:
            self._writer.submit(self._drain_queue)
        except RuntimeError as error:  # after `close`: fail late callers, so they do not wait for ever
            with self._queue_lock:
                late, self._queue = self._queue, []
            for waiting in late:
                waiting.fail(StorageError(f"the database is closed ({error})"))

    def _drain_queue(self) -> None:
        """On the writer thread: commit everything queued in one transaction, until the queue is empty."""
        while True:
            with self._queue_lock:
                batch = self._queue[:MAX_GROUP_COMMIT]
            if not batch:
                return
            try:
                self._commit_batch(batch)
            finally:
                with self._queue_lock:
                    del self._queue[: len(batch)]
                    finished = not self._queue
            if finished:
                return

    def _commit_batch(self, batch: list[_QueuedWork]) -> None:
        results: list[tuple[_QueuedWork, object, BaseException | None]] = []
        try:
            if self._disk_failed:
                self._reopen_after_disk_failure()
            self.upkeep.waiting_since = time.monotonic()
            with translate_sqlite_errors(), transaction(self._write_engine, BEGIN_IMMEDIATE) as connection:
                self.upkeep.waiting_since = None
                self._check_not_replaced()
                if len(batch) == 1:  # a single caller needs no savepoint
                    results.append((batch[0], batch[0].work(connection), None))
                else:
                    results.extend((waiting, *_run_in_savepoint(connection, waiting.work)) for waiting in batch)
            self._commits, self.upkeep.is_locked_out = self._commits + 1, False
            self._own_wal_stamp = stat_stamp(self._wal_path)
        except BaseException as error:  # noqa: BLE001 - every caller gets it; nothing was committed for any of them
            if is_disk_failure(error):
                self._disk_failed = True
                log.error("the disk failed (%s); nothing is acknowledged until it holds again", error)  # noqa: TRY400
            for waiting in batch:
                waiting.fail(error)
            return
        finally:
            self.upkeep.waiting_since = None
        for waiting, value, failure in results:
            if failure is None:
                waiting.succeed(value)
            else:
                waiting.fail(failure)

    def _reopen_after_disk_failure(self) -> None:
        """Verify the file after a disk failure. Raises a StorageError until it holds what was committed."""
        self._write_engine.dispose()
        with translate_sqlite_errors(), closing(self._write_engine.raw_connection()) as connection:
            driver: Any = connection.driver_connection
            busy, _, _ = driver.execute("pragma wal_checkpoint(truncate)").fetchone()
            if busy:
                raise StorageBusy("another process reads the database whose disk has just failed")
            if driver.execute("pragma quick_check(1)").fetchone()[0] != "ok":
                raise StorageCorrupt("the database was damaged when its disk failed")
        self._disk_failed = False
        log.warning("the disk holds again")

    def _check_not_replaced(self) -> None:
        """Under the write lock: a salvage may have replaced the file, and writes to the old one would be lost."""
        now = stat_stamp(self.path)
        if now is None or now[2] != self._inode:
            raise StorageError("the database was moved aside or replaced", hint="Start this program again.")


def _run_in_savepoint(connection: Transaction, work: Work[Any]) -> tuple[object, BaseException | None]:
    """Run one caller's work in a savepoint. Its failure is its own; a broken database is raised for all."""
    savepoint = connection.begin_nested()
    try:
        value = work(connection)
    except BaseException as error:
        if breaks_transaction(error):
            raise
        savepoint.rollback()
        return None, to_storage_error(error) or error
    savepoint.commit()
    return value, None


@contextmanager
def transaction(engine: Engine, begin: str) -> Iterator[Transaction]:
    """One transaction, begun by the driver itself: an event listener would make every statement a fifth slower."""
    with engine.begin() as connection:
        driver: Any = connection.connection.driver_connection
        if begin == BEGIN_IMMEDIATE:
            begin_immediate(driver, BUSY_TIMEOUT_MS)
        else:
            driver.execute(begin)
        yield connection


def engine_without_pragmas(path: Path, access: DatabaseAccess) -> Engine:
    """SQLAlchemy on one connection without our pragmas, for a database that is still being made."""
    creator = partial(access.connect, path, timeout=BUSY_TIMEOUT_MS / 1000)
    return create_engine("sqlite://", module=access.driver, poolclass=StaticPool, creator=creator, hide_parameters=True)


def _engine_with_pragmas(path: Path, access: DatabaseAccess) -> Engine:
    engine = engine_without_pragmas(path, access)

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: object) -> None:
        for pragma in PRAGMAS:
            connection.execute(f"pragma {pragma}")
        level = connection.execute("pragma synchronous").fetchone()[0]
        if level != SYNCHRONOUS_FULL:
            raise StorageError(f"SQLite runs with synchronous={level}; acknowledged events would not be safe")

    return engine


def _create_and_migrate(
    path: Path, engine: Engine, *, wait: bool = True, check: Callable[[Any], None] | None = None
) -> bool:
    """Create and migrate the file; whether it was left as it is because another process holds the write lock."""
    emptied_marker.refuse_emptied(path)
    if not wait and path.exists() and is_locked_with_current_schema(engine):
        return True
    with translate_os_errors(path):
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, PRIVATE_FILE))
    with translate_sqlite_errors(), transaction(engine, BEGIN_IMMEDIATE) as connection:
        if check is not None:
            check(connection.connection.driver_connection)
        migrate(connection)
        connection.exec_driver_sql("delete from replica where false")  # BEGIN IMMEDIATE succeeds on a read-only file
    emptied_marker.write_marker(path)
    return False
