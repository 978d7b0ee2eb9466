"""The data directory that a command finds without pydantic is that of the settings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sync.errors import SettingsError
from sync.settings.data_dir import default_data_dir, find_data_dir
from sync.settings.settings import Settings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("XIAOBAI_DATA_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("in_file", [None, "~/of the file", "{home}/absolute"])
@pytest.mark.parametrize("in_environment", [None, "~/of-the-environment", "{home}/a/../b"])
@pytest.mark.parametrize("flag", [None, "relative", "~/of-the-flag", "{home}/flag/"])
def test_it_is_that_of_the_settings(
    home: Path, monkeypatch: pytest.MonkeyPatch, flag: str | None, in_environment: str | None, in_file: str | None
) -> None:
    given = flag, in_environment, in_file
    flag, in_environment, in_file = (each and each.format(home=home) for each in given)
    if in_environment is not None:
        monkeypatch.setenv("xiaobai_data_dir", in_environment)
    if in_file is not None:
        default_data_dir().mkdir(parents=True)
        (default_data_dir() / "config.toml").write_text(f'data_dir = "{in_file}"', "utf-8")
    assert find_data_dir(flag, os.environ) == Settings.from_sources(data_dir=flag).data_dir


@pytest.mark.parametrize("value", ["", "relative", "~nobody-of-that-name/x"])
def test_an_impossible_folder_is_refused_in_the_same_words(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("XIAOBAI_DATA_DIR", value)
    with pytest.raises(SettingsError) as found:
        find_data_dir(None, os.environ)
    with pytest.raises(SettingsError) as read:
        Settings.from_sources()
    assert str(found.value) == str(read.value)


def test_a_command_finds_it_without_pydantic() -> None:
    program = "import sys, bridge.cli.fast_commands; print('pydantic' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
