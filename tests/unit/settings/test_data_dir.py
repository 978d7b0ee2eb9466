"""What is read without pydantic is what the settings say with it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sync.errors import SettingsError
from sync.settings.data_dir import default_data_dir, find_data_dir
from sync.settings.reader import read_settings
from sync.settings.settings import Settings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in [name for name in os.environ if name.upper().startswith("XIAOBAI_")]:
        monkeypatch.delenv(name)
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
    settings = Settings.from_sources(data_dir=flag)
    assert find_data_dir(flag, os.environ) == settings.data_dir
    assert settings == read_settings({} if flag is None else {"data_dir": flag}, os.environ)


@pytest.mark.parametrize("value", ["", "relative", "~nobody-of-that-name/x"])
def test_an_impossible_folder_is_refused_in_the_same_words(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("XIAOBAI_DATA_DIR", value)
    with pytest.raises(SettingsError) as found:
        find_data_dir(None, os.environ)
    with pytest.raises(SettingsError) as read:
        Settings.from_sources()
    assert str(found.value) == str(read.value)


@pytest.mark.parametrize("variable", ["MEMORY_FILE", "DATA_DIR"])
def test_an_impossible_path_is_refused_in_the_words_of_pydantic(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(f"XIAOBAI_{variable}", "relative")
    with pytest.raises(SettingsError) as found:
        Settings.from_sources()
    with pytest.raises(SettingsError) as read:
        read_settings({}, os.environ)
    assert str(found.value) == str(read.value)


@pytest.mark.parametrize("name", ["", "XIAOBAI_SYNC__POLL"])
def test_a_name_that_is_no_setting_is_refused_without_any_other(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name or "xiaobai_memoryfile", "x")
    with pytest.raises(SettingsError, match="is not a setting"):
        Settings.from_sources()


@pytest.mark.parametrize(
    ("variables", "is_imported"),
    [
        ({}, False),
        ({"XIAOBAI_MEMORY_FILE": "~/m.md", "XIAOBAI_MODEL_KEY": "k"}, False),
        ({"XIAOBAI_LOG_LEVEL": "DEBUG"}, True),
    ],
)
def test_pydantic_is_imported_only_for_a_value_that_it_checks(variables: dict[str, str], is_imported: bool) -> None:
    program = (
        "import sys, bridge.cli.fast_commands; from sync.settings.settings import Settings; Settings.from_sources();"
        "print('pydantic' in sys.modules)"
    )
    environment = os.environ | variables
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == str(is_imported)
