"""One local database as a replica of the memory: opened, salvaged where it was damaged, known by its id.

It is encrypted, or decrypted, where it is not yet as the setting wants it.
Above the log, the cloud and the document, because a salvage that costs the database its marks concerns all three: the
log's numbers are no longer safe, the server has to hear whom we replace, and the file's lines are known already.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from sync.clock import Clock, milliseconds
from sync.cloud import store as cloud_store
from sync.db import conversion
from sync.db.derived import mend
from sync.db.engine import Database
from sync.db.salvage import Salvage, finish_salvage, open_or_salvage
from sync.db.soundness import READ_BYTES
from sync.db.tables import FOLLOWED, RECOVERY, events, watermarks, written
from sync.errors import StorageCorrupt, StorageError, StorageReadOnly
from sync.files import told
from sync.log import store as log_store
from sync.log.model import CLOUD
from sync.profiles import change_installation
from sync.settings import Settings
from sync.tree.files import copy_event_files
from sync.vault import mark
from sync.vault.access import Access
from sync.vault.vault import Vault

UNFINISHED: Final = ".events.damaged"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Replica:
    """The opened database and, where it had to be salvaged, what became of it."""

    database: Database
    replica_id: str
    salvage: Salvage | None = None
    unconverted: str = ""  # why it is not yet encrypted, or still is, against the setting
    kept_files: Path | None = None  # the files of the events as they were, where a salvage lost some

    @property
    def former(self) -> str | None:
        """The replica whose place this one takes since a salvage."""
        return None if self.salvage is None else self.salvage.former

    @property
    def warnings(self) -> tuple[str, ...]:
        if self.database.read_only:
            return (f"storage_read_only: {self.database.path}; nothing new is remembered, the cloud is not asked",)
        waits = (f"encryption_waits: {self.unconverted}",) if self.unconverted else ()
        if self.salvage is None:
            return waits
        kept = f"; its JSONL files are kept in {self.kept_files}" if self.kept_files else ""
        return (f"database_salvaged: {self.salvage.moved_to}; lost: {self.salvage.lost}{kept}", *waits)


@dataclass(frozen=True, slots=True)
class _Files:
    """Where the files of the events lie, and where they are kept when the log has lost what they say.

    Among them, not beside the database: that may be encrypted, and they are plain.
    """

    tree: Path
    kept: Path

    @classmethod
    def of(cls, tree: Path, now: datetime) -> "_Files":
        tree = Path(os.path.realpath(tree))
        return cls(tree, tree / f"events.damaged-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}")

    def keep(self) -> None:
        """Copy them, whole or not at all. Raises StorageError."""
        unfinished = self.tree / UNFINISHED
        with told(unfinished):
            shutil.rmtree(unfinished, ignore_errors=True)  # of a start that was killed
            if not self.kept.exists() and copy_event_files(self.tree, unfinished):
                unfinished.rename(self.kept)


async def open_replica(
    path: Path, vault: Vault, settings: Settings, clock: Clock, *, sidecar: bool, serving: bool
) -> Replica:
    """Open or create the database; whoever calls closes it. Raises a StorageError, and then nothing is open.

    `sidecar`: we hold the role, so a damaged database may be moved aside, and one converted that the setting wants
    otherwise. `serving`: for long, so every page is looked at, and a database that may not be written is an error; a
    command still reads from one.
    """
    if sidecar:
        await asyncio.to_thread(finish_salvage, path)
    access = await asyncio.to_thread(vault.settled, path)
    now, unconverted = clock.now(), ""
    files = _Files.of(settings.tree_base / path.parent.name, now)
    succeed = partial(_succeed, settings, clock, files)
    try:
        database, salvage = await open_or_salvage(
            path, access, sidecar=sidecar, thorough=serving, destination=CLOUD, now=now, succeed=succeed
        )
    except StorageReadOnly:
        if serving or not path.exists():
            raise
        database, salvage = await Database.open_to_read(path, access), None
    else:
        if sidecar:
            database, unconverted = await _as_wanted(database, access, vault)
    try:
        if database.read_only:
            return Replica(database, await database.read(log_store.replica_id))
        await _mend(database, sidecar=sidecar)
        replica_id = await database.write(lambda connection: log_store.open_replica(connection, clock))
    except BaseException:
        await database.close()
        raise
    if salvage is not None:
        copied = ", ".join(f"{count} {table}" for table, count in salvage.copied.items())
        said = salvage.moved_to, copied, salvage.lost
        log.error("the database was damaged and is kept at %s; saved: %s; lost: %s", *said)
    kept_files = files.kept if salvage is not None and files.kept.exists() else None
    return Replica(database, replica_id, salvage, unconverted, kept_files)


async def _mend(database: Database, *, sidecar: bool) -> None:
    """Let the database drop derived rows that fail a reader; and those that fail nobody, as far as a start can look."""
    database.menders.works.append(partial(mend, destination=CLOUD, whole=True))
    if sidecar:
        try:
            if database.path.stat().st_size <= READ_BYTES:
                await database.mend()
            else:
                await database.write(partial(mend, destination=CLOUD, whole=False))
        except StorageCorrupt:  # whoever needs that page says so, and the next sidecar salvages
            log.warning("derived data could not be looked through")


async def _as_wanted(database: Database, access: Access, vault: Vault) -> tuple[Database, str]:
    """The database as the setting wants it, and why not where that has to wait for another start."""
    path = database.path
    await asyncio.to_thread(conversion.tidy, path)
    if vault.encrypts == (access.key is not None):
        if access.key is None and mark.is_set(path):
            await asyncio.to_thread(mark.remove, path)  # decrypted by a start that was killed then
        return database, ""
    await database.close()
    unconverted = ""
    try:
        access = await asyncio.to_thread(conversion.convert, path, access, vault)
        log.info("the database was %s", "encrypted" if access.key else "decrypted")
    except StorageError as error:
        unconverted = f"{error.kind}: {error.message}"
        log.warning("the database is left as it is (%s)", error.kind)
    return await Database.open(path, access), unconverted


def _succeed(settings: Settings, clock: Clock, files: _Files, connection: Connection, lost: AbstractSet[str]) -> str:
    """Let a salvaged database go on as a new replica: the damaged one may have used numbers that nobody remembers.

    Whom it replaces is noted before it is in place: the server may not be asked before another start. Nor may the files
    of the events be made anew from a log that has lost some before what they say is kept.
    """
    if events.name in lost:
        files.keep()
    former = log_store.open_replica(connection, clock)
    log_store.begin_views_anew(connection)
    if lost & {events.name, written.name, watermarks.name}:
        log_store.set_watermark(connection, FOLLOWED, 0, clock)
        log_store.set_watermark(connection, RECOVERY, milliseconds(clock.now()), clock)
    cloud_store.become_new_replica(connection, clock)
    change_installation(settings.data_dir, lambda now: replace(now, former=former))
    return former
