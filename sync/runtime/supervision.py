"""Jobs that run beside a block, and are begun anew when something in them fails."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from sync.errors import StorageError, location_of
from sync.runtime.log_once import LogOnce

T = TypeVar("T")

RESTART_DELAY: Final = 2.0  # seconds before a job that failed is begun anew
STABLE_AFTER: Final = 60.0  # seconds without a failure, after which the same one is news

log = logging.getLogger(__name__)


async def supervise(name: str, job: Callable[[], Coroutine[None, None, None]]) -> None:
    """A job that a defect, or a database that is busy or full, must not end for good: calls go on being answered.

    What fails again and again in the same way is told once.
    """
    time = asyncio.get_running_loop().time
    troubles = LogOnce(log)
    while True:
        began = time()
        try:
            await job()
        except Exception as error:  # noqa: BLE001 - told, and begun anew
            if time() - began > STABLE_AFTER:
                troubles.clear(name)
            level, what = _describe_failure(error)
            troubles.report(name, f"the job {name!r} failed and begins anew: {what}", level=level)
        await asyncio.sleep(RESTART_DELAY)


def _describe_failure(error: Exception) -> tuple[int, str]:
    """How bad a failure is, and what is logged of it: never its text, in which a folder may be named after anything."""
    if isinstance(error, StorageError):
        return logging.WARNING, f"{error.kind}. `xiaobai-memory doctor` looks at what is in the way."
    return logging.ERROR, location_of(error)


async def finish_despite_cancel(work: Coroutine[None, None, T], timeout: float) -> T:
    """Await work that must not be left half done. A cancelled caller waits for it, `patience` seconds at most."""
    task = asyncio.create_task(work)
    task.add_done_callback(consume_exception)  # a caller cancelled twice no longer asks
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=timeout)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


async def run_cancellable(work: Callable[[Callable[[], None]], T]) -> T:
    """Run long work in a thread. It calls the function it gets often, which raises once the caller was cancelled."""
    stopped = threading.Event()

    def go_on() -> None:
        if stopped.is_set():
            raise InterruptedError("the caller was cancelled")

    try:
        return await asyncio.to_thread(work, go_on)
    finally:
        stopped.set()


def consume_exception(task: asyncio.Task[Any]) -> None:
    """A failure is kept elsewhere; that nobody waits for the task any more is no reason for a traceback."""
    if not task.cancelled():
        task.exception()


@asynccontextmanager
async def background_tasks(jobs: Sequence[Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """Jobs that run beside the block and end with it."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(job) for job in jobs]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
