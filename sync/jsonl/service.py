"""The event store of seed 002 as one thing: the tree, the sessions, what is imported, and the jobs that keep them."""

import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path

from sync.errors import StorageError
from sync.jsonl.importer import EventFileImporter
from sync.jsonl.projection import JsonlProjection
from sync.log.sessions.tracker import SessionTracker
from sync.runtime.supervision import supervise

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EventFilesService:
    """One profile's. `earlier`: folders where an earlier installation may have left something."""

    projection: JsonlProjection
    sessions: SessionTracker
    importer: EventFileImporter
    legacy_folders: Sequence[Path]

    def jobs(self) -> list[Coroutine[None, None, None]]:
        """What a sidecar does for it."""
        return [supervise("event files", self._run_files), supervise("sessions", self.sessions.run)]

    async def write_pending(self) -> None:
        """One batch into the files, for a command that holds the role or a sidecar that leaves; the rest later."""
        try:
            await self.projection.catch_up(batches=1)
        except StorageError as error:
            log.warning("the files of events could not be written: %s. %s", error.message, error.hint or "")

    async def _run_files(self) -> None:
        try:
            taken = await self.importer.import_legacy(self.legacy_folders)
        except StorageError as error:
            log.warning("what an earlier installation left could not be read: %s", error.kind)
        else:
            if taken:
                log.info("%d events of an earlier installation were taken in", taken)
        await self.projection.run()
