"""What nobody else may do meanwhile: one at a time, among tasks and among processes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from filelock import AsyncFileLock, Timeout

from sync.errors import XiaobaiError
from sync.files import told


class Turns:
    """Whoever comes waits for those before him. The lock dies with its holder."""

    def __init__(self, lock: Path, *, patience: float, late: Callable[[], XiaobaiError]) -> None:
        """`patience`: seconds to wait for another process; `late`: what is raised then."""
        self._path = lock
        self._lock = AsyncFileLock(lock, timeout=patience, mode=0o600)
        self._turn = asyncio.Lock()
        self._late = late

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """The right, for the time of a block. Raises StorageError where the lock cannot be written."""
        async with self._turn:
            with told(self._path):
                try:
                    await self._lock.acquire()
                except Timeout as error:  # an OSError to Python, so it is met first
                    raise self._late() from error
            try:
                yield
            finally:
                await self._lock.release()
