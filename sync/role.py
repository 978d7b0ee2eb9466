"""The role of the sidecar, which one process of a data directory has at a time."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Final

from filelock import FileLock, Timeout

from sync.errors import AlreadyRunning, StorageReadOnly
from sync.files import make_private_folder
from sync.profiles import note_sidecar_pid, take_sidecar_role
from sync.settings import Settings

BETWEEN_TRIES: Final = 0.05  # seconds
FOR_A_HELPER: Final = 2.0  # seconds a starting sidecar waits for a command that does its work just now


@contextmanager
def sidecar_role(settings: Settings, *, patience: float = FOR_A_HELPER) -> Iterator[FileLock]:
    """The role of the sidecar, for one that opens several applications after each other. AlreadyRunning."""
    make_private_folder(settings.data_dir)
    role = take_sidecar_role(settings.data_dir, patience=patience)
    note_sidecar_pid(settings.data_dir)
    try:
        yield role
    finally:
        role.release()


@asynccontextmanager
async def awaited_role(settings: Settings, over: asyncio.Event) -> AsyncIterator[FileLock]:
    """`sidecar_role` as soon as the process that has it releases it; the event loop turns meanwhile.

    Raises AlreadyRunning if that takes too long, or if nobody waits any more (`over`).
    """
    with ExitStack() as stack:
        for left in range(round(FOR_A_HELPER / BETWEEN_TRIES), -1, -1):
            try:
                role = stack.enter_context(sidecar_role(settings, patience=0.0))
                break
            except AlreadyRunning:
                if left == 0 or over.is_set():
                    raise
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), BETWEEN_TRIES)
        yield role


@contextmanager
def role_if_free(settings: Settings, *, needed: bool) -> Iterator[FileLock | None]:
    """The role, or None where another process has it; `needed`: AlreadyRunning, StorageReadOnly then."""
    with ExitStack() as stack:
        try:
            held = stack.enter_context(sidecar_role(settings, patience=FOR_A_HELPER if needed else 0.0))
        except (AlreadyRunning, StorageReadOnly):
            if needed:
                raise
            held = None
        yield held


def is_free(settings: Settings) -> bool:
    """Whether nobody has the role at this moment."""
    with role_if_free(settings, needed=False) as held:
        return held is not None


def is_ours(role: FileLock) -> bool:
    """Whether we have the role, taken again just now if it is free."""
    with suppress(Timeout):
        if not role.is_locked:
            role.acquire(timeout=0)
    return role.is_locked
