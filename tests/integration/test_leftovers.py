"""What killed processes left behind, at the next start."""

from pathlib import Path

from sync.app import Role, open_app
from sync.settings import Settings


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
