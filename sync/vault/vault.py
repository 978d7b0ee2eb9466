"""Which databases of a data directory are encrypted, and where their keys are.

Decisions
    One key a profile, as for the other secrets: who removes a profile removes its key, and what is left of it on the
    disk or in a backup is then unreadable. A key is kept before anything is encrypted with it, and looked for in both
    places, so changing `token_store` loses none.
    The mark is written before the first encrypted byte stands in the database's place, and removed after the last is
    gone. So a marked database may be plain for a moment that a kill can stretch (`access` looks), and one without a
    mark is never encrypted.
    A key that is gone is an error of its own. An encrypted database without its key looks like any damaged one, and a
    damaged one is moved aside; this one stays where it is and waits for its key.
"""

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import SQLITE_NOTADB, Connection
from typing import TYPE_CHECKING, Final

from filelock import FileLock, Timeout

from sync.errors import KeyLost, SettingsError, StorageBusy
from sync.files import told
from sync.secret_store import FileSecret, KeychainSecret, SecretStore, keychain, open_secret_store
from sync.vault import begun, mark, pages
from sync.vault.access import PLAIN, Access, cipher, raised
from sync.vault.key import DatabaseKey

if TYPE_CHECKING:
    from sync.settings import Settings

KEY_SERVICE: Final = "xiaobai-memory database key"  # the name of its entry in the keychain
KEY_FILE: Final = "database-key"
PATIENCE: Final = 10.0  # seconds for another process that makes the key at the same moment


class Vault:
    """The keys of the databases of one data directory. Its calls may wait for the keychain: never on an event loop.

    `encrypts`: what a database is to become. `prefer_file`: new keys go into a file, not into the keychain.
    """

    def __init__(self, *, encrypts: bool = False, prefer_file: bool = True) -> None:
        self.encrypts = encrypts
        self._prefer_file = prefer_file
        self._keys: dict[Path, DatabaseKey] = {}
        self._known: dict[Path, Access] = {}

    @classmethod
    def of(cls, settings: "Settings") -> "Vault":
        prefer_file = settings.token_store == "file"  # noqa: S105 - the name of a place
        return cls(encrypts=settings.privacy.encrypt_at_rest, prefer_file=prefer_file)

    # --- opening -------------------------------------------------------------------------------------------

    def access(self, database: Path) -> Access:
        """How a database is opened, by its mark and by what it is. Raises KeyLost, SettingsError, StorageError."""
        if (known := self._known.get(database)) is not None:
            return known
        is_there = database.exists() or begun.is_emptied(database)
        return self._found(database) if is_there and mark.is_set(database) else self.plain()

    def plain(self) -> Access:
        """How a database that is not encrypted is opened: by one driver within one process."""
        return Access(cipher()) if self.encrypts else PLAIN

    @contextmanager
    def reading(self, database: Path, timeout: float) -> Iterator[Connection]:
        """A connection that only reads, rows by name. Raises as `access` does, and what drivers raise (`raised`)."""
        begun.refuse_emptied(database)
        access = self.access(database)
        with closing(access.connect(database, timeout=timeout, read_only=True)) as connection:
            connection.row_factory = access.driver.Row
            yield connection

    def settled(self, database: Path) -> Access:
        """How a database is opened from now on, which nobody in this process has open yet; a new one as is wanted.

        Raises KeyLost where it is encrypted and no key opens it, SettingsError, StorageError.
        """
        is_new = not database.exists() or database.stat().st_size < begun.SMALLEST
        found = self._known[database] = self.sealed(database) if is_new and self.encrypts else self.access(database)
        return found

    def _found(self, database: Path) -> Access:
        """Of a database with a mark; it may be plain all the same. The key is tried first, see `sync.vault.access`."""
        try:
            access = Access(cipher(), self._key(database))
        except (KeyLost, SettingsError):
            if not _opens(self.plain(), database):
                raise
            return self.plain()
        assert access.key is not None
        if _opens(access, database):
            return access
        if _opens(self.plain(), database):
            return self.plain()
        if not pages.fits(access.key, database):
            raise KeyLost(f"the key that is kept is not that of {database}")
        return access

    def is_at_hand(self, database: Path) -> bool:
        """Whether opening it asks no keychain, which may have to ask a person."""
        return not mark.is_set(database) or database in self._keys or database.with_name(KEY_FILE).exists()

    def place_of_key(self, database: Path) -> str:
        """Where the key of an encrypted database was found, in words."""
        return "in a file beside the database" if database.with_name(KEY_FILE).exists() else "in the keychain"

    # --- encrypting ----------------------------------------------------------------------------------------

    def sealed(self, database: Path) -> Access:
        """How a database is opened that is encrypted from now on: its key is kept and its mark is set."""
        access = self.keyed(database)
        mark.put(database)
        return access

    def keyed(self, database: Path) -> Access:
        """How it will be opened once it is encrypted: its key is kept."""
        driver = cipher()
        return Access(driver, self._kept(database) or self._make(database))

    def now(self, database: Path, access: Access) -> None:
        """Note that a database was converted."""
        self._known[database] = access

    def forget(self, database: Path) -> None:
        """Remove the key of a profile that goes: what is left of its database anywhere is unreadable from then on."""
        if mark.is_set(database) or not self._prefer_file:
            for store in self._stores(database):
                store.delete()
        self._keys.pop(database, None)
        self._known.pop(database, None)

    # --- keys ----------------------------------------------------------------------------------------------

    def _key(self, database: Path) -> DatabaseKey:
        if (key := self._kept(database)) is None:
            raise KeyLost(f"the key of {database} is neither in the keychain nor in a file beside it")
        return key

    def _kept(self, database: Path) -> DatabaseKey | None:
        if database not in self._keys:
            found = (DatabaseKey.read(store.load()) for store in self._stores(database))
            if (key := next((key for key in found if key is not None), None)) is None:
                return None
            self._keys[database] = key
        return self._keys[database]

    def _make(self, database: Path) -> DatabaseKey:
        """A new key, kept; that of another process which makes one at the same moment."""
        lock = database.with_name(f"{KEY_FILE}.lock")
        with told(lock):
            try:
                with FileLock(lock, timeout=PATIENCE, mode=0o600):
                    if (key := self._kept(database)) is None:
                        key = DatabaseKey.new(secrets.token_bytes)
                        self._store_of_new(database).save(key.written())
            except Timeout as error:  # an OSError to Python, so it is met first
                raise StorageBusy("another process has been making the database's key for too long") from error
        self._keys[database] = key
        return key

    def _stores(self, database: Path) -> Iterator[SecretStore]:
        """Where the key may be: the file is looked at first, it costs nothing."""
        yield FileSecret(database.with_name(KEY_FILE))
        if (found := keychain()) is not None:
            yield KeychainSecret(found, KEY_SERVICE, database.parent.name)

    def _store_of_new(self, database: Path) -> SecretStore:
        path = database.with_name(KEY_FILE)
        return open_secret_store(path, KEY_SERVICE, database.parent.name, prefer_file=self._prefer_file)


def _opens(access: Access, database: Path) -> bool:
    """False where SQLite says that this is no database; what else may be wrong shows when it is opened."""
    if begun.is_emptied(database):
        return True
    try:
        with closing(access.connect(database, read_only=True)) as connection:
            connection.execute("select 1 from sqlite_master limit 1").fetchone()
    except raised("Error") as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF != SQLITE_NOTADB
    except UnicodeDecodeError:  # the words of SQLite's complaint about a damaged schema
        return True
    return True
