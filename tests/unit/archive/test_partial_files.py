"""Partial files: locked by their writer, and removed only when no process holds them."""

import subprocess
import sys
from pathlib import Path

import pytest

from sync.archive.partial_files import partial_file, remove_partial_files

WRITER = """
import sys
from pathlib import Path
from sync.archive.partial_files import partial_file
with partial_file(Path(sys.argv[1])) as (_, file):
    file.write(b"words")
    file.flush()
    print("written", flush=True)
    sys.stdin.read()
"""


def test_only_the_partial_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "all.xbm"
    other = tmp_path / "other.xbm"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "written\n"
            remove_partial_files(tmp_path)
            assert len(list(tmp_path.iterdir())) == 1, "its writer lives"
        finally:
            writer.kill()
    (left,) = tmp_path.iterdir()
    assert left.read_bytes() == b"words"

    with partial_file(other) as (temporary, file), file:
        remove_partial_files(tmp_path, name=other.name)
        assert left.exists(), "it is another's"
        remove_partial_files(tmp_path)
        assert list(tmp_path.iterdir()) == [temporary]
        file.close()
        remove_partial_files(tmp_path)
        assert list(tmp_path.iterdir()) == [temporary], "it is still to be read back and put in its place"
        temporary.rename(other)
    remove_partial_files(tmp_path)
    assert list(tmp_path.iterdir()) == [other]
    assert other.stat().st_mode & 0o077 == 0


def test_a_file_that_was_not_moved_into_place_is_removed(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), partial_file(tmp_path / "all.xbm"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_files_with_other_names_are_not_removed(tmp_path: Path) -> None:
    ours = ".all.xbm.0a1b2c3d.part"
    theirs = ["all.xbm.0a1b2c3d.part", ".all.xbm.part", ".all.xbm.0a1b2c3d.part.bak", ".all.xbm.0a1b2c3d.tmp"]
    for name in (ours, *theirs):
        (tmp_path / name).touch()
    (tmp_path / ".all.xbm.00000000.part").mkdir()
    remove_partial_files(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*theirs, ".all.xbm.00000000.part"])
    remove_partial_files(tmp_path / "nowhere")
