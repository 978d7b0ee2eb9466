"""Bad names and odd files: a sample of the first, each of the second."""

import os
from pathlib import Path

import pytest

from bridge.sidecar import log_to_stderr_and_file
from sync.accounts.profiles import write_sidecar_pid
from sync.document.surfaces.app_cache import read_content, swap_content
from sync.errors import SettingsError, StorageError
from sync.settings.settings import Settings
from sync.system.files import read_once
from tests.fuzz.paths import IDS, PATHS
from tests.fuzz.rpc.framing import in_memory


async def test_no_name_leads_out_of_the_root(tmp_path: Path) -> None:
    await PATHS.probe(tmp_path)


async def test_no_id_in_a_call_leads_out_of_the_root(tmp_path: Path) -> None:
    await IDS.probe(tmp_path)


async def test_an_event_with_a_path_is_answered_with_it(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as line:
        response = await line.ask("events/append", event={"type": "t", "payload": {}, "project_path": "/家/../x"})
        assert response["events"][0]["project_path"] == "/家/../x"


@pytest.mark.parametrize("value", ["~nobody-of-this-name/x.md", "a\0b", "a\udcffb"])
@pytest.mark.parametrize("name", ["memory_file", "data_dir", "app_db"])
def test_a_path_that_cannot_be_is_named(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name.upper()):
        Settings.from_sources(**{"data_dir": str(tmp_path), name: value})


@pytest.mark.parametrize("name", ["installation.json", "profiles/0123456789abcdef/memory.db", "config.toml"])
def test_the_memory_file_is_none_of_the_programs_own(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="MEMORY_FILE"):
        Settings.from_sources(data_dir=tmp_path, memory_file=tmp_path / name)
    assert Settings.from_sources(data_dir=tmp_path, memory_file=tmp_path / "memory.md").memory_file.name == "memory.md"


async def test_a_pipe_in_the_place_of_a_file_blocks_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(StorageError, match="ordinary"):
        read_once(pipe)
    assert await read_content(pipe) is None
    assert not await swap_content(pipe, b"", "x")


def test_a_link_in_the_place_of_a_file_of_ours_is_not_written_through(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    data = tmp_path / "data"
    (data / "logs").mkdir(parents=True)
    for name in ("sidecar.pid", "logs/sidecar.log"):
        (data / name).symlink_to(precious)
    write_sidecar_pid(data)
    before = os.umask(0o077)
    log_to_stderr_and_file(Settings.from_sources(data_dir=data, memory_file=tmp_path / "memory.md"))
    os.umask(before)
    assert precious.read_text() == "mine"
    assert not (data / "logs" / "sidecar.log").is_symlink()
