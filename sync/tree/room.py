"""The event store of seed 002 as one thing: the tree, the sessions, what is imported, and the jobs that keep them."""

import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path

from sync.errors import StorageError
from sync.jobs import kept_up
from sync.log.ending import Sessions
from sync.tree.importing import Importer
from sync.tree.tree import Tree

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EventStore:
    """One profile's. `earlier`: folders where an earlier installation may have left something."""

    tree: Tree
    sessions: Sessions
    importer: Importer
    earlier: Sequence[Path]

    def jobs(self) -> list[Coroutine[None, None, None]]:
        """What a sidecar does for it."""
        return [kept_up("event files", self._keep_files), kept_up("sessions", self.sessions.keep_ending)]

    async def settle(self) -> None:
        """One batch into the files, for a command that holds the role or a sidecar that leaves; the rest later."""
        try:
            await self.tree.catch_up(batches=1)
        except StorageError as error:
            log.warning("the files of events could not be written: %s. %s", error.message, error.hint or "")

    async def _keep_files(self) -> None:
        try:
            taken = await self.importer.take_earlier(self.earlier)
        except StorageError as error:
            log.warning("what an earlier installation left could not be read: %s", error.kind)
        else:
            if taken:
                log.info("%d events of an earlier installation were taken in", taken)
        await self.tree.keep_up()
