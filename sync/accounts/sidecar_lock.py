"""The role of the sidecar, which one process of a data directory has at a time."""

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
HELPER_TIMEOUT: Final = 2.0  # seconds a starting sidecar waits for a command that does its work just now


@contextmanager
def hold_sidecar_lock(settings: Settings, *, timeout: float = HELPER_TIMEOUT) -> Iterator[FileLock]:
    """The role of the sidecar, for one that opens several applications after each other. AlreadyRunning."""
    make_private_folder(settings.data_dir)
    role = acquire_sidecar_lock(settings.data_dir, timeout=timeout)
    write_sidecar_pid(settings.data_dir)
    try:
        yield role
    finally:
        role.release()


@asynccontextmanager
async def wait_for_sidecar_lock(settings: Settings, cancelled: asyncio.Event) -> AsyncIterator[FileLock]:
    """`hold_sidecar_lock` as soon as the process that has it releases it; the event loop turns meanwhile.

    Raises AlreadyRunning if that takes too long, or if nobody waits any more (`over`).
    """
    with ExitStack() as stack:
        for left in range(round(HELPER_TIMEOUT / RETRY_INTERVAL), -1, -1):
            try:
                role = stack.enter_context(hold_sidecar_lock(settings, timeout=0.0))
                break
            except AlreadyRunning:
                if left == 0 or cancelled.is_set():
                    raise
            with suppress(TimeoutError):
                await asyncio.wait_for(cancelled.wait(), RETRY_INTERVAL)
        yield role


@contextmanager
def try_sidecar_lock(settings: Settings, *, required: bool) -> Iterator[FileLock | None]:
    """The role, or None where another process has it; `needed`: AlreadyRunning, StorageReadOnly then."""
    with ExitStack() as stack:
        try:
            held = stack.enter_context(hold_sidecar_lock(settings, timeout=HELPER_TIMEOUT if required else 0.0))
        except (AlreadyRunning, StorageReadOnly):
            if required:
                raise
            held = None
        yield held


def is_sidecar_lock_free(settings: Settings) -> bool:
    """Whether nobody has the role at this moment."""
    with try_sidecar_lock(settings, required=False) as held:
        return held is not None


def reacquire_if_free(lock: FileLock) -> bool:
    """Whether we have the role, taken again just now if it is free."""
    with suppress(Timeout):
        if not lock.is_locked:
            lock.acquire(timeout=0)
    return lock.is_locked
