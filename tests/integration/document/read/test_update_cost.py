"""What an update costs does not grow with the document: counted in calls of Python, so that no load disturbs it.

An update with its rendering and a load are made in a short document and in one ten times as long. Whatever looks at
each line, in any way that takes a call for it, would make ten times the calls.
"""

import concurrent.futures
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from sync.db import engine
from sync.document.capture.exchange_events import ExchangeInput
from sync.document.read.memory_service import MemoryService
from sync.settings.settings import Settings
from tests.integration.document.harness import open_document_harness

SHORT: Final = 60  # exchanges
LONG: Final = 600
DAYS: Final = 12
MOST_TIMES: Final = 1.2


class SameThreadExecutor(concurrent.futures.Executor):
    """Runs what it is given at once, on the thread that counts."""

    def __init__(self, *_: object) -> None: ...

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> concurrent.futures.Future[Any]:
        done: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            done.set_result(work(*given, **named))
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            done.set_exception(error)
        return done


async def calls(work: Callable[[], Awaitable[object]]) -> int:
    """How many calls of functions written in Python this makes, generators each time they go on."""
    counted = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    sys.setprofile(count)
    try:
        await work()
    finally:
        sys.setprofile(None)
    return counted


async def calls_of_update(folder: Path, exchanges: int) -> int:
    async with open_document_harness(folder) as harness:
        settings = Settings(data_dir=folder / "data")
        conversation = MemoryService(
            harness.log, harness.memory, None, harness.redactor, clock=harness.clock, settings=settings
        )
        for number in range(exchanges):
            await conversation.update(ExchangeInput(f"第 {number} 个问题", f"第 {number} 个回答"))
            if number % (exchanges // DAYS) == 0:
                harness.clock.advance(days=1)
                await harness.memory.reconcile()

        async def update(name: str) -> None:
            await conversation.update(ExchangeInput(f"{name}问", f"{name}答"))
            await conversation.load(wait_ms=0)
            await harness.memory.reconcile()
            await conversation.load(wait_ms=0)

        for name in "甲乙丙":
            await update(name)
        counted = await calls(lambda: update("丁"))
        assert "丁问" in harness.text
        assert len((await harness.newest_version()).snapshot.ids) == 2 * (exchanges + 4)
        return counted


async def test_an_update_and_its_rendering_make_as_many_calls_in_a_long_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "ThreadPoolExecutor", SameThreadExecutor)

    short, long = [await calls_of_update(tmp_path / str(count), count) for count in (SHORT, LONG)]

    assert long < MOST_TIMES * short
