"""Looks through the log a portion at a time, for damage that breaks no page: an id that its own index denies."""

import asyncio
from functools import partial
from typing import Final

from sync.log import audit_store
from sync.log.log import Log

EVERY: Final = 60.0  # seconds between two portions
PORTION: Final = 2_000  # events: some ten milliseconds

HINT: Final = "`xiaobai-memory events verify` names them all"


class Patrol:
    """That of one profile's log. `warning` says what was found since the start."""

    def __init__(self, log: Log) -> None:
        self.warning: str | None = None
        self._log = log
        self._after = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            await self.look()

    async def look(self) -> None:
        """Look at the next portion. Raises StorageError."""
        looking = partial(audit_store.some_unlike_index, after=self._after, most=PORTION)
        self._after, wrong = await self._log.database.read(looking)
        if wrong:
            self.warning = f"log_damaged: {len(wrong)} events are not what the index says ({wrong[0]}); {HINT}"
