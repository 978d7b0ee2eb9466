"""The sidecar lock, which one process of a data directory holds at a time."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Final

from filelock import FileLock, Timeout

from sync.accounts.profiles import acquire_sidecar_lock, write_sidecar_pid
from sync.errors import AlreadyRunning, StorageReadOnly
from sync.settings.settings import Settings
from sync.system.files import make_private_folder

RETRY_INTERVAL: Final = 0.05  # seconds
HELPER_TIMEOUT: Final = 2.0  # seconds that a starting sidecar waits for a command that holds the lock


@contextmanager
def hold_sidecar_lock(settings: Settings, *, timeout: float = HELPER_TIMEOUT) -> Iterator[FileLock]:
    """Hold the lock, for a process that opens several applications in turn. Raises AlreadyRunning."""
    make_private_folder(settings.data_dir)
    lock = acquire_sidecar_lock(settings.data_dir, timeout=timeout)
    write_sidecar_pid(settings.data_dir)
    try:
        yield lock
    finally:
        lock.release()


@asynccontextmanager
async def wait_for_sidecar_lock(settings: Settings, cancelled: asyncio.Event) -> AsyncIterator[FileLock]:
    """`hold_sidecar_lock` as soon as its holder releases it, without blocking the event loop.

    Raises AlreadyRunning if that takes too long or `cancelled` is set.
    """
    with ExitStack() as stack:
        for left in range(round(HELPER_TIMEOUT / RETRY_INTERVAL), -1, -1):
            try:
                lock = stack.enter_context(hold_sidecar_lock(settings, timeout=0.0))
                break
            except AlreadyRunning:
                if left == 0 or cancelled.is_set():
                    raise
            with suppress(TimeoutError):
                await asyncio.wait_for(cancelled.wait(), RETRY_INTERVAL)
        yield lock


@contextmanager
def try_sidecar_lock(settings: Settings, *, required: bool) -> Iterator[FileLock | None]:
    """The lock; if another process holds it: None, or AlreadyRunning, StorageReadOnly if `required`."""
    with ExitStack() as stack:
        try:
            lock: FileLock | None = stack.enter_context(
                hold_sidecar_lock(settings, timeout=HELPER_TIMEOUT if required else 0.0)
            )
        except (AlreadyRunning, StorageReadOnly):
            if required:
                raise
            lock = None
        yield lock


def is_sidecar_lock_free(settings: Settings) -> bool:
    """Whether no process holds the lock now."""
    with try_sidecar_lock(settings, required=False) as lock:
        return lock is not None


def reacquire_if_free(lock: FileLock) -> bool:
    """Acquire the lock again if it is free; return whether this process holds it."""
    with suppress(Timeout):
        if not lock.is_locked:
            lock.acquire(timeout=0)
    return lock.is_locked
