"""Jobs that run beside a block, and are begun anew when something in them fails."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from sync.errors import place_of

T = TypeVar("T")

BEGIN_ANEW: Final = 2.0  # seconds before a job that failed unexpectedly is begun anew

log = logging.getLogger(__name__)


async def kept_up(name: str, job: Callable[[], Coroutine[None, None, None]]) -> None:
    """A job that a defect, or a database that is busy or full, must not end for good: calls go on being answered."""
    while True:
        try:
            await job()
        except Exception as error:  # noqa: BLE001 - told where it happened, without its text, and begun anew
            log.error("the job %r failed and begins anew: %s", name, place_of(error))  # noqa: TRY400 - no text of it
        await asyncio.sleep(BEGIN_ANEW)


async def to_its_end(work: Coroutine[None, None, T], patience: float) -> T:
    """Await work that must not be left half done. A cancelled caller waits for it, `patience` seconds at most."""
    task = asyncio.create_task(work)
    task.add_done_callback(heard)  # a caller cancelled twice no longer asks
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=patience)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


def heard(done: asyncio.Task[Any]) -> None:
    """A failure is kept elsewhere; that nobody waits for the task any more is no reason for a traceback."""
    if not done.cancelled():
        done.exception()


@asynccontextmanager
async def running(jobs: Sequence[Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """Jobs that run beside the block and end with it."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(job) for job in jobs]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
