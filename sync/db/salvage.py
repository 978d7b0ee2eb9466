"""What happens when the database is damaged: the file is moved aside, and what can be read of it becomes a new one.

Decisions
    Only SQLite's own CORRUPT and NOTADB lead here, and a file that is empty or gone where a database had begun
    (`Emptied`); never BUSY, a newer schema, or another program's database. A start of the sidecar looks for more than
    opening meets (`sync.db.soundness`). A WAL that was cut is not damage: SQLite takes its committed prefix.
    A write-ahead log that was left is looked at by a connection that can only read, before anything else: it may belong
    to another database (a backup that was put back beside it), and whoever closes a file last writes its log into it.
    Where the database is sound without it, that is what is salvaged; of the log what is missing there, if it speaks of
    the same replica. Where SQLite finds nothing wrong with both together, nobody notices.
    Nothing is deleted. The new database is finished and synced beside the old one before anything is renamed, and a
    start that finds the renames half done ends them. Writers are locked out meanwhile where the file still lets us; a
    process that had it open is told at its next write (`Database`). One that opens
    it within the microseconds between the renames finds it gone, and makes no new one.
    Positions, event ids and versions stay what they were, and the numbers of lost ones are not used again. What is
    known nowhere else is rebuilt: own events that the server never numbered wait to be sent again, and it skips ids it
    knows. Cursors are left behind, so the server's whole log is read again and brings back what it has. The caller
    makes the database a new replica (`Succeed`), because the damaged one may have used numbers that nobody remembers:
    before it is put in place, or a start that is killed just then would leave one that goes on as the old.
    Whose memory this is stands in one row. Where it cannot be read, the new database belongs to `UNKNOWN_OWNER` from
    its first moment: nobody's login takes the memory for its own, and nothing is sent, until the stored session tells
    whose it was or a person says so (`Account.enter`, `accept`).
"""

import asyncio
import itertools
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from sync.db.copying import CLAIM_UNKNOWN, complete, copy_rows
from sync.db.damaged import Damaged, open_damaged, refuse_newer
from sync.db.engine import BUSY_TIMEOUT_MS, WRITING, Database, bare_engine, transaction
from sync.db.failures import legible, of_damage, translated
from sync.db.migrate import known, migrate
from sync.db.soundness import FoundDamage, check, checked_with_its_log
from sync.db.tables import (
    UNKNOWN_OWNER,
    accounts,
    events,
    replica,
    watermarks,
    written,
)
from sync.errors import StorageBusy, StorageCorrupt
from sync.files import PRIVATE_FILE, told
from sync.vault import begun
from sync.vault.access import PLAIN, Access
from sync.vault.begun import Emptied
from sync.vault.pages import decrypted

PARTS: Final = ("", "-wal", "-shm")
WORKSHOP: Final = ".salvage-"  # the beginning of the name of the folder in which a new database is made
LEFT_OUT: Final = "the write-ahead log"  # in the list of what was lost
FINISHED: Final = "salvaged"  # the suffix of a new database that only has to be put in place


@dataclass(frozen=True, slots=True)
class Salvage:
    """What became of a damaged database. `lost` says in one line what could not be read; never content.

    `former`: the replica that it was.
    """

    moved_to: Path
    copied: Mapping[str, int]
    lost: str
    former: str


Succeed = Callable[[Connection, AbstractSet[str]], str]
"""Makes a salvaged database the next replica; told of which tables something is lost; says whom it replaces."""


@dataclass(frozen=True, slots=True)
class _Saved:
    copied: Mapping[str, int]
    failed: frozenset[str]
    findings: int


