"""Folders that other machines write too, by their names, and the copies that synchronising programs leave."""

from pathlib import Path

import pytest

from sync.system.shared_folders import conflict_copies, copies_warning, sharing_of, sharing_warning

NO_MOUNTS = Path("/nowhere/mounts")


@pytest.mark.parametrize(
    "part",
    ["Dropbox", "Dropbox (Personal)", "OneDrive", "OneDrive - Contoso", "Library/Mobile Documents/com~apple~CloudDocs"],
)
def test_a_cloud_folder_is_known_by_its_name(tmp_path: Path, part: str) -> None:
    found = sharing_of(tmp_path / part / "memory", NO_MOUNTS)
    assert found is not None
    assert (tmp_path / part).is_relative_to(found)


@pytest.mark.parametrize("part", ["Dropbox-sdk", "my OneDrive", "dropbox", "cloud"])
def test_a_similar_name_is_none(tmp_path: Path, part: str) -> None:
    assert sharing_of(tmp_path / part, NO_MOUNTS) is None


def test_the_file_system_of_the_nearest_mount_decides(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/a / ext4 rw 0 0\nhost:/x /mnt/share nfs4 rw 0 0\n/dev/b /mnt/share/local xfs rw 0 0\n")
    assert sharing_of(Path("/mnt/share/home"), mounts) == "nfs4"
    assert sharing_of(Path("/mnt/share/local/home"), mounts) is None
    assert sharing_of(Path("/mnt/shared"), mounts) is None


def test_only_a_shared_folder_is_warned_of(tmp_path: Path) -> None:
    assert sharing_warning(tmp_path) is None
    assert sharing_warning(tmp_path / "Dropbox") == f"data_folder_shared: {tmp_path / 'Dropbox'}"


def test_conflict_copies_are_named(tmp_path: Path) -> None:
    copies = [
        "memory (Bob's conflicted copy 2026-11-27).md",
        "memory(冲突_2026).md",
        "memory.sync-conflict-20261127-101112-ABCDEFG.md",
    ]
    for name in [*copies, "memory.md", "memory-notes.md", "conflict.md", "memory.sync-conflict-1.txt"]:
        (tmp_path / name).touch()
    assert conflict_copies(tmp_path / "memory.md") == copies
    assert copies_warning(tmp_path / "memory.md") == f"conflict_copies: {', '.join(copies)}"
    assert copies_warning(tmp_path / "other.md") is None
    assert conflict_copies(tmp_path / "gone" / "memory.md") == []
