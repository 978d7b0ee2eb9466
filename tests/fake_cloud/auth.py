"""The login server in memory: accounts, codes and sessions, with GoTrue's waiting time and expiry.

As on a hosted project, a code works once, for an hour, and only the newest one; a minute must pass between two
messages; verifying a code creates the account. Tests read codes with `code_sent_to`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from sync.clock import Clock
from sync.cloud.auth_port import RESEND_SECONDS, AuthSession
from sync.cloud.contact import Contact
from sync.errors import BadCredentials, CodeRefused, LoginRequired, RateLimited

TOKEN_SECONDS: Final = 3600.0
CODE_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class _FakeUser:
    user_id: str
    label: str
    password: str | None


@dataclass(slots=True)
class _SentCode:
    code: str
    sent_at: float
    is_valid: bool = True


class FakeAccounts:
    """All accounts, and the codes sent to them, by `contact.value`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._users: dict[str, _FakeUser] = {}
        self._sent_codes: dict[str, _SentCode] = {}
        self._tokens: dict[str, tuple[str, float]] = {}
        self._refresh_tokens: dict[str, str] = {}
        self._replaced_sessions: dict[str, AuthSession] = {}  # by the refresh token that it replaced

    def add_user(self, contact: Contact, password: str | None = None) -> str:
        """The id of a new user."""
        person = _FakeUser(f"user-{len(self._users) + 1}", contact.label, password)
        self._users[contact.value] = person
        return person.user_id

    def code_sent_to(self, contact: Contact) -> str:
        return self._sent_codes[contact.value].code

    def revoke_sessions(self) -> None:
        self._tokens.clear()
        self._refresh_tokens.clear()

    def expire_tokens(self) -> None:
        self._tokens = {token: (user, 0.0) for token, (user, _) in self._tokens.items()}

    def user_of(self, access_token: str) -> str:
        """The user of a token. LoginRequired."""
        user_id, expires = self._tokens.get(access_token, ("", 0.0))
        if expires <= self._now():
            raise LoginRequired("the server does not know this token")
        return user_id

    def send_code(self, contact: Contact) -> None:
        last = self._sent_codes.get(contact.value)
        if last is not None and (wait := last.sent_at + RESEND_SECONDS - self._now()) > 0:
            raise RateLimited("too many messages or attempts", retry_after=wait)
        number = int.from_bytes(self._clock.random_bytes(4)) % 10**6
        self._sent_codes[contact.value] = _SentCode(f"{number:06}", self._now())

    def sign_in_with_code(self, contact: Contact, code: str) -> AuthSession:
        sent = self._sent_codes.get(contact.value)
        if sent is None or not sent.is_valid or sent.code != code or sent.sent_at + CODE_SECONDS <= self._now():
            raise CodeRefused("the code is wrong or no longer good")
        sent.is_valid = False
        if contact.value not in self._users:
            self.add_user(contact)
        return self._issue_session(self._users[contact.value])

    def sign_in_with_password(self, contact: Contact, password: str) -> AuthSession:
        user = self._users.get(contact.value)
        if user is None or user.password != password:
            raise BadCredentials("the number or address, or the password, is wrong")
        return self._issue_session(user)

    def refresh_session(self, session: AuthSession) -> AuthSession:
        """Refresh like GoTrue: the parent of the active token gets the answer again, in case the first was lost.

        The refresh token is then the same, and the access token is a new one.
        """
        parent = session.refresh_token or ""
        user_id = self._refresh_tokens.pop(parent, None)
        if user_id is not None:
            self._replaced_sessions[parent] = self._issue_session(self._user(user_id))
            return self._replaced_sessions[parent]
        successor = self._replaced_sessions.get(parent)
        if successor is None or successor.refresh_token not in self._refresh_tokens:
            raise LoginRequired("the session was ended by the server")
        token, expires = self._issue_token(successor.user_id)
        return replace(successor, access_token=token, expires_at=expires)

    def identify_user(self, access_token: str) -> tuple[str, str]:
        person = self._user(self.user_of(access_token))
        return person.user_id, person.label

    def sign_out(self, session: AuthSession) -> None:
        self._tokens.pop(session.access_token, None)
        self._refresh_tokens.pop(session.refresh_token or "", None)

    def _issue_session(self, person: _FakeUser) -> AuthSession:
        token, expires = self._issue_token(person.user_id)
        refresh = self._clock.random_bytes(16).hex()
        self._refresh_tokens[refresh] = person.user_id
        return AuthSession(person.user_id, person.label, token, refresh, expires)

    def _issue_token(self, user_id: str) -> tuple[str, float]:
        """A new access token and its end."""
        token, expires = self._clock.random_bytes(16).hex(), self._now() + TOKEN_SECONDS
        self._tokens[token] = (user_id, expires)
        return token, expires

    def _user(self, user_id: str) -> _FakeUser:
        return next(person for person in self._users.values() if person.user_id == user_id)

    def _now(self) -> float:
        return self._clock.now().timestamp()


class FakeAuth:
    """One device's connection to `FakeAccounts`. `check_reachable` raises if the server is down."""

    def __init__(self, accounts: FakeAccounts, check_reachable: Callable[[], None]) -> None:
        self._accounts = accounts
        self._check_reachable = check_reachable

    async def send_code(self, contact: Contact) -> None:
        self._check_reachable()
        self._accounts.send_code(contact)

    async def verify_code(self, contact: Contact, code: str) -> AuthSession:
        self._check_reachable()
        return self._accounts.sign_in_with_code(contact, code)

    async def sign_in_with_password(self, contact: Contact, password: str) -> AuthSession:
        self._check_reachable()
        return self._accounts.sign_in_with_password(contact, password)

    async def refresh_session(self, session: AuthSession) -> AuthSession:
        self._check_reachable()
        return self._accounts.refresh_session(session)

    async def identify_user(self, access_token: str) -> tuple[str, str]:
        self._check_reachable()
        return self._accounts.identify_user(access_token)

    async def sign_out(self, session: AuthSession) -> None:
        self._check_reachable()
        self._accounts.sign_out(session)
