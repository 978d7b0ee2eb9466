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
from sync.files import PRIVATE_FILE, told

SUFFIX: Final = ".begun"
SAID: Final = b"The database beside this file has begun. Leave it here: it tells an emptied one from a new one.\n"
SMALLEST: Final = 2  # bytes of a file that SQLite does not take for a new database


class Emptied(StorageCorrupt):
    """Where a database was, there is nothing any more."""


def is_emptied(database: Path) -> bool:
    """Whether a database that had begun is gone or empty. Raises StorageError.

    Its size is asked last: another process may be making it, and the note and the log come when it has one.
    """
    with told(database):
        begun = _note(database).exists() or (_size(database.with_name(f"{database.name}-wal")) or 0) > 0
        size = _size(database)
        return begun and size is not None and size < SMALLEST


def refuse_emptied(database: Path) -> None:
    """Raise Emptied before anybody connects."""
    if is_emptied(database):
        raise Emptied(f"{database} is empty or gone, and it held a memory")


def put(database: Path) -> None:
    """Note that a database has begun. It need not be durable: the next who opens it notes it again."""
    with contextlib.suppress(OSError):
        descriptor = os.open(_note(database), os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(SAID)


def _note(database: Path) -> Path:
    return database.with_name(f"{database.name}{SUFFIX}")


def _size(path: Path) -> int | None:
    """In bytes, 0 where there is no file; None of what is no ordinary file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else None
