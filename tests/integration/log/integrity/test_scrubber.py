"""Damage within a row that breaks no page: `events verify`, `doctor` and the sidecar's scan detect it."""

import shutil
from pathlib import Path

import pytest

from sync.cloud.contact import parse_contact
from sync.open_app import AppMode
from tests.integration.db.rebuild.test_salvage import (
    PAGE,
    Home,
    events_of,
    has_salvage_warning,
    leaf_pages,
    overwrite,
    root_page_of,
    rows_on_server,
)
from tests.support import EMAIL, PASSWORD, draft


def flip_in_row(path: Path, event_id: str) -> None:
    """Change one letter of an id in the event's row; the index keeps the old one."""
    data, at = path.read_bytes(), -1
    rows = set(leaf_pages(path, root_page_of(path, "events")))
    while (at := data.index(event_id.encode(), at + 1)) // PAGE + 1 not in rows:
        pass
    overwrite(path, at + len(event_id) - 1, b"x")


async def test_a_flipped_bit_in_an_id_is_seen_by_doctor_and_by_the_scan(tmp_path: Path) -> None:
    home = Home(tmp_path)
    before = await home.fill(30)
    flip_in_row(home.database, list(before)[7])
    async with home.app(AppMode.GUEST) as app:
        assert len(await events_of(app)) == 30
        (check,) = [check for check in await app.check_health() if check.name == "log"]
        assert check.ok is False
        assert "events verify" in check.hint
        assert not any("log_damaged" in warning for warning in (await app.status()).warnings)
        await app.log_scrubber.check_next_batch()
        assert any("log_damaged: 1 event" in warning for warning in (await app.status()).warnings)


@pytest.mark.parametrize("source", ["event files", "server"])
async def test_a_damaged_event_is_fetched_again_by_the_next_start(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large the database is."""
    home = Home(tmp_path)
    async with home.app() as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await app.log.append([draft(f"{number} " + "记" * 60) for number in range(30)])
        assert app.replicator is not None
        await app.replicator.sync_now()
        await app.event_files.write_pending()
        before = await events_of(app)
    if source == "server":
        shutil.rmtree(home.settings.jsonl_root)
    flip_in_row(home.database, list(before)[7])
    monkeypatch.setattr("sync.db.integrity.READ_ALL_MAX_BYTES", 0)
    async with home.app() as app:
        assert not has_salvage_warning(app)
        await app.log_scrubber.check_next_batch()
    async with home.app() as app:
        assert has_salvage_warning(app)
        assert app.replicator is not None
        await app.replicator.sync_now()
        after = await events_of(app)
        assert {name: (after[name].hlc, after[name].payload) for name in before} == {
            name: (event.hlc, event.payload) for name, event in before.items()
        }
        assert after.keys() == before.keys()
        assert await app.log.find_problems() == []
        await app.log_scrubber.check_next_batch()
        assert app.log_scrubber.warning is None
    assert [event.type for event in rows_on_server(home)].count("note_taken") == 30


async def test_scanning_a_sound_log_reports_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    await home.fill(30)
    async with home.app() as app:
        for _ in range(3):
            await app.log_scrubber.check_next_batch()
        assert app.log_scrubber.warning is None
        assert [check.ok for check in await app.check_health() if check.name == "log"] == [True]
