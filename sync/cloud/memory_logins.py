"""The login server's twin in memory: accounts, codes, sessions, with GoTrue's waiting time and expiry.

A test reads a code where a person would (`code_sent_to`). As on a hosted project a code is good once, for an hour, and
only the newest one; there is a minute between two messages; verifying one makes the account where there is none.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from sync.clock import Clock
from sync.cloud.contact import Contact
from sync.cloud.logins import RESEND_SECONDS, Session
from sync.errors import BadCredentials, CodeRefused, LoginRequired, RateLimited

TOKEN_SECONDS: Final = 3600.0
CODE_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class _Person:
    user_id: str
    label: str
    password: str | None


@dataclass(slots=True)
class _Sent:
    code: str
    at: float
    good: bool = True


class MemoryAccounts:
    """Everybody who can log in, and what was sent to them. `contact.value` is who it is."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._people: dict[str, _Person] = {}
        self._sent: dict[str, _Sent] = {}
        self._tokens: dict[str, tuple[str, float]] = {}
        self._refresh: dict[str, str] = {}
        self._replaced: dict[str, Session] = {}  # by the refresh token that was used up for it

    def add(self, contact: Contact, password: str | None = None) -> str:
        """The id of a new user."""
        person = _Person(f"user-{len(self._people) + 1}", contact.label, password)
        self._people[contact.value] = person
        return person.user_id

    def code_sent_to(self, contact: Contact) -> str:
        return self._sent[contact.value].code

    def revoke_sessions(self) -> None:
        self._tokens.clear()
        self._refresh.clear()

    def expire_tokens(self) -> None:
        self._tokens = {token: (user, 0.0) for token, (user, _) in self._tokens.items()}

    def user_of(self, access_token: str) -> str:
        """Whose token this is. LoginRequired."""
        user_id, expires = self._tokens.get(access_token, ("", 0.0))
        if expires <= self._now():
            raise LoginRequired("the server does not know this token")
        return user_id

    # --- what the client half calls ------------------------------------------------------------------------

    def send_code(self, contact: Contact) -> None:
        last = self._sent.get(contact.value)
        if last is not None and (wait := last.at + RESEND_SECONDS - self._now()) > 0:
            raise RateLimited("too many messages or attempts", retry_after=wait)
        number = int.from_bytes(self._clock.random_bytes(4)) % 10**6
        self._sent[contact.value] = _Sent(f"{number:06}", self._now())

    def open_with_code(self, contact: Contact, code: str) -> Session:
        sent = self._sent.get(contact.value)
        if sent is None or not sent.good or sent.code != code or sent.at + CODE_SECONDS <= self._now():
            raise CodeRefused("the code is wrong or no longer good")
        sent.good = False
        if contact.value not in self._people:
            self.add(contact)
        return self._issue(self._people[contact.value])

    def open_session(self, contact: Contact, password: str) -> Session:
        known = self._people.get(contact.value)
        if known is None or known.password != password:
            raise BadCredentials("the number or address, or the password, is wrong")
        return self._issue(known)

    def renew(self, session: Session) -> Session:
        """As GoTrue does: who used the parent of the active token up and did not hear the answer gets it once more.

        The refresh token is the same then; the access token is a new one, which is good for a whole hour again.
        """
        parent = session.refresh_token or ""
        user_id = self._refresh.pop(parent, None)
        if user_id is not None:
            self._replaced[parent] = self._issue(self._person(user_id))
            return self._replaced[parent]
        known = self._replaced.get(parent)
        if known is None or known.refresh_token not in self._refresh:
            raise LoginRequired("the session was ended by the server")
        token, expires = self._admit(known.user_id)
        return replace(known, access_token=token, expires_at=expires)

    def identify(self, access_token: str) -> tuple[str, str]:
        person = self._person(self.user_of(access_token))
        return person.user_id, person.label

    def close_session(self, session: Session) -> None:
        self._tokens.pop(session.access_token, None)
        self._refresh.pop(session.refresh_token or "", None)

    def _issue(self, person: _Person) -> Session:
        token, expires = self._admit(person.user_id)
        refresh = self._clock.random_bytes(16).hex()
        self._refresh[refresh] = person.user_id
        return Session(person.user_id, person.label, token, refresh, expires)

    def _admit(self, user_id: str) -> tuple[str, float]:
        """A new access token and when it ends."""
        token, expires = self._clock.random_bytes(16).hex(), self._now() + TOKEN_SECONDS
        self._tokens[token] = (user_id, expires)
        return token, expires

    def _person(self, user_id: str) -> _Person:
        return next(person for person in self._people.values() if person.user_id == user_id)

    def _now(self) -> float:
        return self._clock.now().timestamp()


class MemoryLogins:
    """One device's way to `MemoryAccounts`. `check_reachable` raises where there is none."""

    def __init__(self, accounts: MemoryAccounts, check_reachable: Callable[[], None]) -> None:
        self._accounts = accounts
        self._check_reachable = check_reachable

    async def start(self, contact: Contact) -> None:
        self._check_reachable()
        self._accounts.send_code(contact)

    async def verify(self, contact: Contact, code: str) -> Session:
        self._check_reachable()
        return self._accounts.open_with_code(contact, code)

    async def sign_in(self, contact: Contact, password: str) -> Session:
        self._check_reachable()
        return self._accounts.open_session(contact, password)

    async def refresh(self, session: Session) -> Session:
        self._check_reachable()
        return self._accounts.renew(session)

    async def identify(self, access_token: str) -> tuple[str, str]:
        self._check_reachable()
        return self._accounts.identify(access_token)

    async def sign_out(self, session: Session) -> None:
        self._check_reachable()
        self._accounts.close_session(session)
