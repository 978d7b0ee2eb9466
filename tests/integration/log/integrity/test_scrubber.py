"""Damage within a row that breaks no page: `events verify`, `doctor` and the sidecar's scan detect it."""

from pathlib import Path

from tests.integration.db.rebuild.test_salvage import PAGE, Home, events_of, leaf_pages, overwrite, root_page_of


def flip_in_row(path: Path, event_id: str) -> None:
    """Change one letter of an id in the event's row; the index keeps the old one."""
    data, at = path.read_bytes(), -1
    rows = set(leaf_pages(path, root_page_of(path, "events")))
    while (at := data.index(event_id.encode(), at + 1)) // PAGE + 1 not in rows:
        pass
    overwrite(path, at + len(event_id) - 1, b"x")


async def test_a_flipped_bit_in_an_id_is_seen_by_doctor_and_by_the_sidecar(tmp_path: Path) -> None:
    home = Home(tmp_path)
    before = await home.fill(30)
    flip_in_row(home.database, list(before)[7])
    async with home.app() as app:
        assert len(await events_of(app)) == 30
        (check,) = [check for check in await app.check_health() if check.name == "log"]
        assert check.ok is False
        assert "events verify" in check.hint
        assert not any("log_damaged" in warning for warning in (await app.status()).warnings)
        await app.log_scrubber.check_next_batch()
        assert any("log_damaged: 1 event" in warning for warning in (await app.status()).warnings)


async def test_scanning_a_sound_log_reports_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    await home.fill(30)
    async with home.app() as app:
        for _ in range(3):
            await app.log_scrubber.check_next_batch()
        assert app.log_scrubber.warning is None
        assert [check.ok for check in await app.check_health() if check.name == "log"] == [True]
