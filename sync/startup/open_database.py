"""Open the local database: unlock it, salvage it if it is damaged, encrypt or decrypt it, establish its replica id."""

import asyncio
import logging
from functools import partial
from pathlib import Path

import msgspec

from sync.clock import Clock
from sync.db.engine import Database
from sync.db.rebuild import convert
from sync.db.rebuild.salvage import SalvageResult, finish_salvage, open_or_salvage
from sync.encryption import emptied_marker, encrypted_marker
from sync.encryption.database_encryption import DatabaseEncryption
from sync.encryption.driver import DatabaseAccess
from sync.errors import StorageError, StorageReadOnly
from sync.jsonl.event_file import find_event_files
from sync.log import store as log_store
from sync.log.model import CLOUD
from sync.settings.settings import Settings
from sync.startup.salvaged_log import check_event_files, complete_log

log = logging.getLogger(__name__)


class OpenedDatabase(msgspec.Struct, frozen=True):
    """The opened database and, if it was salvaged, the result."""

    database: Database
    replica_id: str
    salvage: SalvageResult | None = None
    conversion_error: str = ""  # why it is not encrypted or decrypted as the setting says

    @property
    def former_replica_id(self) -> str | None:
        """The replica that this one replaces since a salvage."""
        return None if self.salvage is None else self.salvage.completion.former_replica_id

    @property
    def warnings(self) -> tuple[str, ...]:
        if self.database.read_only:
            return (f"storage_read_only: {self.database.path}; nothing new is remembered, the cloud is not asked",)
        if self.database.upkeep.is_locked_out:
            return (f"writer_busy: {self.database.path}; this is the last commit, the memory file may be behind",)
        waits = (f"encryption_waits: {self.conversion_error}",) if self.conversion_error else ()
        if self.salvage is None:
            return waits
        files = self.salvage.completion.event_files
        kept = f"; its JSONL files are kept in {files}" if files else ""
        return (
            f"database_salvaged: {self.salvage.moved_to}; lost: {self.salvage.lost}{kept}; {self.salvage.cause}",
            *waits,
        )


def has_begun(settings: Settings, database: Path) -> bool:
    """Whether a database had content, by the files beside it or its event files; the marker then says so too.

    Every process asks before it opens one. Raises StorageError.
    """
    if emptied_marker.has_begun(database):
        return True
    if next(find_event_files(settings.jsonl_root / database.parent.name), None) is None:
        return False
    emptied_marker.write_marker(database)
    return True


async def open_database(
    path: Path, encryption: DatabaseEncryption, settings: Settings, clock: Clock, *, sidecar: bool, serving: bool
) -> OpenedDatabase:
    """Open or create the database; the caller closes it. Raises a StorageError, and then nothing is open.

    `sidecar`: this process holds the lock, so it may salvage a damaged database and convert one. `serving`: the process
    is long-lived, so every page is checked and a read-only database is an error; a command still reads from one.
    """
    folder = settings.jsonl_root / path.parent.name
    if sidecar:
        await asyncio.to_thread(finish_salvage, path)
    await asyncio.to_thread(has_begun, settings, path)
    access = await asyncio.to_thread(encryption.resolve_access, path)
    now, unconverted, complete = clock.now(), "", partial(complete_log, settings, clock, folder)
    try:
        database, salvage = await open_or_salvage(
            path,
            access,
            sidecar=sidecar,
            thorough=serving,
            destination=CLOUD,
            now=now,
            complete_log=complete,
            check_log=partial(check_event_files, folder),
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
        replica_id = await database.read(log_store.existing_replica_id)
        replica_id = replica_id or await database.write(log_store.ensure_replica_id, clock)
    except BaseException:
        await database.close()
        raise
    if salvage is not None:
        copied = ", ".join(f"{count} {table}" for table, count in salvage.copied.items())
        result = salvage.moved_to, copied, salvage.lost
        log.error("the database was damaged and is kept at %s; saved: %s; lost: %s", *result)
    return OpenedDatabase(database, replica_id, salvage, unconverted)


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
