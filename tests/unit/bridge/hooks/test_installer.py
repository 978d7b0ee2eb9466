"""Settings files before, with and after the hooks, byte for byte."""

import json
import stat
from pathlib import Path

import pytest

from bridge.hooks import hook_files
from bridge.hooks.hosts import HOSTS
from bridge.hooks.installer import HookFile, change_file, hook_command, installed_commands, settings_file
from sync.errors import StorageError

COMMAND = "xiaobai-memory hook"
ORIGINALS = [
    b"{}",
    b"{ }",
    b"{\n}\n",
    b"",
    b'{"a":1}',
    b'{\n\t"a": 1,\n\t"hooks": {}\n}',
    b'\xef\xbb\xbf{\r\n  "hooks": {\r\n    "PostToolUse": [],\r\n    "Stop": []\r\n  }\r\n}\r\n',
    '{\n    "名": "值",\n    "version": 1\n\n}\n\n'.encode(),
    b'{"hooks":{"PostToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"other"}]}]}}',
]


@pytest.fixture(params=list(HOSTS))
def file(request: pytest.FixtureRequest, tmp_path: Path) -> HookFile:
    (tmp_path / "data").mkdir(mode=0o700)
    found = settings_file(HOSTS[request.param], tmp_path, {}, None)
    found.path.parent.mkdir()
    return found


def change(file: HookFile, action: str, *, dry_run: bool = False) -> str:
    data_dir = file.path.parents[1] / "data"
    done = change_file(file, "install" if action == "install" else "remove", COMMAND, data_dir, dry_run=dry_run)
    return done.outcome


@pytest.mark.parametrize("original", ORIGINALS)
def test_install_and_remove_leave_the_file_byte_for_byte_as_it_was(file: HookFile, original: bytes) -> None:
    file.path.write_bytes(original)
    file.path.chmod(0o640)
    assert change(file, "install") == "installed"
    written = file.path.read_bytes()
    assert written.startswith(b"\xef\xbb\xbf") is original.startswith(b"\xef\xbb\xbf")
    assert (b"\r\n" in written) is (b"\r\n" in original)
    assert set(installed_commands(file)) == set(file.host.entries(COMMAND))
    assert change(file, "install") == "unchanged"
    assert file.path.read_bytes() == written
    assert change(file, "remove") == "removed"
    assert file.path.read_bytes() == original
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o640
    assert change(file, "remove") == "unchanged"


def test_a_file_that_was_not_there_is_gone_again(file: HookFile) -> None:
    data_dir = file.path.parents[1] / "data"
    change_file(file, "install", "/old/xiaobai-memory hook", data_dir, dry_run=False)
    assert change(file, "install") == "installed"
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert change(file, "remove") == "removed"
    assert not file.path.exists()


def test_what_another_program_changed_meanwhile_stays(file: HookFile) -> None:
    file.path.write_bytes(b'{\n  "a": 1\n}\n')
    change(file, "install")
    settings = json.loads(file.path.read_bytes())
    file.path.write_text(json.dumps({**settings, "b": 2}, indent=2))
    change(file, "remove")
    assert json.loads(file.path.read_bytes()) == {"a": 1, "b": 2, **file.host.settings}


def test_a_new_installation_replaces_the_entries_of_an_older_one(file: HookFile) -> None:
    data_dir = file.path.parents[1] / "data"
    file.path.write_bytes(b'{\n  "a": 1\n}\n')
    change_file(file, "install", "/old/xiaobai-memory hook", data_dir, dry_run=False)
    change(file, "install")
    assert {command for commands in installed_commands(file).values() for command in commands} == {COMMAND}
    change(file, "remove")
    assert file.path.read_bytes() == b'{\n  "a": 1\n}\n'


@pytest.mark.parametrize("broken", [b'{"a": 1,}', b"// c\n{}", b"[]", b"\xff\xfe{}", b'{"hooks": 1}', b"[" * 100_000])
def test_a_file_that_is_no_json_object_is_refused_and_stays(file: HookFile, broken: bytes) -> None:
    file.path.write_bytes(broken)
    assert change(file, "install") == "refused"
    assert file.path.read_bytes() == broken


def test_a_dry_run_shows_the_change_and_makes_none(file: HookFile) -> None:
    data_dir = file.path.parents[1] / "data"
    file.path.write_bytes(b'{"a": 1}\n')
    done = change_file(file, "install", COMMAND, data_dir, dry_run=True)
    assert done.outcome == "installed"
    assert COMMAND in done.diff
    assert file.path.read_bytes() == b'{"a": 1}\n'
    assert not list(data_dir.iterdir())


def test_a_symlink_stays_and_the_file_behind_it_is_written(file: HookFile, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.json"
    target.write_bytes(b"{}\n")
    file.path.symlink_to(target)
    change(file, "install")
    assert file.path.is_symlink()
    assert COMMAND in target.read_text()
    change(file, "remove")
    assert target.read_bytes() == b"{}\n"


def test_the_original_is_kept_in_a_private_folder(file: HookFile) -> None:
    file.path.write_bytes(b'{"env": {"TOKEN": "secret"}}')
    change(file, "install")
    backups = hook_files.hooks_folder(file.path.parents[1] / "data") / "backups"
    (kept,) = backups.iterdir()
    assert kept.read_bytes() == b'{"env": {"TOKEN": "secret"}}'
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_host_that_is_not_there_gets_no_file(tmp_path: Path) -> None:
    file = settings_file(HOSTS["cursor"], tmp_path, {}, None)
    assert change_file(file, "install", COMMAND, tmp_path, dry_run=False).outcome == "not_found"
    assert not file.path.parent.exists()


def test_a_folder_in_place_of_the_file_is_an_error(file: HookFile) -> None:
    file.path.mkdir()
    with pytest.raises(StorageError):
        change(file, "install")


def test_the_settings_of_a_project_and_of_a_moved_home_are_found(tmp_path: Path) -> None:
    claude = HOSTS["claude"]
    assert settings_file(claude, tmp_path, {}, tmp_path / "p").path == tmp_path / "p/.claude/settings.json"
    moved = settings_file(claude, tmp_path, {"CLAUDE_CONFIG_DIR": "/c"}, None)
    assert moved.path == Path("/c/settings.json")


def test_the_command_names_a_data_directory_that_is_not_the_usual_one(tmp_path: Path) -> None:
    usual = hook_command(tmp_path, tmp_path)
    assert usual.endswith(" hook")
    assert "--data-dir" not in usual
    assert hook_command(tmp_path / "a b", tmp_path).endswith(f" --data-dir '{tmp_path}/a b' hook")
