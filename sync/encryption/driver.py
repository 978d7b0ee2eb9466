"""Opening a database file: the one place in which a driver connects.

Decisions
    Two builds of SQLite in one process do not see each other's locks on a file, and the first that closes it takes the
    other's away (POSIX locks belong to the process: sqlite.org/howtocorrupt.html, 2.2.1). So a process uses the
    encrypting driver for everything as soon as its setting says so, for databases that are still plain too; the
    standard library's is the driver of processes without the setting.
    For the same reason nobody looks at the first bytes of a database to see whether it is encrypted: closing a file
    that SQLite has open gives up its locks. A mark beside the file says it (`sync.encryption.encrypted_marker`).
"""

import importlib
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from sync.encryption.key import DatabaseKey
from sync.errors import SettingsError

CIPHER_MODULE: Final = "sqlcipher3"  # SQLCipher with its own SQLite, as DB-API 2
CIPHER_FORMAT: Final = (
    4  # of SQLCipher's files: 4 KiB pages, AES-256-CBC, HMAC-SHA512; fixed, whatever its next default is
)
INSTALL_HINT: Final = (
    "In the folder of the sources: pip install '.[encryption]' (make setup does it). It is needed while"
    " XIAOBAI_PRIVACY__ENCRYPT_AT_REST is true, and as long as a database is encrypted. Nothing was touched."
)

_loaded_drivers: Final[list[Any]] = [sqlite3]


class DatabaseAccess(NamedTuple):
    """How one database file is opened: the driver (a module as DB-API 2 describes it), and the key where it has one."""

    driver: Any = sqlite3
    key: DatabaseKey | None = None

    def connect(self, database: Path, *, timeout: float = 5.0, read_only: bool = False) -> sqlite3.Connection:
        """A connection for any thread, without transactions of Python's own. `timeout` in seconds."""
        connection: sqlite3.Connection = self.driver.connect(
            f"file:{quote(str(database))}?mode=ro" if read_only else str(database),
            timeout,
            uri=read_only,
            isolation_level=None,
            check_same_thread=False,
        )
        if self.driver is not sqlite3:
            connection.execute("pragma cipher_log_level = none")  # it writes to stderr what it raises as well
        if self.key is not None:
            connection.execute(f'pragma key = "{self.key.sql_literal}"')
            connection.execute(f"pragma cipher_compatibility = {CIPHER_FORMAT}")
        return connection


PLAIN_ACCESS: Final = DatabaseAccess()


@cache
def cipher_driver() -> Any:
    """The encrypting driver. Raises SettingsError where the extra is not installed."""
    try:
        driver = importlib.import_module(f"{CIPHER_MODULE}.dbapi2")
    except ImportError as error:
        raise SettingsError("the driver for encrypted databases is not installed", hint=INSTALL_HINT) from error
    _loaded_drivers.append(driver)
    return driver


def driver_errors(*names: str, also: tuple[type[Exception], ...] = ()) -> tuple[type[Exception], ...]:
    """For an `except`: exceptions of DB-API 2 by their names, those of each driver that is loaded, and others."""
    return (*(getattr(driver, name) for driver in _loaded_drivers for name in names), *also)
