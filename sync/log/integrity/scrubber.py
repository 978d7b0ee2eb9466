"""Scan the log in the background for damage that breaks no page: an id that its own index denies."""

import asyncio
from functools import partial
from typing import Final

from sync.db.integrity import request_full_check
from sync.log.integrity import store as integrity_store
from sync.log.log import EventLog

INTERVAL: Final = 60.0  # seconds between two batches
BATCH_EVENTS: Final = 2_000  # some ten milliseconds

HINT: Final = "the next start of the sidecar fetches them again; `xiaobai-memory events verify` names them"


class LogScrubber:
    """Scans one profile's log. `warning` describes the damage found since the start."""

    def __init__(self, log: EventLog) -> None:
        self.warning: str | None = None
        self._log = log
        self._after = 0

    async def run(self) -> None:
        """Scan until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            await self.check_next_batch()

    async def check_next_batch(self) -> None:
        """Check the next batch. Raises StorageError."""
        check = partial(integrity_store.check_index_batch, after=self._after, limit=BATCH_EVENTS)
        self._after, wrong_ids = await self._log.database.read(check)
        if wrong_ids:
            await asyncio.to_thread(request_full_check, self._log.database.path)
            self.warning = f"log_damaged: {len(wrong_ids)} events are not what the index says ({wrong_ids[0]}); {HINT}"
