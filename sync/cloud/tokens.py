"""Where a session is kept between starts: the operating system's keychain, else a file only this user can read."""

from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from sync.cloud.logins import Session
from sync.log.envelope import UNDECODABLE
from sync.secret_store import FileSecret, KeychainSecret, SecretStore, keychain

SERVICE: Final = "xiaobai-memory"
NO_KEYCHAIN: Final = "no_keychain: the session is kept in a file that only this user can read"


class TokenStore(Protocol):
    """One session. `warning` is what `status` shows a person, or None. A locked keychain raises StorageError."""

    warning: str | None

    def load(self) -> Session | None: ...
    def save(self, session: Session) -> None: ...
    def delete(self) -> None: ...


class _Kept:
    """A session in a secret store."""

    def __init__(self, secret: SecretStore) -> None:
        self._secret = secret

    def load(self) -> Session | None:
        found = self._secret.load()
        return None if found is None else _decode(found)

    def save(self, session: Session) -> None:
        self._secret.save(msgspec.json.encode(session))

    def delete(self) -> None:
        self._secret.delete()


class FileTokenStore(_Kept):
    """A 0600 file in the profile's private folder. `chosen`: by a setting, so nobody has to be told."""

    def __init__(self, path: Path, *, chosen: bool = False) -> None:
        super().__init__(FileSecret(path))
        self.warning: str | None = None if chosen else NO_KEYCHAIN


class KeychainTokenStore(_Kept):
    """The keychain of the operating system, one entry a profile."""

    warning: str | None = None

    def __init__(self, keyring: Any, profile: str) -> None:
        super().__init__(KeychainSecret(keyring, SERVICE, profile))


def open_token_store(path: Path, profile: str, *, prefer_file: bool) -> TokenStore:
    """The keychain where there is one, else the file beside the database."""
    found = None if prefer_file else keychain()
    return FileTokenStore(path, chosen=prefer_file) if found is None else KeychainTokenStore(found, profile)


def _decode(data: bytes) -> Session | None:
    try:
        return msgspec.json.decode(data, type=Session)
    except UNDECODABLE:
        return None  # a damaged session is no session: the user logs in again, nothing of the memory is touched
