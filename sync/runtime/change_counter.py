"""Waking whoever waits, without timers and without losing a wake-up."""

import asyncio


class ChangeCounter:
    """Wakes whoever waits, in the order they came. A change between two waits is not lost: the count tells.

    A set of waiters would wake them in the order of their addresses, another one in each run.
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
        """Return as soon as the count differs from `seen`; the new count."""
        while self._count == seen:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters[waiter] = None
            try:
                await waiter
            finally:
                self._waiters.pop(waiter, None)
        return self._count


async def wait_for_any_change(seconds: float | None, *counters: tuple[ChangeCounter, int]) -> bool:
    """Until one of the signals has moved past its count; False when the time ran out first."""
    waits = [asyncio.ensure_future(signal.wait_for_change(seen)) for signal, seen in counters]
    try:
        done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)
    finally:
        for wait in waits:
            wait.cancel()