async def open_or_salvage(
    path: Path,
    access: Access = PLAIN,
    *,
    sidecar: bool,
    thorough: bool,
    destination: str,
    now: datetime,
    succeed: Succeed,
) -> tuple[Database, Salvage | None]:
    """Open the database; where it is damaged and this process holds the sidecar role, salvage it first.

    `access`: with the right key of an encrypted one (`Vault.settled`), so what does not fit it is damage. `thorough`:
    look for damage that opening does not meet; where a write-ahead log was left, that is always done. `destination`:
    where deliveries go. Raises a StorageError.
    """
    if not sidecar:
        return await Database.open(path, access), None
    await asyncio.to_thread(finish_salvage, path)
    try:
        return await _opened(path, access, thorough=thorough), None
    except StorageCorrupt as error:
        of_sqlite = isinstance(error.__cause__, (DBAPIError, *of_damage()))
        if not of_sqlite and not isinstance(error, (FoundDamage, Emptied)):
            raise  # another program's database: SQLite has nothing to say against it
    salvage = await asyncio.to_thread(_salvage, path, access, destination, now, succeed)
    return await Database.open(path, access), salvage


async def _opened(path: Path, access: Access, *, thorough: bool) -> Database:
    looked_at = await asyncio.to_thread(checked_with_its_log, path, access)
    database = await Database.open(path, access)
    try:
        if thorough and not looked_at:
            with legible():
                await database.read(lambda connection: check(connection.connection.driver_connection, path))
    except BaseException:
        await database.close()
        raise
    return database


def _salvage(path: Path, access: Access, destination: str, now: datetime, succeed: Succeed) -> Salvage:
    with told(path):
        path.touch(PRIVATE_FILE)  # one that is gone is kept as an empty one, with the log that it left
    refuse_newer(path, access.key)
    workshop = tempfile.TemporaryDirectory(dir=path.parent, prefix=WORKSHOP)
    with told(path), workshop as folder, _writers_out(path, access):
        copy, new = Path(folder) / path.name, Path(folder) / "new.db"
        for part in ("-wal", ""):  # in this order: a checkpoint in between moves pages from the first to the second
            if _part(path, part).exists():
                shutil.copyfile(_part(path, part), _part(copy, part))
        with translated():
            saved = _rebuilt(copy, new, access, destination)
            former = _succeeding(new, access, saved, succeed)
        synced(new)
        new.replace(_finished(path))
        if os.name != "nt":  # there an open file cannot be renamed: after the lock is gone
            moved_to = _put_in_place(path, now)
    if os.name == "nt":
        moved_to = _put_in_place(path, now)
    return Salvage(moved_to, saved.copied, _lost(saved), former)


def _succeeding(new: Path, access: Access, saved: _Saved, succeed: Succeed) -> str:
    engine = bare_engine(new, access)
    try:
        with transaction(engine, WRITING) as connection:
            return succeed(connection, saved.failed)
    finally:
        engine.dispose()


@contextmanager
def _writers_out(path: Path, access: Access) -> Iterator[None]:
    """Hold the write lock where the damage leaves one to hold. Raises StorageBusy.

    The last connection that closes writes the log into the database, which is kept as it was: so one that cannot write
    is the last. Of an empty one there is nothing to hold, and connecting would delete its log.
    """
    if path.stat().st_size < begun.SMALLEST:
        yield
        return
    timeout = BUSY_TIMEOUT_MS / 1000
    with (
        closing(access.connect(path, timeout=timeout, read_only=True)) as last,
        closing(access.connect(path, timeout=timeout)) as connection,
    ):
        with suppress(*of_damage()):
            last.execute("select 1 from sqlite_master").fetchone()  # opens the log
        try:
            connection.execute("begin immediate")
        except of_damage() as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise StorageBusy("another process writes to the damaged database") from error
        yield


# --- the files ---------------------------------------------------------------------------------------------


