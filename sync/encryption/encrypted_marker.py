"""A marker beside a database that may be encrypted, so that it is not taken for a damaged one."""

from pathlib import Path
from typing import Final

from sync.system.files import remove_private, write_private

MARKER_FILE: Final = "encrypted.txt"
MARKER_TEXT: Final = (
    b"memory.db in this folder is encrypted (SQLCipher 4). Its key is in the keychain of the operating system,\n"
    b"in the entry 'xiaobai-memory database key' named as this folder, or in the file database-key beside it.\n"
    b"Leave this file here: it keeps an encrypted database from being taken for a damaged one.\n"
)


def is_marked(database: Path) -> bool:
    return database.with_name(MARKER_FILE).exists()


def write_marker(database: Path) -> None:
    """Durable when this returns. Raises StorageError."""
    write_private(database.with_name(MARKER_FILE), MARKER_TEXT)


def remove_marker(database: Path) -> None:
    remove_private(database.with_name(MARKER_FILE))
