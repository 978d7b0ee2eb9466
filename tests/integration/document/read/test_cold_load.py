"""The first answer of a starting sidecar equals that of the open app."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from pydantic import SecretStr

from bridge.sidecar import _cold_loader
from sync.document.capture.exchange_events import ExchangeInput
from sync.document.markdown.model import MemoryDocument, Snapshot
from sync.document.read.results import LoadResult
from sync.open_app import AppMode, open_app
from sync.settings.settings import Settings
from sync.settings.values import HttpAddress
from tests.support import app_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return app_settings(tmp_path)


def cold_load_result(settings: Settings) -> LoadResult | None:
    glimpse = _cold_loader(settings)
    return None if glimpse is None else glimpse.load(scope="user", max_chars=None)


async def opened_load_result(
    settings: Settings, role: AppMode = AppMode.SIDECAR, *, says: str | None = None
) -> LoadResult:
    async with open_app(settings, role) as app:
        if says is not None:
            await app.memory_service.update(ExchangeInput(says, "好的。"))
        return await app.memory_service.load(wait_ms=0)


def without_footer(loaded: LoadResult | None) -> LoadResult:
    """A template's last line is the second in which it was made; its parsed form has that line too."""
    assert loaded is not None
    text, content = (one.rpartition("**最后更新**")[0] for one in (loaded.document, loaded.content))
    parsed = {"snapshot": Snapshot(MemoryDocument()), "labelled": MemoryDocument()}
    return replace(loaded, document=text, document_sha256="", content=content, **parsed)


async def test_before_anything_was_ever_recorded_it_is_the_template(settings: Settings) -> None:
    first = cold_load_result(settings)
    assert not settings.data_dir.exists(), "looking makes nothing"
    full = await opened_load_result(settings)
    again = cold_load_result(settings)
    assert full.source == "template"
    assert without_footer(first) == without_footer(full) == without_footer(again)


async def test_without_the_memory_file_it_is_what_was_in_it(settings: Settings) -> None:
    await opened_load_result(settings, says="我喜欢爬山")
    await opened_load_result(settings)  # which writes the file
    settings.memory_file.unlink()
    first = cold_load_result(settings)
    assert first is not None
    assert "我喜欢爬山" in first.document
    assert first == await opened_load_result(settings)


async def test_what_might_hold_a_first_document_is_opened_before_the_answer(settings: Settings) -> None:
    cloud = {"supabase_url": HttpAddress("http://127.0.0.1:9"), "supabase_key": SecretStr("sb_publishable_x")}
    cached = replace(settings, app_db=settings.data_dir.parent / "app.db")
    assert cold_load_result(cached) is None
    settings.memory_file.write_text("# 我的\n\n- 一行\n", "utf-8")
    assert cold_load_result(settings) is None
    settings.memory_file.unlink()
    await opened_load_result(settings, AppMode.GUEST)
    assert cold_load_result(settings) is not None
    assert cold_load_result(cached) is None
    assert cold_load_result(replace(settings, **cloud)) is None
    await opened_load_result(settings, AppMode.GUEST, says="还没有写进文件")
    assert cold_load_result(settings) is None
