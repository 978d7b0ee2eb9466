"""The note beside a database that it has begun: an empty file in its place is then a loss, and no beginning.

SQLite takes a file of zero bytes, or of one (as a workaround writes it: `unixFileSize` of its os_unix.c), for a new
database, and deletes the write-ahead log beside it at the first look, be it one that only reads. So whoever connects
asks here first. The note comes after the first commit: a database that was being made when its process was killed has
none, and is begun again. Its name begins as the database's: who moves those files away, all of them, begins anew.
"""

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

from sync.errors import StorageCorrupt
from sync.system.files import PRIVATE_FILE, translate_os_errors

MARKER_SUFFIX: Final = ".begun"
MARKER_TEXT: Final = (
    b"The database beside this file has begun. Leave it here: it tells an emptied one from a new one.\n"
)
MIN_DATABASE_BYTES: Final = 2  # bytes of a file that SQLite does not take for a new database


class EmptiedDatabase(StorageCorrupt):
    """Where a database was, there is nothing any more."""


def is_emptied(database: Path) -> bool:
    """Whether a database that had begun is gone or empty. Raises StorageError.

    Its size is asked last: another process may be making it, and the note and the log come when it has one.
    """
    with translate_os_errors(database):
        begun = _marker_path(database).exists() or (_file_size(database.with_name(f"{database.name}-wal")) or 0) > 0
        size = _file_size(database)
        return begun and size is not None and size < MIN_DATABASE_BYTES


def refuse_emptied(database: Path) -> None:
    """Raise Emptied before anybody connects."""
    if is_emptied(database):
        raise EmptiedDatabase(f"{database} is empty or gone, and it held a memory")


def write_marker(database: Path) -> None:
    """Note that a database has begun. It need not be durable: the next who opens it notes it again."""
    with contextlib.suppress(OSError):
        descriptor = os.open(_marker_path(database), os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(MARKER_TEXT)


def _marker_path(database: Path) -> Path:
    return database.with_name(f"{database.name}{MARKER_SUFFIX}")


def _file_size(path: Path) -> int | None:
    """In bytes, 0 where there is no file; None of what is no ordinary file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else None
