"""A file is swapped only if no other program changed it; no save of another program is overwritten."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from sync.errors import DocumentChanged, StorageError, StorageFull, StorageReadOnly
from sync.system import atomic_swap
from sync.system.atomic_swap import ExchangeRename, compare_and_swap, displaced_files, rename_no_replace
from sync.system.digests import sha256
from sync.system.files import pinned_folder, remove_temporary_files, write_private
from tests.unit.system.folder_state import leftovers, mode


class Killed(BaseException):
    """The process ended here."""


def raising(error: BaseException) -> Callable[[], NoReturn]:
    def fail() -> NoReturn:
        raise error

    return fail


def exchanging(before: Callable[[], object]) -> ExchangeRename:
    """The system's rename; something happens just before each one that has to do with the file itself."""

    def rename(source: Path, target: Path, *, new: bool) -> bool:
        if target.suffix != atomic_swap.DISPLACED_SUFFIX:
            before()
        return atomic_swap._system_rename(source, target, new=new)

    return rename


def test_bytes_are_synced_before_the_rename_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def noting_fsync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def noting_replace(path: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", noting_fsync)
    monkeypatch.setattr(Path, "replace", noting_replace)
    write_private(tmp_path / "a", b"x")
    compare_and_swap(tmp_path / "b", None, b"y", rename=exchanging(lambda: steps.append("rename")))
    compare_and_swap(tmp_path / "b", sha256(b"y"), b"z", rename=exchanging(lambda: steps.append("rename")))
    assert steps == ["file", "rename", "folder"] * 3


def test_an_unchanged_file_is_swapped_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "memory.md"
    path.write_bytes(b"before")
    path.chmod(0o664)
    compare_and_swap(path, sha256(b"before"), b"after")
    assert path.read_bytes() == b"after"
    assert mode(path) == 0o664


def test_a_new_file_is_private(tmp_path: Path) -> None:
    compare_and_swap(tmp_path / "memory.md", None, b"first")
    assert mode(tmp_path / "memory.md") == 0o600


@pytest.mark.parametrize(("found", "expected"), [(b"theirs", b"ours"), (b"theirs", None), (None, b"ours")])
def test_a_file_that_changed_is_left_as_it_is(tmp_path: Path, found: bytes | None, expected: bytes | None) -> None:
    path = tmp_path / "memory.md"
    if found is not None:
        path.write_bytes(found)
    with pytest.raises(DocumentChanged):
        compare_and_swap(path, None if expected is None else sha256(expected), b"new")
    assert (path.read_bytes() if path.exists() else None) == found
    assert not leftovers(tmp_path)


def test_a_change_between_reading_and_renaming_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "memory.md"
    path.write_bytes(b"before")
    fsync = os.fsync

    def an_editor_saves_meanwhile(descriptor: int) -> None:
        fsync(descriptor)
        path.write_bytes(b"theirs")

    monkeypatch.setattr(os, "fsync", an_editor_saves_meanwhile)
    with pytest.raises(DocumentChanged):
        compare_and_swap(path, sha256(b"before"), b"ours")
    assert path.read_bytes() == b"theirs"
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("saves", [[b"theirs"], [b"theirs", b"theirs again"], [b"theirs", None]])
def test_what_an_editor_saves_at_the_very_moment_of_the_rename_stays(tmp_path: Path, saves: list[bytes | None]) -> None:
    """`saves`: the content just before each of our renames; None: the editor has removed the file."""
    path = tmp_path / "memory.md"
    path.write_bytes(b"before")
    coming = iter(saves)

    def saving() -> None:
        if (saved := next(coming, b"")) is None:
            path.unlink()
        elif saved:
            (tmp_path / "swap").write_bytes(saved)
            (tmp_path / "swap").replace(path)

    with pytest.raises(DocumentChanged):
        compare_and_swap(path, sha256(b"before"), b"ours", rename=exchanging(saving))
    assert path.read_bytes() == [saved for saved in saves if saved][-1]
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("killed", [False, True])
def test_a_file_that_was_not_put_back_is_kept_and_never_removed(tmp_path: Path, killed: bool) -> None:
    """An editor saves just before the exchange, and before its undoing the disk fails, or the process is killed."""
    path = tmp_path / "memory.md"
    path.write_bytes(b"before")
    end = Killed() if killed else OSError(errno.EIO, "broken")
    steps: Iterator[Callable[[], object]] = iter([lambda: path.write_bytes(b"theirs"), raising(end)])

    def step() -> None:
        next(steps)()

    with pytest.raises(Killed if killed else StorageError):
        compare_and_swap(path, sha256(b"before"), b"ours", rename=exchanging(step))
    remove_temporary_files(tmp_path, name="memory.md")
    assert [aside.read_bytes() for aside in displaced_files(path)] == [b"theirs"]
    assert displaced_files(tmp_path / "memory") == []


@pytest.mark.parametrize("before", [b"before", None])
def test_a_file_that_appears_or_vanishes_at_that_moment_is_left_so(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "memory.md"
    if before is not None:
        path.write_bytes(before)

    def otherwise() -> None:
        path.unlink() if before is not None else path.write_bytes(b"theirs")

    with pytest.raises(DocumentChanged):
        compare_and_swap(path, None if before is None else sha256(before), b"ours", rename=exchanging(otherwise))
    assert (path.read_bytes() if path.exists() else None) == (None if before is not None else b"theirs")
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("before", [b"before", None])
def test_a_system_that_cannot_exchange_but_rename_to_a_free_name_renames(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "memory.md"
    if before is not None:
        path.write_bytes(before)

    def half(source: Path, target: Path, *, new: bool) -> bool:
        return new and atomic_swap._system_rename(source, target, new=True)

    compare_and_swap(path, None if before is None else sha256(before), b"ours", rename=half)
    assert path.read_bytes() == b"ours"
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("before", [b"before", None])
def test_a_system_that_cannot_exchange_files_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes | None
) -> None:
    path = tmp_path / "memory.md"
    if before is not None:
        path.write_bytes(before)
    monkeypatch.setattr(atomic_swap, "_rename_syscall", lambda *, new: (lambda *_: errno.EINVAL) if new else None)
    compare_and_swap(path, None if before is None else sha256(before), b"ours")
    assert path.read_bytes() == b"ours"
    assert not leftovers(tmp_path)


def unable(source: Path, target: Path, *, new: bool) -> bool:
    """The rename of a system that knows no other than the one that takes any place."""
    return False


def refusing(number: int) -> Callable[[Path, Path], None]:
    """A hard link on a file system that answers this."""

    def link(source: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number), str(source), None, str(target))

    return link


@pytest.mark.parametrize(
    "with_",
    [
        {},
        {"rename": unable},
        {"rename": unable, "link": refusing(errno.EPERM)},
        {"rename": unable, "link": refusing(errno.ENOTSUP)},
    ],
)
def test_a_new_file_never_replaces_another_on_any_file_system(tmp_path: Path, with_: dict[str, Any]) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    rename_no_replace(tmp_path / "one", tmp_path / "there", **with_)
    with pytest.raises(FileExistsError):
        rename_no_replace(tmp_path / "two", tmp_path / "there", **with_)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        rename_no_replace(tmp_path / "two", tmp_path / "dangling", **with_)
    assert {path.name for path in tmp_path.iterdir()} == {"there", "two", "dangling"}
    assert (tmp_path / "there").read_text() == "one"


def test_a_new_file_that_may_not_be_created_raises(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("one")
    with pytest.raises(PermissionError):
        rename_no_replace(tmp_path / "one", tmp_path / "there", rename=unable, link=refusing(errno.EACCES))
    assert not (tmp_path / "there").exists()


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "real.md", tmp_path / "link.md"
    target.write_bytes(b"before")
    link.symlink_to(target)
    compare_and_swap(link, sha256(b"before"), b"after")
    assert link.is_symlink()
    assert target.read_bytes() == b"after"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EDQUOT, StorageFull),
        (errno.EROFS, StorageReadOnly),
        (errno.EACCES, StorageReadOnly),
        (errno.EIO, StorageError),
    ],
)
def test_what_the_disk_says_becomes_our_error_and_the_old_bytes_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[StorageError]
) -> None:
    path = tmp_path / "memory.md"
    path.write_bytes(b"before")

    def failing(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(kind) as caught:
        compare_and_swap(path, sha256(b"before"), b"after")
    assert type(caught.value) is kind
    with pytest.raises(kind):
        write_private(path, b"after")
    assert path.read_bytes() == b"before"
    assert not leftovers(tmp_path)


class TestPinnedFolder:
    def test_a_folder_that_becomes_a_link_meanwhile_is_still_the_one_that_is_written(self, tmp_path: Path) -> None:
        folder, moved, outside = tmp_path / "project" / "daily", tmp_path / "project" / "moved", tmp_path / "outside"
        folder.mkdir(parents=True)
        outside.mkdir()

        def swap_for_a_link() -> None:
            folder.rename(moved)
            folder.symlink_to(outside)

        with pinned_folder(folder, within=tmp_path / "project") as pinned:
            compare_and_swap(pinned / "page.md", None, b"text", rename=exchanging(swap_for_a_link))
        assert list(outside.iterdir()) == []
        assert (moved / "page.md").read_bytes() == b"text"

    def test_a_folder_that_is_a_link_out_of_the_project_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "project").mkdir()
        (tmp_path / "outside").mkdir()
        (tmp_path / "project" / "daily").symlink_to(tmp_path / "outside")
        with (
            pytest.raises(StorageError, match="leads out of"),
            pinned_folder(tmp_path / "project" / "daily", within=tmp_path / "project"),
        ):
            raise AssertionError
