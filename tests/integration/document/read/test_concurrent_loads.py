"""A load is answered while something else takes long: a manual edit, the first file of a memory."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sync.app import App
from sync.document.capture.exchange_events import ExchangeInput
from sync.open_app import AppMode, open_app
from tests.support import app_settings


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    settings = app_settings(tmp_path)
    async with open_app(settings, AppMode.HELPER) as found:
        yield found


@asynccontextmanager
async def nothing_is_written(app: App) -> AsyncIterator[None]:
    """The writer of the database is busy in this block, as with a long edit."""
    begun, end = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work(_connection: object) -> None:
        loop.call_soon_threadsafe(begun.set)
        end.wait()

    busy = asyncio.create_task(app.log.database.write(work))
    await begun.wait()
    try:
        yield
    finally:
        end.set()
        await busy


async def loaded(app: App) -> str:
    await app.ingest_file_edit(timeout=0)
    return (await app.memory_service.load(wait_ms=0)).document


async def test_a_load_does_not_wait_for_a_hand_edit_that_is_being_taken_in(app: App) -> None:
    file = app.settings.memory_file
    await app.memory_service.update(ExchangeInput("一", "好的"))
    await app.reconcile_memory_file()
    await app.memory_service.update(ExchangeInput("二", "好的"))
    file.write_text(file.read_text("utf-8").replace("### 工作习惯\n", "### 工作习惯\n- 早起\n"), "utf-8")

    async with nothing_is_written(app):
        text = await loaded(app)

    assert "用户问：二" in text
    await app.ingest_file_edit()
    text = (await app.memory_service.load(wait_ms=0)).document
    assert "- 早起" in text
    assert "用户问：二" in text


async def test_the_first_load_shows_a_file_that_is_still_being_taken_in(app: App) -> None:
    app.settings.memory_file.write_text("# 笔记\n\n- 早起\n- 喝茶\n", "utf-8")

    async with nothing_is_written(app):
        text = await loaded(app)
        assert await loaded(app) == text

    assert text == "# 笔记\n\n- 早起\n- 喝茶\n"
    await app.ingest_file_edit()
    assert "- 喝茶" in (await app.memory_service.load(wait_ms=0)).document
