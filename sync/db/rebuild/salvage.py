"""Salvage a damaged database: move it aside and make a new one of what can be read.

Nothing is deleted, and the new database is complete before anything is renamed. Reasons: docs/decisions/017-salvage.md.
"""

import asyncio
import itertools
import logging
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy.exc import DBAPIError

from sync.db.engine import BUSY_TIMEOUT_MS, Database, Transaction, engine_without_pragmas, transaction
from sync.db.expected_schema import CorruptionFound
from sync.db.integrity import check_before_migration, check_small_tables, check_with_wal
from sync.db.migrate import known_migrations, migrate
from sync.db.rebuild.corrupt_reader import CorruptDatabase, open_corrupt, refuse_newer_schema
from sync.db.rebuild.row_copy import CLAIM_FOR_UNKNOWN_OWNER, copy_readable_rows
from sync.db.schema import UNKNOWN_OWNER, accounts, events, replica, watermarks, written
from sync.db.sqlite_errors import corruption_errors, translate_sqlite_errors
from sync.db.write_lock import BEGIN_IMMEDIATE
from sync.encryption import emptied_marker
from sync.encryption.driver import PLAIN_ACCESS, DatabaseAccess
from sync.encryption.emptied_marker import EmptiedDatabase
from sync.encryption.sqlcipher_pages import decrypt_database
from sync.errors import StorageBusy, StorageCorrupt
from sync.system.files import PRIVATE_FILE, translate_os_errors

FILE_SUFFIXES: Final = ("", "-wal", "-shm")
SALVAGE_PREFIX: Final = ".salvage-"  # the beginning of the name of the folder in which a new database is made
WAL_LEFT_OUT: Final = "the write-ahead log"  # in the list of what was lost
FINISHED_SUFFIX: Final = "salvaged"  # the suffix of a new database that only has to be put in place

log = logging.getLogger(__name__)


class LogCompletion(msgspec.Struct, frozen=True):
    """How the log of a salvaged database was completed. `missing`: events that were found nowhere on this device."""

    former_replica_id: str
    missing: int
    event_files: Path | None = None  # where the event files are kept


class SalvageResult(msgspec.Struct, frozen=True):
    """The result of a salvage. `lost` says in one line what could not be read; never content."""

    moved_to: Path
    copied: Mapping[str, int]
    lost: str
    completion: LogCompletion
    cause: str = ""


CompleteLog = Callable[[Transaction, AbstractSet[str], AbstractSet[str]], LogCompletion]
"""Completes a salvaged database and makes it a new replica, given the tables with losses and ids that are damaged."""


class _CopyResult(msgspec.Struct, frozen=True):
    copied: Mapping[str, int]
    failed: frozenset[str]
    findings: int
    denied_ids: frozenset[str]
    is_empty: bool = False  # nothing could be read at all


async def open_or_salvage(
    path: Path,
    access: DatabaseAccess = PLAIN_ACCESS,
    *,
    sidecar: bool,
    thorough: bool,
    destination: str,
    now: datetime,
    complete_log: CompleteLog,
    check_log: Callable[[Any], None] | None = None,
) -> tuple[Database, SalvageResult | None]:
    """Open the database; if it is damaged and this process holds the sidecar lock, salvage it first.

    `access`: with the right key of an encrypted database, so what does not fit it is damage. `thorough`: look for
    damage that opening does not meet; after a write-ahead log was left, that is always done. `destination`: of the
    deliveries. `check_log` raises CorruptionFound for a log that is behind. Raises a StorageError.
    """
    if not sidecar:
        return await Database.open(path, access, wait=False), None
    await asyncio.to_thread(finish_salvage, path)
    try:
        return await _open_checked(path, access, destination, check_log, thorough=thorough), None
    except StorageCorrupt as error:
        of_sqlite = isinstance(error.__cause__, (DBAPIError, *corruption_errors()))
        if not of_sqlite and not isinstance(error, (CorruptionFound, EmptiedDatabase)):
            raise  # another program's database: SQLite has nothing to say against it
        log.warning("%s is salvaged: %s", path.name, error.message)
        cause = error.message
    salvage = await asyncio.to_thread(_salvage, path, access, destination, now, complete_log)
    return await Database.open(path, access), msgspec.structs.replace(salvage, cause=cause)


