"""The event files of one profile: the JSONL export, sessions, imports, and their background jobs."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from pathlib import Path

import msgspec

from sync.errors import SettingsError, StorageError
from sync.jsonl.importer import EventFileImporter
from sync.jsonl.projection import JsonlProjection, RebuiltJson
from sync.log.projections.external import ExternalProjectionRunner, OnProgress
from sync.log.sessions.tracker import SessionTracker
from sync.runtime.supervision import supervise
from sync.settings.data_dir import ENV_PREFIX

log = logging.getLogger(__name__)


class EventFilesService(msgspec.Struct, frozen=True):
    """One profile's event files. `legacy_folders` may hold files of an earlier installation.

    `are_written`: otherwise the JSONL files are removed.
    """

    projection: JsonlProjection
    runner: ExternalProjectionRunner[RebuiltJson]
    sessions: SessionTracker
    importer: EventFileImporter
    legacy_folders: Sequence[Path]
    are_written: bool = True

    def jobs(self) -> list[Coroutine[None, None, None]]:
        """Return the background jobs of a sidecar."""
        return [supervise("event files", self._run_files), supervise("sessions", self.sessions.run)]

    async def write_pending(self) -> None:
        """Write one batch into the files, for a command or a sidecar that exits; the next process writes the rest."""
        await self._write(batches=1)

    async def write_all(self, timeout: float) -> bool:
        """Write all that is pending; return whether that was done within `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                return await self._write()
        except TimeoutError:
            return False

    async def rebuild(self, on_progress: OnProgress | None) -> RebuiltJson:
        """Write the files again from the log. Raises SettingsError if there are to be none."""
        if not self.are_written:
            hint = f"Set {ENV_PREFIX}EVENTS_DIR to the folder where the plain files may lie."
            raise SettingsError("the log is encrypted at rest, so there are no JSONL files", hint=hint)
        return await self.runner.rebuild(on_progress)

    async def _write(self, batches: int | None = None) -> bool:
        """Whether the files were written, or removed; a failure is logged."""
        try:
            await (self.runner.catch_up(batches=batches) if self.are_written else self.projection.remove_all())
        except StorageError as error:
            log.warning("the files of events could not be written: %s. %s", error.message, error.hint or "")
            return False
        return True

    async def _run_files(self) -> None:
        try:
            imported = await self.importer.import_legacy(self.legacy_folders)
        except StorageError as error:
            log.warning("what an earlier installation left could not be read: %s", error.kind)
        else:
            if imported:
                log.info("%d events of an earlier installation were taken in", imported)
        if self.are_written:
            await self.runner.run()
        await self.projection.remove_all()
        await asyncio.Event().wait()  # nothing more to do; a job that ends is started again