def _part(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _finished(path: Path) -> Path:
    return path.with_name(f"{path.name}.{FINISHED}")


def synced(new: Path) -> None:
    """A finished database, private and on the disk."""
    new.chmod(PRIVATE_FILE)
    descriptor = os.open(new, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _put_in_place(path: Path, now: datetime) -> Path:
    """The database first: its WAL must never stand beside another database, which would take it for its own."""
    stamp = f"{path.name}.damaged-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    names = (path.with_name(stamp if number == 1 else f"{stamp}-{number}") for number in itertools.count(1))
    aside = next(name for name in names if not name.exists())
    path.rename(aside)
    _follow(path, aside)
    return aside


def _follow(path: Path, aside: Path) -> None:
    for part in PARTS[1:]:
        if _part(path, part).exists():
            _part(path, part).rename(_part(aside, part))
    for part in PARTS:
        if _part(aside, part).exists():
            _part(aside, part).chmod(PRIVATE_FILE)
    _finished(path).replace(path)


def finish_salvage(path: Path) -> None:
    """End what a start before this one was killed in. A new database beside a present one was not put in place."""
    for workshop in path.parent.glob(f"{WORKSHOP}*"):
        shutil.rmtree(workshop, ignore_errors=True)  # what cannot be removed now goes with the next start
    if path.exists() or not _finished(path).exists():
        return
    with told(path):
        aside = [found for found in path.parent.glob(f"{path.name}.damaged-*Z*") if found.suffix[-4:] not in PARTS]
        unknown = path.with_name(f"{path.name}.damaged-before")
        _follow(path, max(aside, key=lambda found: found.stat().st_ctime_ns, default=unknown))


# --- the rows ----------------------------------------------------------------------------------------------


def make_empty(new: Path, access: Access) -> None:
    """A database with the tables of today and nothing in them."""
    engine = bare_engine(new, access)
    try:
        with transaction(engine, WRITING) as connection:
            migrate(connection)
    finally:
        engine.dispose()


def _rebuilt(copy: Path, new: Path, access: Access, destination: str) -> _Saved:
    """Fill a new database with what can be read in the copy of the damaged one."""
    make_empty(new, access)
    with closing(access.connect(new)) as target, ExitStack() as stack:
        sources = [stack.enter_context(closing(found)) for found in _sources(copy, new, access)]
        target.execute("pragma foreign_keys = on")
        target.execute("begin")
        if not sources:
            copied = {table.name: 0 for table in (events, written)}
            failed, findings = frozenset(t.name for t in (events, written, accounts, watermarks)), 0
        else:
            findings = max(damaged.findings() for damaged in sources)
            copied = copy_rows(sources, target, destination)
            failed = frozenset.intersection(*(frozenset(damaged.failed) for damaged in sources))
        if accounts.name in failed:
            target.execute(CLAIM_UNKNOWN, (UNKNOWN_OWNER,))
        complete(target, destination)
        target.execute("commit")
    return _Saved(copied, failed, findings)


def _sources(copy: Path, new: Path, access: Access) -> list[Damaged]:
    """What rows are read from, the most trustworthy first: see the decisions about a log that was left."""
    page_one, log = _page_one(new.with_name("first.db"), access), _part(copy, "-wal")
    alone = copy.with_name("alone.db")
    if log.exists() and log.stat().st_size:
        shutil.copyfile(copy, alone)  # before anybody opens the copy, and writes the log into it
    both = open_damaged(copy, page_one, access.key)
    without = open_damaged(alone, page_one, access.key) if alone.exists() else None
    if without is None or (both is not None and (without.findings() or not both.findings())):
        if without is not None:
            without.close()
        return [] if both is None else [both]
    if both is not None and _replica_of(without) == _replica_of(both):
        return [without, both]
    if both is not None:
        both.close()
    without.failed.add(LEFT_OUT)
    return [without]


def _replica_of(damaged: Damaged) -> object:
    return next((row["replica_id"] for row in damaged.all_rows(replica)), None)


def _page_one(path: Path, access: Access) -> bytes:
    """Page 1 of a database of the first schema: every later one has these tables on the same pages.

    That of a newer schema does not fit one page, and the pages that it goes on to lie elsewhere in every database. That
    of an encrypted database is decrypted: less fits on such a page, so it is not the same as a plain one's.
    """
    with closing(access.connect(path)) as connection:
        connection.execute("begin")
        for statement in known()[0].statements:
            connection.execute(statement)
        connection.execute("commit")
        page = path.read_bytes()[: int(connection.execute("pragma page_size").fetchone()[0])]
    return page if access.key is None else decrypted(page, b"", access.key)


def _lost(saved: _Saved) -> str:
    tables = ", ".join(sorted(saved.failed)) or "nothing that is known of"
    return f"{tables} (integrity_check: {saved.findings} findings)"
