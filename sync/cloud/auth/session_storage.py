"""Where the session is stored: in the operating system's keychain, or in a file that only this user can read."""

from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from sync.cloud.auth_port import AuthSession
from sync.log.envelope import DECODE_ERRORS
from sync.system.secret_store import FileSecretStore, KeychainSecretStore, SecretStore, trusted_keychain

KEYCHAIN_SERVICE: Final = "xiaobai-memory"
NO_KEYCHAIN_WARNING: Final = "no_keychain: the session is kept in a file that only this user can read"


class SessionStorage(Protocol):
    """Stores one session. `warning` is shown by `status`. A locked keychain raises StorageError."""

    warning: str | None

    def load(self) -> AuthSession | None: ...
    def save(self, session: AuthSession) -> None: ...
    def delete(self) -> None: ...


class _SecretSessionStorage:
    """A session in a secret store."""

    def __init__(self, secret: SecretStore) -> None:
        self._secret = secret

    def load(self) -> AuthSession | None:
        data = self._secret.load()
        return None if data is None else _decode_session(data)

    def save(self, session: AuthSession) -> None:
        self._secret.save(msgspec.json.encode(session))

    def delete(self) -> None:
        self._secret.delete()


class FileSessionStorage(_SecretSessionStorage):
    """A 0600 file in the profile's private folder. `is_chosen`: by a setting, so there is no warning."""

    def __init__(self, path: Path, *, is_chosen: bool = False) -> None:
        super().__init__(FileSecretStore(path))
        self.warning: str | None = None if is_chosen else NO_KEYCHAIN_WARNING


class KeychainSessionStorage(_SecretSessionStorage):
    """The keychain of the operating system, with one entry per profile."""

    warning: str | None = None

    def __init__(self, keyring: Any, profile: str) -> None:
        super().__init__(KeychainSecretStore(keyring, KEYCHAIN_SERVICE, profile))


def open_session_storage(path: Path, profile: str, *, prefer_file: bool) -> SessionStorage:
    """The keychain if there is one, else the file beside the database."""
    keychain = None if prefer_file else trusted_keychain()
    if keychain is None:
        return FileSessionStorage(path, is_chosen=prefer_file)
    return KeychainSessionStorage(keychain, profile)


def _decode_session(data: bytes) -> AuthSession | None:
    try:
        return msgspec.json.decode(data, type=AuthSession)
    except DECODE_ERRORS:
        return None  # damaged: the user logs in again
