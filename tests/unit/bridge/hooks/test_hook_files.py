"""Claims, runs and the log of the hooks."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import pytest

from bridge.hooks import hook_files


def test_one_of_many_claims_at_once_succeeds(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        claims = list(
            pool.map(lambda _: hook_files.claim(tmp_path / "hooks", "lesson", "s", "err-1", now=1.0), range(40))
        )
    assert claims.count(True) == 1
    assert hook_files.claim(tmp_path / "hooks", "lesson", "s", "err-2", now=1.0)


def test_a_claim_for_two_seconds_is_free_after_them(tmp_path: Path) -> None:
    claims = [hook_files.claim(tmp_path, "event", "k", now=now, within=2.0) for now in (1_000.0, 1_001.9, 1_004.0)]
    assert claims == [True, False, True]


def test_a_torn_line_is_skipped_and_the_next_begins_on_its_own(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_bytes(b"\xff\0 key word\n1.000 key\n17")
    assert hook_files.claim(tmp_path, "event", now=1.0)
    assert not hook_files.claim(tmp_path, "event", now=1.0)
    assert (tmp_path / "ledger").read_bytes().count(b"\n") == 5


def test_a_file_that_cannot_be_renamed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_files, "MAX_BYTES", 0)
    for error in (FileNotFoundError, PermissionError):
        monkeypatch.setattr(Path, "replace", Mock(side_effect=error))
        assert hook_files.claim(tmp_path, error.__name__, now=1.0)


def test_the_files_are_private_and_stay_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_files, "MAX_BYTES", 300)
    folder = tmp_path / "hooks"
    for number in range(50):
        hook_files.claim(folder, str(number), now=1.0)
        hook_files.log_line(folder, f"line {number}")
    hook_files.note_run(folder, "claude", "PreToolUse")
    assert list(hook_files.last_runs(folder)) == ["claude.PreToolUse"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in folder.rglob("*"))
    assert sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) < 2_000
    assert not hook_files.claim(folder, "49", now=1.0), "the newest claims are kept"


def test_without_a_data_directory_nothing_is_created(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        hook_files.log_line(tmp_path / "none" / "hooks", "x")
    assert not list(tmp_path.iterdir())
    assert hook_files.last_runs(tmp_path / "none") == {}
