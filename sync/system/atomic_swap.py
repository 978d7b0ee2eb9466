"""Replace a user's file only if it did not change since it was read.

Between the last read and a rename, an editor can save. So the files are exchanged, not overwritten (Linux, macOS), and
what came out is compared. If it is not what was read, it goes back; if that fails, it stays beside the file under a
name that is never cleaned up (`displaced_files`). Elsewhere a gap of some microseconds remains.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from sync.errors import DocumentChanged
from sync.system import files
from sync.system.digests import sha256
from sync.system.files import (
    PRIVATE_FILE,
    FileProbe,
    FileStamp,
    read_once,
    resolve_target,
    stat_stamp,
    sync_folder,
    to_storage_error,
    translate_os_errors,
)

DISPLACED_SUFFIX: Final = ".aside"
# Errors of a file system without hard links; Windows reports an invalid function.
NO_HARD_LINK_CODES: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


class ExchangeRename(Protocol):
    """Exchange two files, or rename to a free name (`new`); False if the system cannot do that."""

    def __call__(self, source: Path, target: Path, *, new: bool) -> bool:
        """Raises FileNotFoundError, FileExistsError, OSError."""


HardLink = Callable[[Path, Path], None]


def compare_and_swap(
    path: Path, expected_sha256: str | None, data: bytes, *, rename: ExchangeRename | None = None
) -> FileStamp:
    """Write `data` to a user's file unless it changed since it was read.

    `expected_sha256` is None if there was no file. An existing file keeps its mode; a new one is 0600. Returns the
    stamp of the written file, taken before the rename: afterwards it could be of another program's save. `rename`
    replaces the system's.

    Raises DocumentChanged, StorageFull, StorageReadOnly, StorageError. After one of the last three, another program's
    save may be among `displaced_files`.
    """
    target = resolve_target(path)
    with translate_os_errors(target):
        before = read_once(target)
        _check_unchanged(before, expected_sha256, path)
        mode = PRIVATE_FILE if before is None else stat.S_IMODE(target.stat().st_mode)
        temporary = files.write_temporary(target, data, mode)
        try:
            _check_unchanged(read_once(target), expected_sha256, path)
            written = stat_stamp(temporary)
            assert written is not None  # it was written above
            if expected_sha256 is None:
                _create_target(temporary, target, rename or _system_rename)
            else:
                _swap_in(temporary, target, expected_sha256, sha256(data), rename or _system_rename)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        return written


def rename_no_replace(
    temporary: Path, path: Path, *, rename: ExchangeRename | None = None, link: HardLink | None = None
) -> None:
    """Rename a file to a free name. Raises FileExistsError, OSError.

    By a rename that does not replace, or a hard link. On a file system with neither (exFAT, some network shares)
    a gap between the check and the rename remains. `rename` and `link` replace the system's.
    """
    if not (rename or _system_rename)(temporary, path, new=True):
        try:
            (link or os.link)(temporary, path)
        except OSError as error:
            if error.errno not in NO_HARD_LINK_CODES:
                raise
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
            temporary.rename(path)  # which does not replace on Windows
        else:
            temporary.unlink()


def remove_unchanged(path: Path, expected_sha256: str) -> None:
    """Remove a user's file unless it changed since it was read. Raises DocumentChanged, StorageError."""
    target = resolve_target(path)
    with translate_os_errors(target):
        _check_unchanged(read_once(target), expected_sha256, path)
        target.unlink()
        sync_folder(target.parent)


