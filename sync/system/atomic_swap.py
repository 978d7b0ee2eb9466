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
    """Exchange two files, or rename to a name that nothing has (`new`); False where that cannot be done here."""

    def __call__(self, source: Path, target: Path, *, new: bool) -> bool:
        """Raises FileNotFoundError, FileExistsError, OSError."""


HardLink = Callable[[Path, Path], None]


def compare_and_swap(
    path: Path, expected_sha256: str | None, data: bytes, *, rename: ExchangeRename | None = None
) -> FileStamp:
    """Write `data` to a file of the user's unless it changed since it was read.

    `expected_sha256` is None where there was no file. The mode of an existing file stays; a new one is 0600. Returns
    the stamp of what was written, taken before the rename: asked afterwards, it could be that of somebody who saved in
    between. `rename`: another one than the system's.

    Raises DocumentChanged, StorageFull, StorageReadOnly, StorageError. After one of the last three, what somebody else
    saved may stand aside (`displaced_files`).
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
            assert written is not None  # it was made two lines above
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
    """Put a file where none stands. Raises FileExistsError, OSError.

    By a rename that takes nobody's place, or a hard link. Where a file system has neither (exFAT under some systems,
    some network shares), the moment between the last look and the rename is left. Other `rename` and `link` than the
    system's may be given.
    """
    if not (rename or _system_rename)(temporary, path, new=True):
        try:
            (link or os.link)(temporary, path)
        except OSError as error:
            if error.errno not in NO_HARD_LINK_CODES:
                raise
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
            temporary.rename(path)  # which on Windows never takes a place either
        else:
            temporary.unlink()


def remove_unchanged(path: Path, expected_sha256: str) -> None:
    """Remove a file of the user's unless it changed since it was read. Raises DocumentChanged, StorageError."""
    target = resolve_target(path)
    with translate_os_errors(target):
        _check_unchanged(read_once(target), expected_sha256, path)
        target.unlink()
        sync_folder(target.parent)


def displaced_files(path: Path) -> list[Path]:
    """What exchanges with a file took out and did not put back, because they failed or were killed.

    It may be what somebody else saved, what was read before, or ours. Nothing here ever clears it away. StorageError.
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
    """Put a file where none stood. Raises DocumentChanged where one does by now."""
    try:
        done = rename(temporary, path, new=True)
    except FileExistsError:
        raise DocumentChanged(f"{path.name} appeared while it was being written") from None
    if not done:
        files.replace_with_retry(temporary, path)
        return
    sync_folder(path.parent)


def _swap_in(temporary: Path, path: Path, expected_sha256: str, ours: str, rename: ExchangeRename) -> None:
    """Put a file in the place of what was read, by an exchange where the system can.

    Raises DocumentChanged where something else stood there; then the newest that somebody else saved stands there
    again. Before the exchange the file gets a name that no start clears away: it will be that of what is taken out.
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
    """Undo an exchange that took out what was saved meanwhile, however often it is saved again."""
    seen = {ours}
    while displaced_sha256 not in seen:  # of ours, or of what we have put back ourselves, nothing is lost
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
    """Remove our file; after an exchange that could not be undone it is the only copy of what is theirs."""
    with contextlib.suppress(OSError):
        if sha256(displaced.read_bytes()) == ours:
            displaced.unlink()


def _system_rename(source: Path, target: Path, *, new: bool) -> bool:
    """`RenameParams` by the system itself."""
    call = _rename_syscall(new=new)
    error = call(os.fsencode(source), os.fsencode(target)) if call else errno.ENOSYS
    if error in {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}:
        return False
    if error:
        raise OSError(error, os.strerror(error), str(target))
    return True


@cache
def _rename_syscall(*, new: bool) -> Callable[[bytes, bytes], int] | None:
    """The system's call, answering its error: renameat2(2) of Linux, renamex_np(2) of macOS."""
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
