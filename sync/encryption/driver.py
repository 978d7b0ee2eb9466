"""Open a database file: the one place in which a driver connects.

Two builds of SQLite in one process destroy each other's locks, so a process uses one driver for all databases, and no
code reads a database's first bytes. Reasons: docs/decisions/018-encryption.md.
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
    """How to open one database file: the driver, a DB-API 2 module, and the key if it is encrypted."""

    driver: Any = sqlite3
    key: DatabaseKey | None = None

    def connect(self, database: Path, *, timeout: float = 5.0, read_only: bool = False) -> sqlite3.Connection:
        """A connection for any thread, without implicit transactions. `timeout` in seconds."""
        connection: sqlite3.Connection = self.driver.connect(
            f"file:{quote(str(database))}?mode=ro" if read_only else str(database),
            timeout,
            uri=read_only,
            isolation_level=None,
            check_same_thread=False,
        )
        if self.driver is not sqlite3:
            connection.execute("pragma cipher_log_level = none")  # it also writes to stderr what it raises
        if self.key is not None:
            connection.execute(f'pragma key = "{self.key.sql_literal}"')
            connection.execute(f"pragma cipher_compatibility = {CIPHER_FORMAT}")
        return connection


PLAIN_ACCESS: Final = DatabaseAccess()


@cache
def cipher_driver() -> Any:
    """The encrypting driver. Raises SettingsError if the extra is not installed."""
    try:
        driver = importlib.import_module(f"{CIPHER_MODULE}.dbapi2")
    except ImportError as error:
        raise SettingsError("the driver for encrypted databases is not installed", hint=INSTALL_HINT) from error
    _loaded_drivers.append(driver)
    return driver


def driver_errors(*names: str, also: tuple[type[Exception], ...] = ()) -> tuple[type[Exception], ...]:
    """For an `except`: exceptions of DB-API 2 by their names, those of each driver that is loaded, and others."""
    return (*(getattr(driver, name) for driver in _loaded_drivers for name in names), *also)
