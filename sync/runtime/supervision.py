"""Background jobs that run beside a block, and restart after a failure."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from sync.errors import StorageError, location_of
from sync.runtime.log_once import LogOnce

T = TypeVar("T")

RESTART_DELAY: Final = 2.0  # seconds before a failed job restarts
STABLE_AFTER: Final = 60.0  # seconds without a failure, after which the same one is logged again

log = logging.getLogger(__name__)


async def supervise(name: str, job: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run a job for good: restart it after a defect, or if the database is busy or full.

    A repeated failure is logged once.
    """
    time = asyncio.get_running_loop().time
    failures = LogOnce(log)
    while True:
        began = time()
        try:
            await job()
        except Exception as error:  # noqa: BLE001 - logged, and restarted
            if time() - began > STABLE_AFTER:
                failures.clear(name)
            level, what = _describe_failure(error)
            failures.report(name, f"the job {name!r} failed and restarts: {what}", level=level)
        await asyncio.sleep(RESTART_DELAY)


def _describe_failure(error: Exception) -> tuple[int, str]:
    """The level and the log message of a failure. Never its text, which may contain names of folders."""
    if isinstance(error, StorageError):
        return logging.WARNING, f"{error.kind}. `xiaobai-memory doctor` looks at what is in the way."
    return logging.ERROR, location_of(error)


async def finish_despite_cancel(work: Coroutine[None, None, T], timeout: float) -> T:
    """Await work that must be finished. A cancelled caller still waits for it, `timeout` seconds at most."""
    task = asyncio.create_task(work)
    task.add_done_callback(consume_exception)  # in case the caller is cancelled twice
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=timeout)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


async def run_cancellable(work: Callable[[Callable[[], None]], T]) -> T:
    """Run long work in a thread. The work often calls its argument, which raises once the caller is cancelled."""
    stopped = threading.Event()

    def go_on() -> None:
        if stopped.is_set():
            raise InterruptedError("the caller was cancelled")

    try:
        return await asyncio.to_thread(work, go_on)
    finally:
        stopped.set()


def consume_exception(task: asyncio.Task[Any]) -> None:
    """Retrieve a task's exception, which is handled elsewhere, so that asyncio logs no traceback."""
    if not task.cancelled():
        task.exception()


@asynccontextmanager
async def background_tasks(jobs: Sequence[Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """Run jobs beside the block, and cancel them at its end."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(job) for job in jobs]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
