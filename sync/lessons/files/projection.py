"""The files of the lessons as a projection of the log: written after a change by any process.

Without lessons and without files nothing is loaded.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sync.log.event_types import LESSON_COUNTED
from sync.log.log import EventLog
from sync.log.model import EventPage
from sync.log.projections.external import OnProgress
from sync.log.projections.registry import LESSON_FILES, ProjectionEntry

if TYPE_CHECKING:  # loaded at its first use
    from sync.lessons.files.live_view import LessonFiles

RULES_VERSION: Final = 1
WRITE_INTERVAL: Final = 2.0  # seconds; a busy agent's hints are counted in the files together


class LessonFilesProjection:
    """Writes the files of one profile's lessons, and reads edits by hand before it begins."""

    entry: ProjectionEntry = LESSON_FILES
    rules_version: int = RULES_VERSION

    def __init__(self, files: "Callable[[], LessonFiles]", folder: Path, log: EventLog) -> None:
        self._files = files
        self._folder = folder
        self._log = log

    async def is_missing(self) -> bool:
        return not self._folder.is_dir() and await self._has_events()

    async def repair(self, offset: int) -> int:  # noqa: ARG002 - the manifest of the files says what they hold
        """Read edits by hand. Raises StorageError."""
        if self._folder.is_dir():
            await self._files().read_edits()
        return 0

    async def rebuild(self, head: int, on_progress: OnProgress | None) -> None:  # noqa: ARG002 - all or nothing
        """Write all files. Raises StorageError."""
        if await self._has_events():
            await self._files().reconcile()
        else:
            await self.repair(0)

    async def apply(self, page: EventPage) -> None:
        """Write the files that differ; they do not say how often a lesson was shown. Raises StorageError."""
        shows = (event.type == LESSON_COUNTED and event.payload.get("counter") == "shown" for event in page.events)
        if not all(shows) and await self._has_events():
            files = self._files()
            if not await files.is_current():  # else the command that recorded the events has written them
                await files.reconcile()

    async def _has_events(self) -> bool:
        return bool(await self._log.newest_position(self.entry.event_types))
