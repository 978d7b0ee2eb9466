"""What nobody else may do meanwhile: one at a time, among tasks and among processes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from filelock import AsyncFileLock, Timeout

from sync.errors import XiaobaiError
from sync.system.files import translate_os_errors


class ProcessLock:
    """Whoever comes waits for those before him. The lock dies with its holder."""

    def __init__(self, path: Path, *, timeout: float, timeout_error: Callable[[], XiaobaiError]) -> None:
        """`patience`: seconds to wait for another process; `late`: what is raised then."""
        self._path = path
        self._file_lock = AsyncFileLock(path, timeout=timeout, mode=0o600)
        self._task_lock = asyncio.Lock()
        self._timeout_error = timeout_error

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """The right, for the time of a block. Raises StorageError where the lock cannot be written."""
        async with self._task_lock:
            with translate_os_errors(self._path):
                try:
                    await self._file_lock.acquire()
                except Timeout as error:  # an OSError to Python, so it is met first
                    raise self._timeout_error() from error
            try:
                yield
            finally:
                await self._file_lock.release()
