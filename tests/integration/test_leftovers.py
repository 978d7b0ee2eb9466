"""What killed processes left behind, at the next start."""

from pathlib import Path

from sync.app import Role, open_app
from sync.profiles import Profile
from sync.settings import Settings


async def test_half_written_documents_go_from_what_is_parked_here_and_for_an_account_that_is_away(
    tmp_path: Path,
) -> None:
    """They may say what is forgotten since."""
    settings = Settings(
        data_dir=tmp_path / "data", memory_file=tmp_path / "memory.md", device_id="a", token_store="file"
    )
    async with open_app(settings, Role.HELPER) as app:
        here = app.profile.parked
    away = here.parents[1] / "0123456789abcdef" / here.name
    whole, *half = (here / "0123456789abcdef.md", *(at / ".0123456789abcdef.md.0123abcd.tmp" for at in (here, away)))
    for path in (whole, *half):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("words")
    async with open_app(settings, Role.SIDECAR):
        assert [path for path in half if path.exists()] == []
        assert whole.exists()


async def test_half_written_files_go_also_from_the_event_files_of_an_account_that_is_away(tmp_path: Path) -> None:
    """They may say what is forgotten when that account is back."""
    settings = Settings(
        data_dir=tmp_path / "data", memory_file=tmp_path / "memory.md", device_id="a", token_store="file"
    )
    async with open_app(settings, Role.HELPER) as app:
        away = app.profile.folder.with_name("0123456789abcdef")
    away.mkdir()
    index = settings.tree_base / away.name / "index"
    index.mkdir(parents=True)
    whole, *half = (
        index / "tags.json",
        index / ".tags.json.0123abcd.tmp",
        settings.memory_file.with_name(".memory.md.0123abcd.tmp"),
    )
    for path in (whole, *half):
        path.write_text("{}")
    async with open_app(settings, Role.SIDECAR):
        assert [path for path in half if path.exists()] == []
        assert whole.exists()


async def test_half_written_archives_go_also_those_of_an_account_that_is_away(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path / "data", memory_file=tmp_path / "memory.md", device_id="a", token_store="file"
    )
    async with open_app(settings, Role.HELPER) as app:
        here, away = app.profile, Profile(app.profile.folder.with_name("0123456789abcdef"))
    away.folder.mkdir()
    half = [profile.archives / ".2025-01-02T030405-0a1b2c3d.xbm.0123abcd.part" for profile in (here, away)]
    whole = here.archives / "2025-01-02T030405-0a1b2c3d.xbm"
    for path in (whole, *half):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("words")
    async with open_app(settings, Role.SIDECAR):
        assert [path for path in half if path.exists()] == []
        assert whole.exists()
