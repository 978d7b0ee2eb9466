"""Which databases of a data directory are encrypted, and where their keys are.

Each profile has one key. A mark beside the database says that it may be encrypted, so that it is never taken for a
damaged one. Reasons: docs/decisions/018-encryption.md.
"""

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from sqlite3 import SQLITE_NOTADB, Connection
from typing import TYPE_CHECKING, Final

from sync.encryption import emptied_marker, encrypted_marker, sqlcipher_pages
from sync.encryption.driver import PLAIN_ACCESS, DatabaseAccess, cipher_driver, driver_errors
from sync.encryption.key import DatabaseKey
from sync.errors import KeyLost, SettingsError, StorageBusy, StorageError
from sync.system.process_lock import ProcessLock
from sync.system.secret_store import (
    FileSecretStore,
    KeychainSecretStore,
    SecretStore,
    open_secret_store,
    trusted_keychain,
)

if TYPE_CHECKING:
    from sync.settings.settings import Settings

KEY_SERVICE: Final = "xiaobai-memory database key"  # the name of its entry in the keychain
KEY_FILE: Final = "database-key"
KEY_LOCK_TIMEOUT: Final = 10.0  # seconds for another process that makes the key at the same moment


class DatabaseEncryption:
    """The keys of one data directory's databases. Calls may wait for the keychain: never on an event loop.

    `encrypts`: whether databases are to be encrypted. `prefer_file`: store new keys in a file, not in the keychain.
    """

    def __init__(self, *, encrypts: bool = False, prefer_file: bool = True) -> None:
        self.encrypts = encrypts
        self._prefer_file = prefer_file
        self._keys: dict[Path, DatabaseKey] = {}
        self._access_cache: dict[Path, DatabaseAccess] = {}

    @classmethod
    def of(cls, settings: "Settings") -> "DatabaseEncryption":
        prefer_file = settings.token_store == "file"  # noqa: S105 - the name of a place
        return cls(encrypts=settings.privacy.encrypt_at_rest, prefer_file=prefer_file)

    # --- opening -------------------------------------------------------------------------------------------

    def access_for(self, database: Path) -> DatabaseAccess:
        """The access to a database, by its mark and content. Raises KeyLost, SettingsError, StorageError."""
        if (known := self._access_cache.get(database)) is not None:
            return known
        is_there = database.exists() or emptied_marker.is_emptied(database)
        return self._access_of_marked(database) if is_there and self._is_encrypted(database) else self.plain_access()

    def plain_access(self) -> DatabaseAccess:
        """The access to a plain database: one driver in one process."""
        return DatabaseAccess(cipher_driver()) if self.encrypts else PLAIN_ACCESS

    @contextmanager
    def read_only_connection(self, database: Path, timeout: float) -> Iterator[Connection]:
        """A read-only connection with rows by name. Raises as `access_for` does, and what drivers raise."""
        emptied_marker.refuse_emptied(database)
        access = self.access_for(database)
        with closing(access.connect(database, timeout=timeout, read_only=True)) as connection:
            connection.row_factory = access.driver.Row
            yield connection

    def resolve_access(self, database: Path) -> DatabaseAccess:
        """The access to a database that this process has not opened yet; a new one follows the setting.

        Raises KeyLost if it is encrypted and no key opens it, SettingsError, StorageError.
        """
        is_new = not database.exists() or database.stat().st_size < emptied_marker.MIN_DATABASE_BYTES
        found = self._access_cache[database] = (
            self.prepare_encrypted(database) if is_new and self.encrypts else self.access_for(database)
        )
        return found

    def _is_encrypted(self, database: Path) -> bool:
        """Whether a database may be encrypted; the mark of one that its key opens is written again if it was lost."""
        if encrypted_marker.is_marked(database) or not sqlcipher_pages.lacks_magic(database):
            return encrypted_marker.is_marked(database)
        key = self._load_key(database)
        if key is None or not sqlcipher_pages.key_decrypts(key, database):
            return sqlcipher_pages.looks_encrypted(database)
        with suppress(StorageError):  # the next start writes it
            encrypted_marker.write_marker(database)
        return True

    def _access_of_marked(self, database: Path) -> DatabaseAccess:
        """The access to a marked database, which may still be plain: try the key first."""
        try:
            access = DatabaseAccess(cipher_driver(), self._require_key(database))
        except (KeyLost, SettingsError):
            if not _can_open(self.plain_access(), database):
                raise
            return self.plain_access()
        assert access.key is not None
        if _can_open(access, database):
            return access
        if _can_open(self.plain_access(), database):
            return self.plain_access()
        if not sqlcipher_pages.key_decrypts(access.key, database):
            raise KeyLost(f"the key that is kept is not that of {database}")
        return access

    def needs_no_keychain(self, database: Path) -> bool:
        """Whether opening it needs no keychain, which may prompt the user."""
        return (
            not encrypted_marker.is_marked(database) or database in self._keys or database.with_name(KEY_FILE).exists()
        )

    def key_location(self, database: Path) -> str:
        """The place of an encrypted database's key, in words."""
        return "in a file beside the database" if database.with_name(KEY_FILE).exists() else "in the keychain"

    # --- encrypting ----------------------------------------------------------------------------------------

    def prepare_encrypted(self, database: Path) -> DatabaseAccess:
        """The access to a database that becomes encrypted now: store its key and set its mark."""
        access = self.keyed_access(database)
        encrypted_marker.write_marker(database)
        return access

    def keyed_access(self, database: Path) -> DatabaseAccess:
        """The access to a database once it is encrypted; stores its key."""
        driver = cipher_driver()
        return DatabaseAccess(driver, self._load_key(database) or self._create_key(database))

    def set_access(self, database: Path, access: DatabaseAccess) -> None:
        """Record that a database was converted."""
        self._access_cache[database] = access

    def delete_key(self, database: Path) -> None:
        """Remove a profile's key: every remaining copy of its database becomes unreadable."""
        if encrypted_marker.is_marked(database) or not self._prefer_file:
            for store in self._key_stores(database):
                store.delete()
        self._keys.pop(database, None)
        self._access_cache.pop(database, None)

    # --- keys ----------------------------------------------------------------------------------------------

    def _require_key(self, database: Path) -> DatabaseKey:
        if (key := self._load_key(database)) is None:
            raise KeyLost(f"the key of {database} is neither in the keychain nor in a file beside it")
        return key

    def _load_key(self, database: Path) -> DatabaseKey | None:
        if database not in self._keys:
            found = (DatabaseKey.from_stored(store.load()) for store in self._key_stores(database))
            if (key := next((key for key in found if key is not None), None)) is None:
                return None
            self._keys[database] = key
        return self._keys[database]

    def _create_key(self, database: Path) -> DatabaseKey:
        """Create and store a key, or load one that another process has just created."""
        lock = database.with_name(f"{KEY_FILE}.lock")
        busy = partial(StorageBusy, "another process has been making the database's key for too long")
        with ProcessLock(lock, timeout=KEY_LOCK_TIMEOUT, timeout_error=busy).hold_blocking():
            if (key := self._load_key(database)) is None:
                key = DatabaseKey.new(secrets.token_bytes)
                self._new_key_store(database).save(key.to_stored())
        self._keys[database] = key
        return key

    def _key_stores(self, database: Path) -> Iterator[SecretStore]:
        """The stores that may hold the key, the file first because it is cheap."""
        yield FileSecretStore(database.with_name(KEY_FILE))
        if (found := trusted_keychain()) is not None:
            yield KeychainSecretStore(found, KEY_SERVICE, database.parent.name)

    def _new_key_store(self, database: Path) -> SecretStore:
        path = database.with_name(KEY_FILE)
        return open_secret_store(path, KEY_SERVICE, database.parent.name, prefer_file=self._prefer_file)


def _can_open(access: DatabaseAccess, database: Path) -> bool:
    """False if SQLite says that this is no database; other damage shows when it is opened."""
    if emptied_marker.is_emptied(database):
        return True
    try:
        with closing(access.connect(database, read_only=True)) as connection:
            connection.execute("select 1 from sqlite_master limit 1").fetchone()
    except driver_errors("Error") as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF != SQLITE_NOTADB
    except UnicodeDecodeError:  # from SQLite's message about a damaged schema
        return True
    return True
