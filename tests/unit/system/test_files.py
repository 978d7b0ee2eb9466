"""Private folders and files, consistent reads, atomic writes."""

import os
import stat
from pathlib import Path

import pytest

from sync.errors import StorageError
from sync.system.files import (
    make_private_folder,
    read_once,
    remove_temporary_files,
    stat_stamp,
    translate_os_errors,
    write_private,
)
from tests.unit.system.folder_state import leftovers, mode


def test_a_private_folder_is_0700_whatever_the_umask(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a" / "b")
    assert mode(tmp_path / "a" / "b") == 0o700
    (tmp_path / "open").mkdir(mode=0o755)
    make_private_folder(tmp_path / "open")
    assert mode(tmp_path / "open") == 0o700


def test_a_private_file_is_0600_and_replaces_the_old_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_bytes(b"old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert path.read_bytes() == b"new"
    assert mode(path) == 0o600
    assert not leftovers(tmp_path)


def test_a_private_file_that_cannot_be_put_in_its_place_leaves_nothing_of_what_it_would_say(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(StorageError):
        write_private(tmp_path / "taken", b"x")
    assert not leftovers(tmp_path)


def test_a_file_is_never_readable_for_others_while_it_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode)))
    write_private(tmp_path / "new", b"x")
    assert seen[0] == 0o600


def test_a_folder_in_the_place_of_a_file_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "memory.md").mkdir()
    with pytest.raises(StorageError):
        read_once(tmp_path / "memory.md")


def test_a_missing_folder_is_named_instead_of_a_code(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not exist") as failed, translate_os_errors(tmp_path / "none" / "file"):
        (tmp_path / "none" / "file").touch()
    assert "folder" in failed.value.hint


def test_where_there_is_no_file_there_is_nothing_to_see(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "none", tmp_path / "file" / "below"):
        assert read_once(path) is None
        assert stat_stamp(path) is None


def test_a_probe_tells_two_contents_of_one_size_apart(tmp_path: Path) -> None:
    path = tmp_path / "memory.md"
    path.write_bytes(b"aaaa")
    first = read_once(path)
    path.write_bytes(b"bbbb")
    second = read_once(path)
    assert first is not None
    assert second is not None
    assert (first.size, second.data) == (second.size, b"bbbb")
    assert first.sha256 != second.sha256


def test_what_killed_writers_left_is_taken_away_and_nothing_else(tmp_path: Path) -> None:
    ours = ".memory.md.0a1b2c3d.tmp"
    theirs = [".memory.md.swp", ".memory.md.0a1b2c3d.tmp.bak", "memory.md.0a1b2c3d.tmp", ".memory.md.0a1b2c3.tmp"]
    others = ".session.json.0a1b2c3d.tmp"
    for name in (ours, *theirs, others):
        (tmp_path / name).touch()
    remove_temporary_files(tmp_path, name="memory.md", before=1.0)
    assert (tmp_path / ours).exists(), "a living writer's is younger"
    remove_temporary_files(tmp_path, name="memory.md")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*theirs, others])
    remove_temporary_files(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(theirs)
    remove_temporary_files(tmp_path / "nowhere")
