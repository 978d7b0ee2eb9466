"""File-system access: private folders, consistent reads, writes of our own files that happen completely or not at all.

What differs between operating systems is handled here. Run on Linux; written for macOS and Windows from their
documentation: `os.replace` is atomic on all three, Windows refuses it while another program has the file open without
share-delete, so it is retried for a moment; folders cannot be fsynced there.
"""

import contextlib
import errno
import math
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from sync.errors import StorageError, StorageFull, StorageReadOnly
from sync.system.digests import sha256

PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600
REPLACE_TIMEOUT: Final = 1.0  # seconds an antivirus or an editor may hold a file open on Windows
REPLACE_PAUSE: Final = 0.02
_SF_DATALESS: Final = 0x40000000  # macOS
_RECALL_ON_DATA_ACCESS: Final = 0x00400000  # Windows
_OPEN_FILES: Final = Path("/proc/self/fd")
MAX_READ_BYTES: Final = 64 * 1024 * 1024  # most bytes to read of a file that other programs write


class FileProbe(msgspec.Struct, frozen=True):
    """A file's content and stat at one time. Two equal probes a moment apart mean that no program was writing."""

    size: int
    mtime_ns: int
    inode: int
    sha256: str
    data: bytes


FileStamp = tuple[int, int, int]  # size, mtime_ns, inode: cheap, and enough to notice a change


def make_private_folder(path: Path) -> None:
    """Create a folder that only this user can enter; missing parents likewise."""
    with translate_os_errors(path):
        for folder in reversed([path, *path.parents]):
            if folder == path or not folder.exists():
                folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(PRIVATE_FOLDER)


def make_folder_below(root: Path, path: Path) -> None:
    """Create a private folder below `root` with its parents. Existing folders keep their mode."""
    with translate_os_errors(path):
        for folder in reversed([path, *path.parents]):
            if folder.is_relative_to(root) and not folder.is_dir():
                folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


@contextmanager
def pinned_folder(folder: Path, *, within: Path) -> Iterator[Path]:
    """A path of a folder below `within` that means the same folder when its name becomes a link to another one.

    Linux can name an open folder; elsewhere there is a gap between this check and a write. Raises StorageError.
    """
    if not hasattr(os, "O_PATH"):
        yield folder
        return
    with translate_os_errors(folder):
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        pinned = _OPEN_FILES / str(descriptor)
        if not pinned.readlink().is_relative_to(os.path.realpath(within)):
            raise StorageError(f"{folder} leads out of {within}", hint="Put a folder in the place of the link.")
        yield pinned
    finally:
        os.close(descriptor)


def resolve_target(path: Path) -> Path:
    """The file that `path` leads to; a link itself stays, and so does a file of a pinned folder."""
    return path if path.is_relative_to(_OPEN_FILES) else Path(os.path.realpath(path))


def stat_stamp(path: Path) -> FileStamp | None:
    """The file's stamp, or None if there is no file."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise to_storage_error(error, path) from error
    return found.st_size, found.st_mtime_ns, found.st_ino


def read_once(path: Path) -> FileProbe | None:
    """Read a file once; None if there is none. Raises StorageError."""
    try:
        with open(path, "rb", opener=_open_nonblocking) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise StorageError(f"{path} is no ordinary file", hint="Put a file in its place, or name another one.")
            data = b"" if _is_dataless(found) else file.read(MAX_READ_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        if path.with_name(f".{path.name}.icloud").exists():  # iCloud's before macOS 14
            raise _placeholder(path) from None
        return None
    except OSError as error:
        raise to_storage_error(error, path) from error
    if found.st_size and not data.strip(b"\0") and getattr(found, "st_blocks", 0) == 0:
        raise _placeholder(path)
    return FileProbe(found.st_size, found.st_mtime_ns, found.st_ino, sha256(data), data)


def _is_dataless(found: os.stat_result) -> bool:
    """Whether reading waits until a cloud service has fetched the content (macOS, Windows)."""
    return bool(
        getattr(found, "st_flags", 0) & _SF_DATALESS or getattr(found, "st_file_attributes", 0) & _RECALL_ON_DATA_ACCESS
    )


def _placeholder(path: Path) -> StorageError:
    hint = "Let the cloud service keep this file on this device, or move it to a folder outside of the cloud."
    return StorageError(f"{path} is a placeholder of a cloud folder: its content is not on this disk", hint=hint)


def _open_nonblocking(path: str, flags: int) -> int:
    """Open without waiting: opening a pipe would block until it has a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def write_private(path: Path, data: bytes) -> None:
    """Replace a file of ours (0600) atomically; durable when this returns."""
    with translate_os_errors(path):
        temporary = write_temporary(path, data, PRIVATE_FILE)
        try:
            replace_with_retry(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


def remove_private(path: Path) -> None:
    """Remove a file of ours, if it exists."""
    with translate_os_errors(path):
        path.unlink(missing_ok=True)


def remove_temporary_files(folder: Path, *, name: str | None = None, before: float = math.inf) -> None:
    """Remove the temporary files of killed writers: of the file `name`, or of every file in the folder.

    `before`: only files last written before this time, in seconds since 1970; a running writer's is younger. A file
    that cannot be removed now is left to the next call.
    """
    pattern = re.compile(rf"\.{'.+' if name is None else re.escape(name)}\.[0-9a-f]{{8}}\.tmp")
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if pattern.fullmatch(path.name) and path.lstat().st_mtime < before:
                path.unlink(missing_ok=True)


def write_temporary(path: Path, data: bytes, mode: int) -> Path:
    """Write a synced file beside `path`: in the same folder, because a rename across file systems is a copy."""
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


def replace_with_retry(temporary: Path, path: Path) -> None:
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
    """Make the creation, rename or removal of a folder's files durable."""
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
        raise to_storage_error(error, path) from error


def to_storage_error(error: OSError, path: Path) -> StorageError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StorageFull(f"no space left for {path}")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return StorageReadOnly(f"no permission for {path}")
    if error.errno == errno.EISDIR:
        return StorageError(f"{path} is a folder, not a file", hint="Move the folder away, or name another file.")
    if error.errno in {errno.EEXIST, errno.ELOOP}:
        return StorageError(f"{path} is something else than expected: a file or a link", hint="Move it away.")
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        hint = "Check the path, and create the folder if it is missing."
        return StorageError(f"{path} or its folder does not exist", hint=hint)
    return StorageError(f"{errno.errorcode.get(error.errno or 0, 'an error')} for {path}")