def displaced_files(path: Path) -> list[Path]:
    """The files that failed or killed exchanges took out and did not put back.

    Such a file may be another program's save, the version read before, or ours. Nothing here removes it. Raises
    StorageError.
    """
    target = resolve_target(path)
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}{re.escape(DISPLACED_SUFFIX)}")
    try:
        return sorted(entry for entry in target.parent.iterdir() if pattern.fullmatch(entry.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise to_storage_error(error, target) from error


def _check_unchanged(probe: FileProbe | None, expected_sha256: str | None, path: Path) -> None:
    if (None if probe is None else probe.sha256) != expected_sha256:
        raise DocumentChanged(f"{path.name} changed while it was being written")


def _create_target(temporary: Path, path: Path, rename: ExchangeRename) -> None:
    """Create a file. Raises DocumentChanged if one exists by now."""
    try:
        done = rename(temporary, path, new=True)
    except FileExistsError:
        raise DocumentChanged(f"{path.name} appeared while it was being written") from None
    if not done:
        files.replace_with_retry(temporary, path)
        return
    sync_folder(path.parent)


def _swap_in(temporary: Path, path: Path, expected_sha256: str, ours: str, rename: ExchangeRename) -> None:
    """Replace the file that was read, by an exchange if the system can.

    Raises DocumentChanged if it was another file; then the newest save of another program is in place again. Before the
    exchange the temporary file gets a name that no start removes, because the displaced file will have it.
    """
    aside = temporary.with_suffix(DISPLACED_SUFFIX)
    if not rename(temporary, aside, new=True):
        files.replace_with_retry(temporary, path)
        return
    try:
        _exchange_and_verify(aside, path, expected_sha256, ours, rename)
    except BaseException:
        _remove_if_ours(aside, ours=ours)
        raise


def _exchange_and_verify(displaced: Path, path: Path, expected_sha256: str, ours: str, rename: ExchangeRename) -> None:
    try:
        done = rename(displaced, path, new=False)
    except FileNotFoundError:
        raise DocumentChanged(f"{path.name} vanished while it was being written") from None
    if not done:
        files.replace_with_retry(displaced, path)
        return
    if (found := sha256(displaced.read_bytes())) != expected_sha256:
        _undo_exchange(displaced, path, found, ours, rename)
        raise DocumentChanged(f"{path.name} changed while it was being written")
    displaced.unlink()
    sync_folder(path.parent)


def _undo_exchange(displaced: Path, path: Path, displaced_sha256: str, ours: str, rename: ExchangeRename) -> None:
    """Undo an exchange that displaced a new save, however often the file is saved again."""
    seen = {ours}
    while displaced_sha256 not in seen:  # our own content, or what we put back, is not lost
        seen.add(displaced_sha256)
        try:
            rename(displaced, path, new=False)
        except FileNotFoundError:
            files.replace_with_retry(displaced, path)
            return
        displaced_sha256 = sha256(displaced.read_bytes())
    displaced.unlink()
    sync_folder(path.parent)


def _remove_if_ours(displaced: Path, *, ours: str) -> None:
    """Remove our file. After an exchange that could not be undone, it is the only copy of another program's save."""
    with contextlib.suppress(OSError):
        if sha256(displaced.read_bytes()) == ours:
            displaced.unlink()


def _system_rename(source: Path, target: Path, *, new: bool) -> bool:
    """`ExchangeRename` by the system."""
    call = _rename_syscall(new=new)
    error = call(os.fsencode(source), os.fsencode(target)) if call else errno.ENOSYS
    if error in {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}:
        return False
    if error:
        raise OSError(error, os.strerror(error), str(target))
    return True


@cache
def _rename_syscall(*, new: bool) -> Callable[[bytes, bytes], int] | None:
    """The system's call, which returns its error: renameat2(2) of Linux, renamex_np(2) of macOS."""
    import ctypes  # noqa: PLC0415 - not before a file is written

    system = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    here = -100  # AT_FDCWD
    if linux := getattr(system, "renameat2", None):
        flag = 1 if new else 2  # RENAME_NOREPLACE, RENAME_EXCHANGE
        return lambda source, target: ctypes.get_errno() if linux(here, source, here, target, flag) else 0
    if macos := getattr(system, "renamex_np", None):
        flag = 4 if new else 2  # RENAME_EXCL, RENAME_SWAP
        return lambda source, target: ctypes.get_errno() if macos(source, target, flag) else 0
    return None
