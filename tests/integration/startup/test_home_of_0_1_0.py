"""A home written by release 0.1.0 opens, is complete, and can be used further. Never make its archive again.

It was written by a sidecar of 0.1.0 on 2026-11-24: three exchanges, of which one is erased, a stated preference, a
line typed into the memory file, a daily record and an event of another program.
"""

import tarfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from sync.app import App
from sync.document.capture.exchange_events import ExchangeInput
from sync.log.model import Query
from sync.open_app import AppMode, open_app
from sync.recall.model import SearchRequest
from tests.support import CHINA, FixedClock, app_settings

ARCHIVE: Final = Path(__file__).with_name("home-0.1.0.tar.xz")
NEXT_DAY: Final = datetime(2026, 11, 25, 9, 0, tzinfo=CHINA)


@asynccontextmanager
async def open_home(folder: Path) -> AsyncIterator[App]:
    settings = replace(app_settings(folder), memory_file=folder / "xiaobai-ai-memory.md")
    async with open_app(settings, AppMode.SIDECAR, clock=FixedClock(NEXT_DAY)) as app:
        yield app


async def test_it_opens_complete_and_goes_on(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    file = tmp_path / "xiaobai-ai-memory.md"
    before = file.read_text("utf-8")
    async with open_home(tmp_path) as app:
        await app.reconcile_memory_file()
        assert file.read_text("utf-8") == before
        types = Counter(event.type for event in (await app.log.read(Query())).events)
        assert types["exchange_recorded"] == 3
        assert {"entry_added", "user_feedback", "payload_forgotten"} <= set(types)
        assert [hit.item.text for hit in (await app.recall().search(SearchRequest("8080"))).hits]

        await app.memory_service.update(ExchangeInput("新版本好用吗？", "好用。"))
        file.write_text(file.read_text("utf-8").replace("- 手写的一行", "- 改过的一行"), "utf-8")
        await app.reconcile_memory_file()
        text = (await app.memory_service.load(wait_ms=0)).document
        assert {"- 改过的一行", "- 我喜欢深色主题", "- AI 答：用 8080。", "- 用户问：新版本好用吗？"} <= set(
            text.splitlines()
        )
        assert "release" not in text  # erased in 0.1.0
        assert await app.log.find_problems() == []
    async with open_home(tmp_path) as app:
        assert (await app.memory_service.load(wait_ms=0)).document == text
