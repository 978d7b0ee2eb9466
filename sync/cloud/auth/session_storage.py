"""Where a session is kept between starts: the operating system's keychain, else a file only this user can read."""

from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from sync.cloud.auth_port import AuthSession
from sync.log.envelope import DECODE_ERRORS
from sync.system.secret_store import FileSecretStore, KeychainSecretStore, SecretStore, trusted_keychain

KEYCHAIN_SERVICE: Final = "xiaobai-memory"
NO_KEYCHAIN_WARNING: Final = "no_keychain: the session is kept in a file that only this user can read"


class SessionStorage(Protocol):
    """One session. `warning` is what `status` shows a person, or None. A locked keychain raises StorageError."""

    warning: str | None

    def load(self) -> AuthSession | None: ...
    def save(self, session: AuthSession) -> None: ...
    def delete(self) -> None: ...


class _SecretSessionStorage:
    """A session in a secret store."""

    def __init__(self, secret: SecretStore) -> None:
        self._secret = secret

    def load(self) -> AuthSession | None:
        found = self._secret.load()
        return None if found is None else _decode_session(found)

    def save(self, session: AuthSession) -> None:
        self._secret.save(msgspec.json.encode(session))

    def delete(self) -> None:
        self._secret.delete()


class FileSessionStorage(_SecretSessionStorage):
    """A 0600 file in the profile's private folder. `chosen`: by a setting, so nobody has to be told."""

    def __init__(self, path: Path, *, is_chosen: bool = False) -> None:
        super().__init__(FileSecretStore(path))
        self.warning: str | None = None if is_chosen else NO_KEYCHAIN_WARNING


class KeychainSessionStorage(_SecretSessionStorage):
    """The keychain of the operating system, one entry a profile."""

    warning: str | None = None

    def __init__(self, keyring: Any, profile: str) -> None:
        super().__init__(KeychainSecretStore(keyring, KEYCHAIN_SERVICE, profile))


def open_session_storage(path: Path, profile: str, *, prefer_file: bool) -> SessionStorage:
    """The keychain where there is one, else the file beside the database."""
    found = None if prefer_file else trusted_keychain()
    return FileSessionStorage(path, is_chosen=prefer_file) if found is None else KeychainSessionStorage(found, profile)


def _decode_session(data: bytes) -> AuthSession | None:
    try:
        return msgspec.json.decode(data, type=AuthSession)
    except DECODE_ERRORS:
        return None  # a damaged session is no session: the user logs in again, nothing of the memory is touched
