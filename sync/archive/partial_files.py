"""Files while they are written, and the cleanup of those that killed writers left.

A writer holds a lock on its file, and the lock ends with the process. So any process may remove a file that is not
locked. Windows removes no open file; on a file system without either, the file stays.
"""

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from sync.system.files import PRIVATE_FILE, translate_os_errors

PARTIAL_SUFFIX: Final = ".part"


@contextmanager
def partial_file(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Create a private file beside `path` for the duration of the block. Raises StorageError.

    The file is removed at the end unless the block moved it.
    """
    with translate_os_errors(path):
        temporary, descriptor = _create_locked(path)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:  # closed before it is moved; the lock stays
            if os.name == "nt":  # an open file cannot be renamed
                os.close(descriptor)
            yield temporary, file
    finally:
        temporary.unlink(missing_ok=True)
        if os.name != "nt":
            os.close(descriptor)


def remove_partial_files(folder: Path, *, name: str | None = None) -> None:
    """Remove what killed writers left of the file `name`, or of every file in the folder.

    A file that cannot be removed now is left to the next call.
    """
    pattern = re.compile(rf"\.{'.+' if name is None else re.escape(name)}\.[0-9a-f]{{8}}{re.escape(PARTIAL_SUFFIX)}")
    with contextlib.suppress(OSError):
        for path in [path for path in folder.iterdir() if pattern.fullmatch(path.name)]:
            with contextlib.suppress(OSError):
                _remove_unlocked(path)


def _create_locked(path: Path) -> tuple[Path, int]:
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}")
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, PRIVATE_FILE)
        with contextlib.suppress(OSError):  # a file system without locks: no process removes it either
            _lock(descriptor, wait=True)
        if os.fstat(descriptor).st_nlink:
            return temporary, descriptor
        os.close(descriptor)  # removed before it was locked


def _remove_unlocked(path: Path) -> None:
    """Remove a file. Raises OSError if its writer is alive."""
    if os.name == "nt":
        path.unlink()
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        _lock(descriptor, wait=False)
        path.unlink()
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool) -> None:
    if os.name != "nt":
        import fcntl  # noqa: PLC0415 - is not there on Windows

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
