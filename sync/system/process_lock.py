"""A lock that excludes other tasks and other processes. The operating system frees it when its holder dies."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from filelock import AsyncFileLock, FileLock, Timeout

from sync.errors import XiaobaiError
from sync.system.files import PRIVATE_FILE, translate_os_errors


class ProcessLock:
    """One lock file. `hold` is for tasks of an event loop, `hold_blocking` and `acquire` are for threads."""

    def __init__(self, path: Path, *, timeout: float, timeout_error: Callable[[], XiaobaiError]) -> None:
        """`timeout`: seconds to wait for another process; then `timeout_error()` is raised."""
        self._path = path
        self._timeout = timeout
        self._timeout_error = timeout_error
        self._task_lock = asyncio.Lock()

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Hold the lock, after the tasks that asked before. Raises StorageError, or the timeout's error."""
        async with self._task_lock:
            lock = AsyncFileLock(self._path, timeout=self._timeout, mode=PRIVATE_FILE)
            with self._translate_errors():
                await lock.acquire()
            try:
                yield
            finally:
                await lock.release()

    @contextmanager
    def hold_blocking(self) -> Iterator[None]:
        """Hold the lock; the thread waits. Raises StorageError, or the timeout's error."""
        lock = self.acquire()
        try:
            yield
        finally:
            lock.release()

    def acquire(self) -> FileLock:
        """Acquire the lock for a caller that releases it. Raises StorageError, or the timeout's error."""
        lock = FileLock(self._path, timeout=self._timeout, mode=PRIVATE_FILE)
        with self._translate_errors():
            lock.acquire()
        return lock

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        with translate_os_errors(self._path):
            try:
                yield
            except Timeout as error:  # a subclass of OSError, so it comes first
                raise self._timeout_error() from error
