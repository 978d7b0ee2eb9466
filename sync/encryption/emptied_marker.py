"""A marker beside a database that has had content: an empty file in its place is then a loss, not a beginning.

SQLite takes a file of zero bytes, or of one (`unixFileSize` in os_unix.c), for a new database and deletes the
write-ahead log beside it, even when it only reads. So the marker is checked before every connection. It is written
after the first commit, and its name begins with the database's, so that it is moved together with it.
"""

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

from sync.errors import StorageCorrupt, StorageError
from sync.system.files import PRIVATE_FILE, translate_os_errors

MARKER_SUFFIX: Final = ".begun"
MARKER_TEXT: Final = (
    b"The database beside this file has begun. Leave it here: it tells an emptied one from a new one.\n"
)
COMPANION_FILES: Final = ("session.json", "device-key")  # of a profile: none of them is there before its database
MIN_DATABASE_BYTES: Final = 4096  # one page; SQLite takes a shorter file for a database without tables


class EmptiedDatabase(StorageCorrupt):
    """The database had content, and its file is empty or gone."""


def has_begun(database: Path) -> bool:
    """Whether files beside a database say that it had content. Raises StorageError.

    A write-ahead log alone does not: of the first commit, a power cut may leave a part.
    """
    with translate_os_errors(database):
        beside = (_marker_path(database), *(database.with_name(name) for name in COMPANION_FILES))
        return any(path.exists() for path in beside)


def is_emptied(database: Path) -> bool:
    """Whether a database that had begun is gone, or shorter than a page. Raises StorageError.

    Check the size last: another process may be creating it, and the marker and the log come after its first page.
    """
    begun = has_begun(database)
    with translate_os_errors(database):
        begun = begun or bool(_file_size(database.with_name(f"{database.name}-wal")))
        size = _file_size(database)
        return begun and size is not None and size < MIN_DATABASE_BYTES


def refuse_emptied(database: Path) -> None:
    """Raise EmptiedDatabase before a connection is made; StorageError for a folder, or a pipe, which would block."""
    with translate_os_errors(database):
        if _file_size(database) is None:
            hint = "Move it away: the next start brings back what the event files and the cloud have."
            raise StorageError(f"{database} is no ordinary file", hint=hint)
    if is_emptied(database):
        raise EmptiedDatabase(f"{database} is empty or gone, and it held a memory")


def write_marker(database: Path) -> None:
    """Write the marker. It need not be durable: the next open writes it again."""
    with contextlib.suppress(OSError):
        descriptor = os.open(_marker_path(database), os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(MARKER_TEXT)


def _marker_path(database: Path) -> Path:
    return database.with_name(f"{database.name}{MARKER_SUFFIX}")


def _file_size(path: Path) -> int | None:
    """The size in bytes, 0 if there is no file; None if it is no ordinary file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else None
