"""Looks through the log a portion at a time, for damage that breaks no page: an id that its own index denies."""

import asyncio
from functools import partial
from typing import Final

from sync.log import integrity_store
from sync.log.log import EventLog

INTERVAL: Final = 60.0  # seconds between two portions
BATCH_EVENTS: Final = 2_000  # events: some ten milliseconds

HINT: Final = "`xiaobai-memory events verify` names them all"


class LogScrubber:
    """That of one profile's log. `warning` says what was found since the start."""

    def __init__(self, log: EventLog) -> None:
        self.warning: str | None = None
        self._log = log
        self._after = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            await self.check_next_batch()

    async def check_next_batch(self) -> None:
        """Look at the next portion. Raises StorageError."""
        looking = partial(integrity_store.check_index_batch, after=self._after, limit=BATCH_EVENTS)
        self._after, wrong = await self._log.database.read(looking)
        if wrong:
            self.warning = f"log_damaged: {len(wrong)} events are not what the index says ({wrong[0]}); {HINT}"
