"""A wake-up between two waits is not lost, and no wait exceeds its timeout."""

import asyncio

from sync.runtime.change_counter import ChangeCounter, wait_for_any_change
from tests.support import run_in_virtual_time


async def test_a_change_before_the_wait_is_not_lost() -> None:
    signal = ChangeCounter()
    seen = signal.count
    signal.increment()
    assert await signal.wait_for_change(seen) == seen + 1


async def test_everybody_who_waits_is_woken() -> None:
    signal = ChangeCounter()
    waiting = [asyncio.create_task(signal.wait_for_change(0)) for _ in range(5)]
    await asyncio.sleep(0)
    signal.increment()
    assert await asyncio.gather(*waiting) == [1] * 5


async def test_who_waited_first_is_woken_first() -> None:
    """Otherwise the same history could go another way each time it is lived."""
    signal = ChangeCounter()
    woken: list[int] = []

    async def waits(number: int) -> None:
        await signal.wait_for_change(0)
        woken.append(number)

    waiting = [asyncio.create_task(waits(number)) for number in range(50)]
    await asyncio.sleep(0)
    signal.increment()
    await asyncio.gather(*waiting)
    assert woken == list(range(50))


async def test_a_cancelled_waiter_leaves_nothing_behind() -> None:
    signal = ChangeCounter()
    waiting = asyncio.create_task(signal.wait_for_change(0))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert not signal._waiters
    signal.increment()


async def test_any_one_of_several_signals_ends_the_wait() -> None:
    quiet, loud = ChangeCounter(), ChangeCounter()
    loud.increment()
    assert await wait_for_any_change(None, (quiet, 0), (loud, 0))
    await asyncio.sleep(0)
    assert not quiet._waiters


def test_the_time_ends_the_wait_when_no_signal_does() -> None:
    async def waiting() -> tuple[bool, float]:
        return await wait_for_any_change(90.0, (ChangeCounter(), 0)), asyncio.get_running_loop().time()

    woken, passed = run_in_virtual_time(waiting())
    assert not woken
    assert passed == 90.0
