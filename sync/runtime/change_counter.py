"""Wake waiting tasks without timers and without losing a wake-up."""

import asyncio


class ChangeCounter:
    """Counts changes and wakes the tasks that wait for one. A change between two waits is not lost.

    Tasks are woken in the order of their waits, which a set of waiters would not keep.
    """

    def __init__(self) -> None:
        self._count = 0
        self._waiters: dict[asyncio.Future[None], None] = {}

    @property
    def count(self) -> int:
        return self._count

    def increment(self) -> None:
        self._count += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def wait_for_change(self, seen: int) -> int:
        """Wait until the count differs from `seen`. Return the new count."""
        while self._count == seen:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters[waiter] = None
            try:
                await waiter
            finally:
                self._waiters.pop(waiter, None)
        return self._count


async def wait_for_any_change(seconds: float | None, *counters: tuple[ChangeCounter, int]) -> bool:
    """Wait until one of the counters has changed. Return False if the time ran out first."""
    waits = [asyncio.ensure_future(counter.wait_for_change(seen)) for counter, seen in counters]
    try:
        done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)
    finally:
        for wait in waits:
            wait.cancel()
