"""Store one secret of a profile in the operating system's keychain, or in a file that only this user can read."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from sync.errors import StorageError
from sync.system.files import read_once, remove_private, write_private


class SecretStore(Protocol):
    """ASCII bytes under one name. A locked keychain raises StorageError."""

    def load(self) -> bytes | None: ...
    def save(self, secret: bytes) -> None: ...
    def delete(self) -> None: ...


class FileSecretStore:
    """A 0600 file in the profile's private folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> bytes | None:
        found = read_once(self._path)
        return None if found is None else found.data

    def save(self, secret: bytes) -> None:
        write_private(self._path, secret)

    def delete(self) -> None:
        remove_private(self._path)


class KeychainSecretStore:
    """An entry in the keychain of the operating system, found by service and profile."""

    def __init__(self, keyring: Any, service: str, profile: str) -> None:
        self._keyring = keyring
        self._entry = (service, profile)

    def load(self) -> bytes | None:
        with _translate_keyring_errors():
            text = self._keyring.get_password(*self._entry)
        return None if text is None else str(text).encode()

    def save(self, secret: bytes) -> None:
        with _translate_keyring_errors():
            self._keyring.set_password(*self._entry, secret.decode())

    def delete(self) -> None:
        from keyring.errors import PasswordDeleteError  # noqa: PLC0415 - only if a keychain is in use

        with _translate_keyring_errors(), contextlib.suppress(PasswordDeleteError):  # it does not exist: fine
            self._keyring.delete_password(*self._entry)


def trusted_keychain() -> Any | None:
    """The module `keyring` if this system has a trustworthy keychain, else None."""
    import keyring  # noqa: PLC0415 - 120 ms
    from keyring.backends import fail  # noqa: PLC0415

    found = keyring.get_keyring()
    return None if isinstance(found, fail.Keyring) or found.priority < 1 else keyring


def open_secret_store(path: Path, service: str, profile: str, *, prefer_file: bool) -> SecretStore:
    """The keychain if there is one, else the file beside the database."""
    found = None if prefer_file else trusted_keychain()
    return FileSecretStore(path) if found is None else KeychainSecretStore(found, service, profile)


@contextlib.contextmanager
def _translate_keyring_errors() -> Iterator[None]:
    """Raise the keychain's errors as ours."""
    from keyring.errors import KeyringError  # noqa: PLC0415 - only if a keychain is in use

    try:
        yield
    except KeyringError as error:
        raise StorageError(
            f"the keychain refuses ({type(error).__name__})",
            hint="Unlock the keychain, or keep secrets in a file: XIAOBAI_TOKEN_STORE=file.",
        ) from error
