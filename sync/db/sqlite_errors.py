"""SQLite's result codes as our errors: one table, read by every transaction."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import DBAPIError

from sync.encryption.driver import driver_errors
from sync.errors import (
    StorageBusy,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageReadOnly,
    XiaobaiError,
)

# Primary result codes of https://www.sqlite.org/rescode.html
ERROR_BY_CODE: Final[dict[int, type[StorageError]]] = {
    sqlite3.SQLITE_FULL: StorageFull,
    sqlite3.SQLITE_READONLY: StorageReadOnly,
    sqlite3.SQLITE_PERM: StorageReadOnly,
    sqlite3.SQLITE_CANTOPEN: StorageReadOnly,
    sqlite3.SQLITE_BUSY: StorageBusy,
    sqlite3.SQLITE_LOCKED: StorageBusy,
    sqlite3.SQLITE_CORRUPT: StorageCorrupt,
    sqlite3.SQLITE_NOTADB: StorageCorrupt,
}

NOT_UTF8_PREFIX: Final = (
    "Could not decode to UTF-8"  # how Python's driver begins, without a code: SQLite itself would not mind
)

# One statement's own fault: the transaction around it is whole, and what else it holds may be committed.
STATEMENT_ERROR_CODES: Final = frozenset(
    {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE}
)


def corruption_errors() -> tuple[type[Exception], ...]:
    """What a statement on a damaged file may raise.

    Where SQLite's message quotes a damaged schema, Python's driver fails on the message, and no error of SQLite is
    seen.
    """
    return driver_errors("DatabaseError", also=(UnicodeDecodeError,))


def breaks_transaction(error: BaseException) -> bool:
    """Whether an error concerns everybody who shares the transaction: the disk, the lock, the file."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    return to_storage_error(error) is not None and code not in STATEMENT_ERROR_CODES


def is_busy(error: BaseException) -> bool:
    """Whether another connection holds the lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def is_disk_failure(error: BaseException) -> bool:
    """Whether the disk itself refused to read, write or flush; its content is then unknown."""
    while error.__cause__ is not None and not isinstance(error, DBAPIError):
        error = error.__cause__
    cause = error.orig if isinstance(error, DBAPIError) else error
    return (
        isinstance(cause, driver_errors("Error"))
        and getattr(cause, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR
    )


def may_be_bad_row(error: Exception) -> bool:
    """Whether a transaction may have met a row that it could not understand. What we raise on purpose says so."""
    return not isinstance(error, XiaobaiError) or type(error) in {StorageCorrupt, StorageError, StorageFull}


def to_storage_error(error: BaseException) -> StorageError | None:
    """The error of ours for one of SQLite's, or None if a constraint or a defect of ours is the cause."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(cause, driver_errors("Error")):
        return None
    if str(cause).startswith(NOT_UTF8_PREFIX):  # its message holds the text itself, so it must not get out
        return StorageCorrupt("a text in the database is not UTF-8")
    code = getattr(cause, "sqlite_errorcode", None)
    if isinstance(cause, driver_errors("IntegrityError", "ProgrammingError")) or code is None:
        return None
    kind = ERROR_BY_CODE.get(code & 0xFF, StorageError)
    return kind(f"SQLite reported {getattr(cause, 'sqlite_errorname', code)}")


@contextmanager
def translate_sqlite_errors() -> Iterator[None]:
    """Raise SQLite's failures as ours."""
    try:
        yield
    except driver_errors("Error", also=(DBAPIError,)) as error:
        ours = to_storage_error(error)
        if ours is None:
            raise
        raise ours from error


@contextmanager
def translate_undecodable_schema() -> Iterator[None]:
    """Raise as damage that SQLite's complaint about a schema quotes what is no text (see `corruption_errors`)."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise StorageCorrupt("the schema of the database is no text") from error
