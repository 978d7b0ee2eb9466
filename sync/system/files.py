"""The file system's edge: private folders, stable reads, writes that are whole or not at all.

What differs between operating systems lives here. Run on Linux; written for macOS and Windows from their
documentation (`os.replace` is atomic on all three; Windows refuses it while another program has the file open
without share-delete, so it is retried for a moment; folders cannot be fsynced there).

A file of the user's is exchanged with ours, not overwritten, where the system can (Linux, macOS): between the last look
at it and a rename an editor can save, and what it saved would be gone. What came out of the exchange is looked at, and
put back where it is not what was read; where that fails, or a kill comes between, it stands aside under a name that is
never cleared away (`displaced_files`). Elsewhere that moment is left, some microseconds of it.
"""

import contextlib
import errno
import math
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from sync.errors import DocumentChanged, StorageError, StorageFull, StorageReadOnly
from sync.system.digests import sha256

PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600
REPLACE_TIMEOUT: Final = 1.0  # seconds an antivirus or an editor may hold a file open on Windows
REPLACE_PAUSE: Final = 0.02
DISPLACED_SUFFIX: Final = ".aside"
# What a file system without hard links answers; Windows says it as an invalid function.
NO_HARD_LINK_CODES: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
MAX_READ_BYTES: Final = 64 * 1024 * 1024  # never read more than this of a file somebody else writes


@dataclass(frozen=True, slots=True)
class FileProbe:
    """What a file was at one look. Two equal probes a moment apart mean nobody was writing."""

    size: int
    mtime_ns: int
    inode: int
    sha256: str
    data: bytes


class ExchangeRename(Protocol):
    """Exchange two files, or rename to a name that nothing has (`new`); False where that cannot be done here."""

    def __call__(self, source: Path, target: Path, *, new: bool) -> bool:
        """Raises FileNotFoundError, FileExistsError, OSError."""


HardLink = Callable[[Path, Path], None]
FileStamp = tuple[int, int, int]  # size, mtime_ns, inode: cheap to ask, good enough to say "look again"


def make_private_folder(path: Path) -> None:
    """Create a folder that only this user can enter; missing parents likewise."""
    with translate_os_errors(path):
        for folder in reversed([path, *path.parents]):
            if folder == path or not folder.exists():
                folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(PRIVATE_FOLDER)


def make_folder_below(root: Path, path: Path) -> None:
    """Create a folder below `root` that only this user can enter, with its parents. What is there keeps its mode."""
    with translate_os_errors(path):
        for folder in reversed([path, *path.parents]):
            if folder.is_relative_to(root) and not folder.is_dir():
                folder.mkdir(mode=PRIVATE_FOLDER)


def resolve_target(path: Path) -> Path:
    """Where writing to `path` ends up: symlinks are followed, so that the link itself stays."""
    return Path(os.path.realpath(path))


def stat_stamp(path: Path) -> FileStamp | None:
    """What `stat` says, or None where there is no file."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _to_storage_error(error, path) from error
    return found.st_size, found.st_mtime_ns, found.st_ino


def read_once(path: Path) -> FileProbe | None:
    """Read a file once, or None where there is none. Raises StorageError."""
    try:
        with open(path, "rb", opener=_open_nonblocking) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise StorageError(f"{path} is no ordinary file", hint="Put a file in its place, or name another one.")
            data = file.read(MAX_READ_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _to_storage_error(error, path) from error
    return FileProbe(found.st_size, found.st_mtime_ns, found.st_ino, sha256(data), data)


def _open_nonblocking(path: str, flags: int) -> int:
    """Open at once: a pipe would wait for somebody who writes into it, with everything that waits for us."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def write_private(path: Path, data: bytes) -> None:
    """Replace a file of ours (0600), whole or not at all, durable when this returns."""
    with translate_os_errors(path):
        temporary = _write_temporary(path, data, PRIVATE_FILE)
        try:
            _replace_with_retry(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


def remove_private(path: Path) -> None:
    """Remove a file of ours; where there is none, that is what we wanted."""
    with translate_os_errors(path):
        path.unlink(missing_ok=True)


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
        temporary = _write_temporary(target, data, mode)
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


def remove_temporary_files(folder: Path, *, name: str | None = None, before: float = math.inf) -> None:
    """Take away the temporary files that killed writers left: of the file `name`, or of every file in the folder.

    `before`: only what was last written before this time, in seconds since 1970; a living writer's is younger.
    What cannot be removed now is left to the next call.
    """
    pattern = re.compile(rf"\.{'.+' if name is None else re.escape(name)}\.[0-9a-f]{{8}}\.tmp")
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if pattern.fullmatch(path.name) and path.lstat().st_mtime < before:
                path.unlink(missing_ok=True)


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
        raise _to_storage_error(error, target) from error


def _check_unchanged(probe: FileProbe | None, expected_sha256: str | None, path: Path) -> None:
    if (None if probe is None else probe.sha256) != expected_sha256:
        raise DocumentChanged(f"{path.name} changed while it was being written")


def _write_temporary(path: Path, data: bytes, mode: int) -> Path:
    """A synced file beside `path`: the same folder, because a rename across file systems is a copy."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if os.name == "posix":
            temporary.chmod(mode)  # the umask may have taken bits the user's file has
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _create_target(temporary: Path, path: Path, rename: ExchangeRename) -> None:
    """Put a file where none stood. Raises DocumentChanged where one does by now."""
    try:
        done = rename(temporary, path, new=True)
    except FileExistsError:
        raise DocumentChanged(f"{path.name} appeared while it was being written") from None
    if not done:
        _replace_with_retry(temporary, path)
        return
    sync_folder(path.parent)


def _swap_in(temporary: Path, path: Path, expected_sha256: str, ours: str, rename: ExchangeRename) -> None:
    """Put a file in the place of what was read, by an exchange where the system can.

    Raises DocumentChanged where something else stood there; then the newest that somebody else saved stands there
    again. Before the exchange the file gets a name that no start clears away: it will be that of what is taken out.
    """
    aside = temporary.with_suffix(DISPLACED_SUFFIX)
    if not rename(temporary, aside, new=True):
        _replace_with_retry(temporary, path)
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
        _replace_with_retry(displaced, path)
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
            _replace_with_retry(displaced, path)
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


def _replace_with_retry(temporary: Path, path: Path) -> None:
    deadline = time.monotonic() + REPLACE_TIMEOUT
    while True:
        try:
            temporary.replace(path)
            break
        except PermissionError:
            if os.name != "nt" or time.monotonic() > deadline:
                temporary.unlink(missing_ok=True)
                raise
            time.sleep(REPLACE_PAUSE)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make what was put into a folder, or taken out of it, outlast a power loss."""
    if os.name == "nt":  # a folder has no handle to flush there; NTFS journals the rename
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def translate_os_errors(path: Path) -> Iterator[None]:
    """Raise the operating system's errors as ours, naming the path."""
    try:
        yield
    except OSError as error:
        raise _to_storage_error(error, path) from error


def _to_storage_error(error: OSError, path: Path) -> StorageError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StorageFull(f"no space left for {path}")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return StorageReadOnly(f"no permission for {path}")
    if error.errno == errno.EISDIR:
        return StorageError(f"{path} is a folder, not a file", hint="Move the folder away, or name another file.")
    return StorageError(f"{errno.errorcode.get(error.errno or 0, 'an error')} for {path}")
