"""The write lock of the database: how long a writer tries for it, and what a read does without it."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import Any, Final

from sqlalchemy import Engine

from sync.db.migrate import known_migrations
from sync.db.sqlite_errors import is_busy, translate_sqlite_errors
from sync.encryption.driver import driver_errors

BEGIN_IMMEDIATE: Final = "BEGIN IMMEDIATE"
LOCK_RETRY_MS: Final = 10  # SQLite tries after 1, 3, 8 and 10 ms; then its back-off begins again
POLL_SECONDS: Final = 0.05
PATIENCE_SECONDS: Final = 0.5  # of a read, with the write lock of another process


class Upkeep:
    """The writes that reads make for themselves, such as catching up a projection.

    `is_locked_out`: another process held the write lock when this one opened the file without waiting.
    `waiting_since`: the writer of this process waits for the lock, in seconds of the monotonic clock.
    """

    def __init__(self, *, is_possible: bool = True) -> None:
        self.is_locked_out = False
        self.waiting_since: float | None = None
        self._is_possible = is_possible
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, work: Callable[[], Coroutine[None, None, object]]) -> bool:
        """Run `work`; False if the read has to do without it.

        A read never waits for another process's write lock. In a process that stays, the work goes on by itself.
        """
        if not self._is_possible or self.is_locked_out:
            return False

        async def run_work() -> None:
            await work()

        task = asyncio.create_task(run_work())
        self._tasks.add(task)  # an event loop keeps only weak references to tasks
        task.add_done_callback(self._note_end)
        while not task.done():
            await asyncio.wait([task], timeout=POLL_SECONDS)
            since = self.waiting_since
            if not task.done() and since is not None and time.monotonic() - since > PATIENCE_SECONDS:
                return False
        await task
        return True

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # raised to the read if it still waits


def begin_immediate(driver: Any, timeout_ms: int) -> None:
    """Take the write lock; wait for other processes for at most `timeout_ms`. Raises the driver's busy error."""
    last_try = time.monotonic() + timeout_ms / 1000
    earlier = driver.execute("pragma busy_timeout").fetchone()[0]
    driver.execute(f"pragma busy_timeout = {LOCK_RETRY_MS}")
    try:
        while True:
            try:
                driver.execute(BEGIN_IMMEDIATE)
            except driver_errors("OperationalError") as error:
                if not is_busy(error) or time.monotonic() >= last_try:
                    raise
            else:
                return
    finally:
        driver.execute(f"pragma busy_timeout = {earlier}")


def is_locked_with_current_schema(engine: Engine) -> bool:
    """Whether another process holds the write lock of a database that needs no migration."""
    with translate_sqlite_errors(), closing(engine.raw_connection()) as connection:
        driver: Any = connection.driver_connection
        if driver.execute("pragma user_version").fetchone()[0] != known_migrations()[-1].version:
            return False
        try:
            begin_immediate(driver, timeout_ms=0)
        except driver_errors("OperationalError") as error:
            if is_busy(error):
                return True
            raise
        driver.execute("rollback")
    return False