async def _open_checked(
    path: Path, access: DatabaseAccess, destination: str, check_log: Callable[[Any], None] | None, *, thorough: bool
) -> Database:
    is_checked = await asyncio.to_thread(check_with_wal, path, access)
    check = partial(check_before_migration, path=path, thorough=thorough and not is_checked)
    database = await Database.open(path, access, check=check)

    def check_rows(connection: Transaction) -> None:
        driver = connection.connection.driver_connection
        check_small_tables(driver, path, destination)
        if check_log is not None:
            check_log(driver)

    try:
        await database.read(check_rows)
    except BaseException:
        await database.close()
        raise
    return database


def _salvage(
    path: Path, access: DatabaseAccess, destination: str, now: datetime, complete_log: CompleteLog
) -> SalvageResult:
    with translate_os_errors(path):
        path.touch(PRIVATE_FILE)  # one that is gone is kept as an empty one, with the log that it left
    refuse_newer_schema(path, access.key)
    workshop = tempfile.TemporaryDirectory(dir=path.parent, prefix=SALVAGE_PREFIX)
    with translate_os_errors(path), workshop as folder, _writers_locked_out(path, access):
        copy, new = Path(folder) / path.name, Path(folder) / "new.db"
        for part in ("-wal", ""):  # in this order: a checkpoint in between moves pages from the first to the second
            if _file_of(path, part).exists():
                shutil.copyfile(_file_of(path, part), _file_of(copy, part))
        with translate_sqlite_errors():
            saved = _rebuild(copy, new, access, destination)
            completion = _complete(new, access, saved, complete_log)
        sync_to_disk(new)
        new.replace(_finished_path(path))
        if os.name != "nt":  # there an open file cannot be renamed: after the lock is gone
            moved_to = _swap_in_salvaged(path, now)
    if os.name == "nt":
        moved_to = _swap_in_salvaged(path, now)
    return SalvageResult(moved_to, saved.copied, _describe_lost(saved, completion.missing), completion)


def _complete(new: Path, access: DatabaseAccess, result: _CopyResult, complete_log: CompleteLog) -> LogCompletion:
    engine = engine_without_pragmas(new, access)
    try:
        with transaction(engine, BEGIN_IMMEDIATE) as connection:
            return complete_log(connection, result.failed, result.denied_ids)
    finally:
        engine.dispose()


@contextmanager
def _writers_locked_out(path: Path, access: DatabaseAccess) -> Iterator[None]:
    """Hold the write lock if the damage allows it. Raises StorageBusy.

    The last connection that closes would write the log into the database, which is to stay unchanged, so a read-only
    connection closes last. An empty database has no lock, and connecting would delete its log.
    """
    if path.stat().st_size < emptied_marker.MIN_DATABASE_BYTES:
        yield
        return
    timeout = BUSY_TIMEOUT_MS / 1000
    with (
        closing(access.connect(path, timeout=timeout, read_only=True)) as last,
        closing(access.connect(path, timeout=timeout)) as connection,
    ):
        with suppress(*corruption_errors()):
            last.execute("select 1 from sqlite_master").fetchone()  # opens the log
        try:
            connection.execute("begin immediate")
        except corruption_errors() as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise StorageBusy("another process writes to the damaged database") from error
        yield


# --- the files ---------------------------------------------------------------------------------------------


