"""A session comes back as it was saved, only its user can read it, and it is never printed."""

import stat
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.backends.fail
import pytest
from keyring.errors import KeyringLocked, PasswordDeleteError

from sync.cloud.auth.session_storage import (
    KEYCHAIN_SERVICE,
    NO_KEYCHAIN_WARNING,
    FileSessionStorage,
    KeychainSessionStorage,
    SessionStorage,
    open_session_storage,
)
from sync.cloud.auth_port import AuthSession
from sync.errors import StorageError

SESSION = AuthSession("user-1", "person@example.com", "access-token-text", "refresh-token-text", 1_770_000_000.5)


class Keychain(keyring.backend.KeyringBackend):
    """A keychain that can be locked."""

    priority = 5

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.held: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        if self.held.pop((service, username), None) is None:
            raise PasswordDeleteError("it was not there")

    def _check(self) -> None:
        if self.locked:
            raise KeyringLocked("the keychain is locked")


@pytest.fixture
def keychain(monkeypatch: pytest.MonkeyPatch) -> Keychain:
    own = Keychain()
    monkeypatch.setattr(keyring, "get_keyring", lambda: own)
    for name in ("get_password", "set_password", "delete_password"):
        monkeypatch.setattr(keyring, name, getattr(own, name))
    return own


@pytest.fixture(params=["file", "keychain"])
def store(request: pytest.FixtureRequest, tmp_path: Path, keychain: Keychain) -> SessionStorage:
    return open_session_storage(tmp_path / "session.json", "profile-1", prefer_file=request.param == "file")


def test_what_was_saved_comes_back_and_what_was_deleted_does_not(store: SessionStorage) -> None:
    assert store.load() is None
    store.save(SESSION)
    assert store.load() == SESSION
    store.delete()
    store.delete()
    assert store.load() is None


def test_a_session_of_an_app_has_no_refresh_token(store: SessionStorage) -> None:
    session = AuthSession("user-1", "x", "access", None, 1.0)
    store.save(session)
    assert store.load() == session


def test_the_keychain_comes_first_and_then_nothing_is_written_to_disk(tmp_path: Path, keychain: Keychain) -> None:
    store = open_session_storage(tmp_path / "session.json", "profile-1", prefer_file=False)
    assert isinstance(store, KeychainSessionStorage)
    store.save(SESSION)
    assert list(keychain.held) == [(KEYCHAIN_SERVICE, "profile-1")]
    assert list(tmp_path.iterdir()) == []
    assert store.warning is None


def test_two_profiles_have_two_sessions(tmp_path: Path, keychain: Keychain) -> None:
    one, two = (open_session_storage(tmp_path / "x", name, prefer_file=False) for name in ("one", "two"))
    one.save(SESSION)
    assert two.load() is None


def test_without_a_keychain_a_private_file_is_used_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring, "get_keyring", keyring.backends.fail.Keyring)
    path = tmp_path / "session.json"
    store = open_session_storage(path, "profile-1", prefer_file=False)
    assert isinstance(store, FileSessionStorage)
    assert store.warning == NO_KEYCHAIN_WARNING
    store.save(SESSION)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_chosen_by_a_setting_gives_no_warning(tmp_path: Path, keychain: Keychain) -> None:
    assert open_session_storage(tmp_path / "session.json", "profile-1", prefer_file=True).warning is None


NOT_UTF8 = b'{"user_id": "\xff"}'
TOO_DEEP = b'{"more": ' + b"[" * 10_000


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"user_id": 5}', b"\xff", NOT_UTF8, TOO_DEEP, b"null"])
def test_a_damaged_session_is_no_session(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "session.json"
    path.write_bytes(content)
    assert FileSessionStorage(path).load() is None


def test_a_damaged_entry_of_the_keychain_is_no_session(tmp_path: Path, keychain: Keychain) -> None:
    keychain.held[KEYCHAIN_SERVICE, "profile-1"] = "not a session"
    assert open_session_storage(tmp_path / "x", "profile-1", prefer_file=False).load() is None


@pytest.mark.parametrize("act", [lambda store: store.load(), lambda store: store.save(SESSION)], ids=["load", "save"])
def test_a_locked_keychain_is_an_error_of_ours(tmp_path: Path, keychain: Keychain, act: Any) -> None:
    store = open_session_storage(tmp_path / "x", "profile-1", prefer_file=False)
    keychain.locked = True
    with pytest.raises(StorageError):
        act(store)


def test_a_session_that_cannot_be_read_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "session.json").mkdir()
    store = FileSessionStorage(tmp_path / "session.json")
    with pytest.raises(StorageError):
        store.load()


def test_tokens_do_not_show_in_what_a_session_prints() -> None:
    shown = repr(SESSION) + str(SESSION) + f"{SESSION}"
    assert "access-token-text" not in shown
    assert "refresh-token-text" not in shown
