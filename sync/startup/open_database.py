"""Open the local database: unlock it, salvage it if it is damaged, encrypt or decrypt it, establish its replica id.

It is above log, cloud and document, because a salvage concerns all three: the log's numbers are no longer safe, the
server must learn which replica is replaced, and the file's lines are known already.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.accounts.profiles import change_installation
from sync.clock import Clock, to_unix_ms
from sync.cloud import replication_store as cloud_store
from sync.db.engine import Database, Transaction
from sync.db.integrity import READ_ALL_MAX_BYTES
from sync.db.rebuild import convert
from sync.db.rebuild.derived_rows import repair_derived_rows
from sync.db.rebuild.salvage import SalvageResult, finish_salvage, open_or_salvage
from sync.db.schema import DOCUMENT_LOG_OFFSET, RECOVERY_STARTED, events, watermarks, written
from sync.encryption import encrypted_marker
from sync.encryption.database_encryption import DatabaseEncryption
from sync.encryption.driver import DatabaseAccess
from sync.errors import StorageCorrupt, StorageError, StorageReadOnly
from sync.jsonl.event_file import copy_event_files
from sync.log import store as log_store
from sync.log.model import CLOUD
from sync.settings.settings import Settings
from sync.system.files import translate_os_errors

UNFINISHED_BACKUP: Final = ".events.damaged"

log = logging.getLogger(__name__)


class OpenedDatabase(msgspec.Struct, frozen=True):
    """The opened database and, if it was salvaged, the result."""

    database: Database
    replica_id: str
    salvage: SalvageResult | None = None
    conversion_error: str = ""  # why it is not encrypted or decrypted as the setting says
    event_files_backup: Path | None = None  # the event files before a salvage that lost events

    @property
    def former_replica_id(self) -> str | None:
        """The replica that this one replaces since a salvage."""
        return None if self.salvage is None else self.salvage.former_replica_id

    @property
    def warnings(self) -> tuple[str, ...]:
        if self.database.read_only:
            return (f"storage_read_only: {self.database.path}; nothing new is remembered, the cloud is not asked",)
        if self.database.upkeep.is_locked_out:
            return (f"writer_busy: {self.database.path}; this is the last commit, the memory file may be behind",)
        waits = (f"encryption_waits: {self.conversion_error}",) if self.conversion_error else ()
        if self.salvage is None:
            return waits
        kept = f"; its JSONL files are kept in {self.event_files_backup}" if self.event_files_backup else ""
        return (f"database_salvaged: {self.salvage.moved_to}; lost: {self.salvage.lost}{kept}", *waits)


class _EventFilesBackup(msgspec.Struct, frozen=True):
    """The event files' folder, and the copy that is made when the log has lost events.

    The copy is in that folder, not beside the database: the database may be encrypted, and the files are plain.
    """

    folder: Path
    backup: Path

    @classmethod
    def of(cls, folder: Path, now: datetime) -> "_EventFilesBackup":
        folder = Path(os.path.realpath(folder))
        return cls(folder, folder / f"events.damaged-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}")

    def create(self) -> None:
        """Copy all of them or none. Raises StorageError."""
        unfinished = self.folder / UNFINISHED_BACKUP
        with translate_os_errors(unfinished):
            shutil.rmtree(unfinished, ignore_errors=True)  # of a start that was killed
            if not self.backup.exists() and copy_event_files(self.folder, unfinished):
                unfinished.rename(self.backup)


async def open_database(
    path: Path, encryption: DatabaseEncryption, settings: Settings, clock: Clock, *, sidecar: bool, serving: bool
) -> OpenedDatabase:
    """Open or create the database; the caller closes it. Raises a StorageError, and then nothing is open.

    `sidecar`: this process holds the lock, so it may salvage a damaged database and convert one. `serving`: the process
    is long-lived, so every page is checked and a read-only database is an error; a command still reads from one.
    """
    if sidecar:
        await asyncio.to_thread(finish_salvage, path)
    access = await asyncio.to_thread(encryption.resolve_access, path)
    now, unconverted = clock.now(), ""
    files = _EventFilesBackup.of(settings.jsonl_root / path.parent.name, now)
    fork_replica = partial(_fork_replica, settings, clock, files)
    try:
        database, salvage = await open_or_salvage(
            path, access, sidecar=sidecar, thorough=serving, destination=CLOUD, now=now, fork_replica=fork_replica
        )
    except StorageReadOnly:
        if serving or not path.exists():
            raise
        database, salvage = await Database.open_read_only(path, access), None
    else:
        if sidecar:
            database, unconverted = await _convert_if_needed(database, access, encryption)
    try:
        if database.read_only:
            return OpenedDatabase(database, await database.read(log_store.existing_replica_id))
        await _repair_derived(database, sidecar=sidecar)
        replica_id = await database.read(log_store.existing_replica_id)
        replica_id = replica_id or await database.write(log_store.ensure_replica_id, clock)
    except BaseException:
        await database.close()
        raise
    if salvage is not None:
        copied = ", ".join(f"{count} {table}" for table, count in salvage.copied.items())
        result = salvage.moved_to, copied, salvage.lost
        log.error("the database was damaged and is kept at %s; saved: %s; lost: %s", *result)
    backup = files.backup if salvage is not None and files.backup.exists() else None
    return OpenedDatabase(database, replica_id, salvage, unconverted, backup)


async def _repair_derived(database: Database, *, sidecar: bool) -> None:
    """Repair derived rows when a read fails on them, and now as far as a start can check."""
    database.row_repairs.functions.append(partial(repair_derived_rows, destination=CLOUD, thorough=True))
    if sidecar:
        try:
            if database.path.stat().st_size <= READ_ALL_MAX_BYTES:
                await database.repair_derived_rows()
            else:
                await database.write(repair_derived_rows, destination=CLOUD, thorough=False)
        except StorageCorrupt:  # the first read of that page raises, and the next sidecar salvages
            log.warning("derived data could not be looked through")


async def _convert_if_needed(
    database: Database, access: DatabaseAccess, encryption: DatabaseEncryption
) -> tuple[Database, str]:
    """Convert the database as the setting says; return it, and why that has to wait for another start."""
    path = database.path
    await asyncio.to_thread(convert.remove_half_converted, path)
    if encryption.encrypts == (access.key is not None):
        if access.key is None and encrypted_marker.is_marked(path):
            await asyncio.to_thread(encrypted_marker.remove_marker, path)  # a start that was killed had decrypted it
        return database, ""
    await database.close()
    unconverted = ""
    try:
        access = await asyncio.to_thread(convert.convert_database, path, access, encryption)
        log.info("the database was %s", "encrypted" if access.key else "decrypted")
    except StorageError as error:
        unconverted = f"{error.kind}: {error.message}"
        log.warning("the database is left as it is (%s)", error.kind)
    return await Database.open(path, access), unconverted


def _fork_replica(
    settings: Settings, clock: Clock, backup: _EventFilesBackup, connection: Transaction, lost_tables: AbstractSet[str]
) -> str:
    """Continue a salvaged database as a new replica: the damaged one may have used numbers that are not recorded.

    The replaced replica is stored first, because the server may only be reachable at a later start. The event files are
    copied before they can be rebuilt from a log that has lost events.
    """
    if events.name in lost_tables:
        backup.create()
    former = log_store.ensure_replica_id(connection, clock)
    log_store.reset_projections(connection)
    if lost_tables & {events.name, written.name, watermarks.name}:
        log_store.set_watermark(connection, DOCUMENT_LOG_OFFSET, 0, clock)
        log_store.set_watermark(connection, RECOVERY_STARTED, to_unix_ms(clock.now()), clock)
    cloud_store.fork_replica(connection, clock)
    change_installation(settings.data_dir, lambda now: replace(now, former=former))
    return former