def _file_of(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _finished_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.{FINISHED_SUFFIX}")


def sync_to_disk(new: Path) -> None:
    """Make a finished database private and durable."""
    new.chmod(PRIVATE_FILE)
    descriptor = os.open(new, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _swap_in_salvaged(path: Path, now: datetime) -> Path:
    """Move the database before its WAL: another database beside that WAL would take it for its own."""
    stamp = f"{path.name}.damaged-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    names = (path.with_name(stamp if number == 1 else f"{stamp}-{number}") for number in itertools.count(1))
    aside = next(name for name in names if not name.exists())
    path.rename(aside)
    _move_companion_files(path, aside)
    return aside


def _move_companion_files(path: Path, aside: Path) -> None:
    for part in FILE_SUFFIXES[1:]:
        if _file_of(path, part).exists():
            _file_of(path, part).rename(_file_of(aside, part))
    for part in FILE_SUFFIXES:
        if _file_of(aside, part).exists():
            _file_of(aside, part).chmod(PRIVATE_FILE)
    _finished_path(path).replace(path)


def finish_salvage(path: Path) -> None:
    """Complete a salvage that was killed. A new database beside an existing one was not put in place."""
    for workshop in path.parent.glob(f"{SALVAGE_PREFIX}*"):
        shutil.rmtree(workshop, ignore_errors=True)  # what cannot be removed now goes with the next start
    if path.exists() or not _finished_path(path).exists():
        return
    with translate_os_errors(path):
        aside = [
            found for found in path.parent.glob(f"{path.name}.damaged-*Z*") if found.suffix[-4:] not in FILE_SUFFIXES
        ]
        unknown = path.with_name(f"{path.name}.damaged-before")
        _move_companion_files(path, max(aside, key=lambda found: found.stat().st_ctime_ns, default=unknown))


# --- the rows ----------------------------------------------------------------------------------------------


def create_empty(new: Path, access: DatabaseAccess) -> None:
    """Create a database with the current tables and no rows."""
    engine = engine_without_pragmas(new, access)
    try:
        with transaction(engine, BEGIN_IMMEDIATE) as connection:
            migrate(connection)
    finally:
        engine.dispose()


def _rebuild(copy: Path, new: Path, access: DatabaseAccess, destination: str) -> _CopyResult:
    """Fill a new database with the readable rows of the damaged one's copy."""
    create_empty(new, access)
    with closing(access.connect(new)) as target, ExitStack() as stack:
        sources = [stack.enter_context(closing(found)) for found in _open_sources(copy, new, access)]
        target.execute("pragma foreign_keys = on")
        target.execute("begin")
        if not sources:
            copied = {table.name: 0 for table in (events, written)}
            failed, findings = frozenset(t.name for t in (events, written, accounts, watermarks)), 0
        else:
            findings = max(damaged.count_findings() for damaged in sources)
            copied = copy_readable_rows(sources, target, destination)
            failed = frozenset.intersection(*(frozenset(damaged.damaged_tables) for damaged in sources))
        if accounts.name in failed:
            target.execute(CLAIM_FOR_UNKNOWN_OWNER, (UNKNOWN_OWNER,))
        target.execute("commit")
    denied_ids = frozenset(name for damaged in sources for name in damaged.denied_ids)
    return _CopyResult(copied, failed, findings, denied_ids, is_empty=not sources)


def _open_sources(copy: Path, new: Path, access: DatabaseAccess) -> list[CorruptDatabase]:
    """The sources of rows, the most trustworthy first; see docs/decisions/017-salvage.md."""
    page_one, log = _first_page(new.with_name("first.db"), access), _file_of(copy, "-wal")
    alone = copy.with_name("alone.db")
    if log.exists() and log.stat().st_size:
        shutil.copyfile(copy, alone)  # before anybody opens the copy, and writes the log into it
    both = open_corrupt(copy, page_one, access.key)
    without = open_corrupt(alone, page_one, access.key) if alone.exists() else None
    if without is None or (both is not None and (without.count_findings() or not both.count_findings())):
        if without is not None:
            without.close()
        return [] if both is None else [both]
    if both is not None and _replica_id_of(without) == _replica_id_of(both):
        return [without, both]
    if both is not None:
        both.close()
    without.damaged_tables.add(WAL_LEFT_OUT)
    return [without]


def _replica_id_of(damaged: CorruptDatabase) -> object:
    return next((row["replica_id"] for row in damaged.all_rows(replica)), None)


def _first_page(path: Path, access: DatabaseAccess) -> bytes:
    """Page 1 of a database of the first schema: every later one has these tables on the same pages.

    That of a newer schema does not fit one page, and the pages that it goes on to lie elsewhere in every database. That
    of an encrypted database is decrypted: less fits on such a page, so it is not the same as a plain one's.
    """
    with closing(access.connect(path)) as connection:
        connection.execute("begin")
        for statement in known_migrations()[0].statements:
            connection.execute(statement)
        connection.execute("commit")
        page = path.read_bytes()[: int(connection.execute("pragma page_size").fetchone()[0])]
    return page if access.key is None else decrypt_database(page, b"", access.key)


def _describe_lost(result: _CopyResult, missing: int) -> str:
    """What was found nowhere on this device: events by their number, other tables by their name."""
    counted = [f"{events.name} (up to {missing})"] if missing else []
    is_known = bool(missing) or not result.is_empty
    names = sorted([*counted, *(result.failed - {events.name} if is_known else result.failed)])
    tables = ", ".join(names) or "nothing that is known of"
    return f"{tables} (integrity_check: {result.findings} findings)"
