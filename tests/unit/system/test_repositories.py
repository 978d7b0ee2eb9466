"""What counts as a repository."""

from pathlib import Path

import pytest

from sync.system.repositories import MARKERS, is_in_repository


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("is_file", [False, True])
def test_a_folder_below_a_working_copy_is_in_a_repository(tmp_path: Path, marker: str, *, is_file: bool) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert not is_in_repository(inner)
    (tmp_path / "linked").symlink_to(inner)
    mark = tmp_path / "a" / marker
    mark.write_text("gitdir: x") if is_file else mark.mkdir()
    assert is_in_repository(inner)
    assert is_in_repository(tmp_path / "linked")
    assert not is_in_repository(tmp_path)


def test_the_usual_systems_are_known() -> None:
    assert {".git", ".hg", ".svn", ".jj", ".fslckout", ".bzr", "CVS"} <= set(MARKERS)
