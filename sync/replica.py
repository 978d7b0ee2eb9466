"""One local database as a replica of the memory: opened, salvaged where it was damaged, known by its id.

Above the log, the cloud and the document, because a salvage that costs the database its marks concerns all three: the
log's numbers are no longer safe, the server has to hear whom we replace, and the file's lines are known already.
"""

import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from sync.clock import Clock
from sync.cloud import store as cloud_store
from sync.db.engine import Database
from sync.db.salvage import Salvage, open_or_salvage
from sync.document.ledger import FOLLOWER
from sync.errors import StorageReadOnly
from sync.log import store as log_store
from sync.log.model import CLOUD
from sync.profiles import change_installation
from sync.settings import Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Replica:
    """The opened database and, where it had to be salvaged, what became of it."""

    database: Database
    replica_id: str
    salvage: Salvage | None = None

    @property
    def former(self) -> str | None:
        """The replica whose place this one takes since a salvage."""
        return None if self.salvage is None else self.salvage.former

    @property
    def warnings(self) -> tuple[str, ...]:
        if self.database.read_only:
            return (f"storage_read_only: {self.database.path}; nothing new is remembered, the cloud is not asked",)
        if self.salvage is None:
            return ()
        return (f"database_salvaged: {self.salvage.moved_to}; lost: {self.salvage.lost}",)


async def open_replica(path: Path, settings: Settings, clock: Clock, *, sidecar: bool, serving: bool) -> Replica:
    """Open or create the database; whoever calls closes it. Raises a StorageError, and then nothing is open.

    `sidecar`: we hold the role, so a damaged database may be moved aside. `serving`: for long, so every page is looked
    at, and a database that may not be written is an error; a command still reads from one.
    """
    succeed = partial(_succeed, settings, clock)
    try:
        database, salvage = await open_or_salvage(
            path, sidecar=sidecar, thorough=serving, destination=CLOUD, now=clock.now(), succeed=succeed
        )
    except StorageReadOnly:
        if serving or not path.exists():
            raise
        database, salvage = await Database.open_to_read(path), None
    try:
        if database.read_only:
            return Replica(database, await database.read(log_store.replica_id))
        replica_id = await database.write(lambda connection: log_store.open_replica(connection, clock))
    except BaseException:
        await database.close()
        raise
    if salvage is not None:
        copied = ", ".join(f"{count} {table}" for table, count in salvage.copied.items())
        kept = salvage.moved_to
        log.error("the database was damaged and is kept at %s; saved: %s; lost: %s", kept, copied, salvage.lost)
    return Replica(database, replica_id, salvage)


def _succeed(settings: Settings, clock: Clock, connection: Connection, marks_lost: bool) -> str:
    """Let a salvaged database go on as a new replica: the damaged one may have used numbers that nobody remembers.

    Whom it replaces is noted before it is in place: the server may not be asked before another start.
    """
    former = log_store.open_replica(connection, clock)
    log_store.begin_views_anew(connection)
    if marks_lost and settings.memory_file.exists():  # its lines came from the log: none is added twice
        log_store.set_watermark(connection, FOLLOWER, log_store.newest_position(connection), clock)
    cloud_store.become_new_replica(connection, clock)
    change_installation(settings.data_dir, lambda now: replace(now, former=former))
    return former
