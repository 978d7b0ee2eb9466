"""A job that keeps failing is restarted each time and logged once."""

import asyncio
import logging
from collections.abc import Callable, Coroutine

import pytest

from sync.errors import StorageBusy, StorageFull
from sync.runtime.supervision import RESTART_DELAY, STABLE_AFTER, background_tasks, supervise
from tests.support import run_in_virtual_time

TIMES = 10


@pytest.fixture
def log_levels_of(
    caplog: pytest.LogCaptureFixture,
) -> Callable[[Callable[[int], Coroutine[None, None, None]]], list[str]]:
    """Return the log levels of a job that starts so often; it receives the number of its start."""

    def living(job: Callable[[int], Coroutine[None, None, None]]) -> list[str]:
        turns = iter(range(TIMES))
        all_lived = asyncio.Event()

        async def turn() -> None:
            number = next(turns, None)
            if number is None:
                all_lived.set()
                await asyncio.Event().wait()
            else:
                await job(number)

        async def let_run() -> None:
            async with (
                background_tasks([supervise("a job", turn)]),
                asyncio.timeout(TIMES * (RESTART_DELAY + 2 * STABLE_AFTER)),
            ):
                await all_lived.wait()

        with caplog.at_level(logging.INFO, "sync.runtime.supervision"):
            run_in_virtual_time(let_run())
        return [record.levelname for record in caplog.records if record.name == "sync.runtime.supervision"]

    return living


def test_a_disk_error_is_logged_once_and_is_no_defect(
    log_levels_of: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    async def full(_: int) -> None:
        raise StorageFull("no space left for 项目")

    assert log_levels_of(full) == ["WARNING"]
    assert "storage_full" in caplog.text
    assert "项目" not in caplog.text


def test_a_defect_is_logged_with_its_location_and_not_its_message(
    log_levels_of: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    async def wrong(_: int) -> None:
        raise ValueError("what somebody said")

    assert log_levels_of(wrong) == ["ERROR"]
    assert "ValueError at" in caplog.text
    assert "what somebody said" not in caplog.text


def test_another_failure_is_news(log_levels_of: Callable[..., list[str]]) -> None:
    async def two(number: int) -> None:
        raise (StorageBusy if number < TIMES // 2 else StorageFull)("what the disk says")

    assert log_levels_of(two) == ["WARNING", "WARNING"]


def test_one_that_comes_again_after_it_went_well_is_news(log_levels_of: Callable[..., list[str]]) -> None:
    async def now_and_then(number: int) -> None:
        if number == TIMES // 2:
            await asyncio.sleep(STABLE_AFTER + 1)
        raise StorageFull("no space left for events")

    assert log_levels_of(now_and_then) == ["WARNING", "WARNING"]
