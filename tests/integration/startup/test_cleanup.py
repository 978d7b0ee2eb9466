"""What killed processes left behind, at the next start."""

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from sync.accounts.profiles import Profile
from sync.document.capture.exchange_events import ExchangeInput
from sync.document.erasure.erasure import request
from sync.log.ingest import DraftBuilder
from sync.open_app import AppMode, open_app
from sync.redaction import Redactor
from sync.settings.settings import Settings
from tests.support import app_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return app_settings(tmp_path, device_id="a")


async def start_clears(settings: Settings, half: Sequence[Path], whole: Path) -> None:
    """A start takes what is half written, and leaves what is whole beside it."""
    for path in (whole, *half):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("words")
    async with open_app(settings, AppMode.SIDECAR):
        assert [path for path in half if path.exists()] == []
        assert whole.exists()


async def test_half_written_documents_go_from_what_is_parked_here_and_for_an_account_that_is_away(
    settings: Settings,
) -> None:
    """They may say what is forgotten since."""
    async with open_app(settings, AppMode.HELPER) as app:
        here = app.profile.parked_folder
    away = here.parents[1] / "0123456789abcdef" / here.name
    whole, *half = (here / "0123456789abcdef.md", *(at / ".0123456789abcdef.md.0123abcd.tmp" for at in (here, away)))
    await start_clears(settings, half, whole)


async def test_half_written_files_go_also_from_the_event_files_of_an_account_that_is_away(settings: Settings) -> None:
    """They may say what is forgotten when that account is back."""
    async with open_app(settings, AppMode.HELPER) as app:
        away = app.profile.folder.with_name("0123456789abcdef")
    away.mkdir()
    index = settings.jsonl_root / away.name / "index"
    whole, *half = (
        index / "tags.json",
        index / ".tags.json.0123abcd.tmp",
        settings.memory_file.with_name(".memory.md.0123abcd.tmp"),
    )
    await start_clears(settings, half, whole)


async def test_half_written_archives_go_also_those_of_an_account_that_is_away(settings: Settings) -> None:
    async with open_app(settings, AppMode.HELPER) as app:
        here, away = app.profile, Profile(app.profile.folder.with_name("0123456789abcdef"))
    away.folder.mkdir()
    half = [profile.archives_folder / ".2025-01-02T030405-0a1b2c3d.xbm.0123abcd.part" for profile in (here, away)]
    whole = here.archives_folder / "2025-01-02T030405-0a1b2c3d.xbm"
    await start_clears(settings, half, whole)


async def test_erased_text_leaves_the_write_ahead_log_once_no_reader_holds_it(
    settings: Settings, tmp_path: Path
) -> None:
    """Also from the one that a killed process left behind (seed 4960)."""
    copied = app_settings(tmp_path / "copy", device_id="a")
    async with open_app(settings, AppMode.HELPER) as app:
        database = app.profile.database
        log = database.with_name("memory.db-wal")
        event_id = (await app.memory_service.update(ExchangeInput("秘密", "好"))).event_id
        assert event_id is not None
        await app.reconcile_memory_file()
        with closing(sqlite3.connect(database)) as reader:
            reader.execute("begin")
            reader.execute("select * from events").fetchall()
            await request(app.log, DraftBuilder(Redactor()), [event_id])
            await app.document.versions.catch_up()
            assert app.log.database.purge_pending
            assert holds_words(log), "somebody reads it"
            copied.data_dir.parent.mkdir()
            shutil.copytree(settings.data_dir, copied.data_dir, ignore=shutil.ignore_patterns("*.lock"))
            reader.execute("commit")
        await app.reconcile_memory_file()
        assert not holds_words(log)
    async with open_app(copied, AppMode.HELPER) as app:
        assert not holds_words(app.profile.database.with_name("memory.db-wal"))


def holds_words(log: Path) -> bool:
    return "秘密".encode() in log.read_bytes()
