"""Where a session is kept between starts: the operating system's keychain, else a file only this user can read."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from sync.cloud.logins import Session
from sync.errors import StorageError
from sync.files import probe, remove_private, write_private

SERVICE: Final = "xiaobai-memory"


class TokenStore(Protocol):
    """One session. `warning` is what `status` shows a person, or None. A locked keychain raises StorageError."""

    warning: str | None

    def load(self) -> Session | None: ...
    def save(self, session: Session) -> None: ...
    def delete(self) -> None: ...


class FileTokenStore:
    """A 0600 file in the profile's private folder."""

    warning: str | None = "no keychain is available; the session is kept in a file that only this user can read"

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Session | None:
        found = probe(self._path)
        return None if found is None else _decode(found.data)

    def save(self, session: Session) -> None:
        write_private(self._path, _encode(session))

    def delete(self) -> None:
        remove_private(self._path)


class KeychainTokenStore:
    """The keychain of the operating system, one entry a profile."""

    warning: str | None = None

    def __init__(self, keyring: Any, profile: str) -> None:
        self._keyring = keyring
        self._profile = profile

    def load(self) -> Session | None:
        with _unlocked():
            text = self._keyring.get_password(SERVICE, self._profile)
        return None if text is None else _decode(text.encode())

    def save(self, session: Session) -> None:
        with _unlocked():
            self._keyring.set_password(SERVICE, self._profile, _encode(session).decode())

    def delete(self) -> None:
        from keyring.errors import PasswordDeleteError  # noqa: PLC0415 - only where a keychain is in use

        with _unlocked(), contextlib.suppress(PasswordDeleteError):  # it was not there: what we wanted
            self._keyring.delete_password(SERVICE, self._profile)


def open_token_store(path: Path, profile: str, *, prefer_file: bool) -> TokenStore:
    """The keychain where there is one, else the file beside the database."""
    if not prefer_file:
        import keyring  # noqa: PLC0415 - 120 ms that a start without login need not spend
        from keyring.backends import fail  # noqa: PLC0415

        if not isinstance(keyring.get_keyring(), fail.Keyring) and keyring.get_keyring().priority >= 1:
            return KeychainTokenStore(keyring, profile)
    return FileTokenStore(path)


@contextlib.contextmanager
def _unlocked() -> Iterator[None]:
    """Raise the keychain's refusals as ours."""
    from keyring.errors import KeyringError  # noqa: PLC0415 - only where a keychain is in use

    try:
        yield
    except KeyringError as error:
        raise StorageError(
            f"the keychain refuses ({type(error).__name__})",
            hint="Unlock the keychain, or keep the session in a file: XIAOBAI_TOKEN_STORE=file.",
        ) from error


def _encode(session: Session) -> bytes:
    return msgspec.json.encode(session)


def _decode(data: bytes) -> Session | None:
    try:
        return msgspec.json.decode(data, type=Session)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None  # a damaged session is no session: the user logs in again, nothing of the memory is touched
