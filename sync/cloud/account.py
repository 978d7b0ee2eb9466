"""Whose memory this profile is, and the one place that refreshes a session.

Refreshing uses a token up: two refreshers at once make the server revoke the session. So there is one, under a lock
that also holds between processes, and it reads the stored session again before it asks. Logging in and out take the
same lock, or a refresh under way would bring back what was just thrown away. A refresh that has begun is finished and
stored even when its caller is stopped; an answer that got lost is asked for once more at once, which Auth allows for
the parent of the active token. Only a definite refusal ends the session. The store is read at every use, because
another process may have logged in or out. An expired session without an answer from the server raises
CloudUnavailable; nothing is ever sent under the publishable key alone but sign-in.

Logging in has two steps. A session is *obtained* (`logins`: by code or password; `identify`: from the app), which
changes nothing here; then one *enters* a profile with it, which claims the profile, or says that it is another's.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from sqlalchemy import Connection

from sync.clock import Clock, timestamp
from sync.cloud import store
from sync.cloud.logins import Logins, Session
from sync.cloud.port import Cloud
from sync.cloud.tokens import TokenStore
from sync.db.engine import Database
from sync.db.tables import UNKNOWN_OWNER
from sync.errors import (
    CloudError,
    CloudNotConfigured,
    CloudUnavailable,
    DifferentUser,
    LoginRequired,
    RateLimited,
    StorageError,
)
from sync.jobs import to_its_end
from sync.signals import Signal
from sync.turns import Turns

REFRESH_MARGIN: Final = 60.0  # seconds before its end a token is renewed: longer than any one request
WHOSE: Final = "If it is yours, log in with `--accept`; if not, use another XIAOBAI_DATA_DIR."
LET_FINISH: Final = 1.0  # seconds for a refresh under way when we are stopped; the whole stop has two
LOCK_PATIENCE: Final = 150.0  # seconds for another process's refresh: more than its two deadlines can be


@dataclass(frozen=True, slots=True)
class AccountState:
    """What `auth/status` says. `owner`: the account this profile belongs to, also while logged out."""

    state: Literal["not_configured", "guest", "logged_out", "logged_in"]
    user_id: str | None
    label: str | None


class Account:
    """The login of one profile."""

    def __init__(
        self, database: Database, cloud: Cloud | None, tokens: Callable[[], TokenStore], *, lock: Path, clock: Clock
    ) -> None:
        self._database = database
        self._cloud = cloud
        self._tokens = tokens
        self._turns = Turns(lock, patience=LOCK_PATIENCE, late=_busy)  # to replace the stored session
        self._clock = clock
        self._session: Session | None = None
        self._handed: Session | None = None  # by the app, which goes on refreshing it; never stored
        self._asked_for: str | None = None  # the token in whose place we asked the app for another
        self.changed = Signal()
        self.token_needed = Signal()

    async def state(self) -> AccountState:
        owner = await self._database.read(store.owner)
        session = await self._stored()
        if owner is not None:
            return AccountState("logged_in" if session else "logged_out", owner.user_id or None, owner.label)
        return AccountState("guest" if self._cloud else "not_configured", None, None)

    async def identify(self, access_token: str, expires_at: float) -> Session:
        """The session that the app opened and goes on refreshing, so without a refresh token; the server says whose.

        Raises LoginRequired for a token the server does not know, CloudUnavailable.
        """
        user_id, label = await self.logins.identify(access_token)
        return Session(user_id, label, access_token, None, expires_at)

    @property
    def is_open(self) -> bool:
        """Whether somebody was logged in when that was last looked at, here or by a round under way."""
        return self._session is not None

    async def owner_id(self) -> str | None:
        """The user this profile belongs to; None while it is a guest's, empty where damage has hidden it."""
        owner = await self._database.read(store.owner)
        return None if owner is None else owner.user_id

    async def enter(self, session: Session, *, accept: bool = False) -> AccountState:
        """Be logged in here; the first one to enter makes this profile his, with everything the guest recorded.

        `accept`: the memory is this user's, says a person, where a damaged database no longer tells whose it is.
        Raises DifferentUser where the profile is another's. Nothing has changed then, and the session is still open:
        it is the caller's, to enter another profile with or to `abandon`.
        """
        await self._database.write(lambda connection: self._claim(connection, session, accept=accept))
        if session.refresh_token is None:
            self._handed = session
        else:
            async with self._turns.taken():
                await self._save(session)
            self._handed = None
        self.changed.set()
        return await self.state()

    async def abandon(self, session: Session) -> None:
        """End a session on the server that nobody entered with. The app ends its own itself."""
        if session.refresh_token is not None:
            await self._revoke(session)

    async def log_out(self) -> AccountState:
        """Forget the session here and end it on the server if it answers; the memory stays and stays his."""
        async with self._turns.taken():
            session = await self._stored()
            await self._delete()
        if session is not None:
            await self.abandon(session)
        self.changed.set()
        return await self.state()

    async def session(self, *, rejected: str | None = None) -> Session:
        """A session whose token is good for at least one request. `rejected`: a token the server just refused.

        Raises LoginRequired, CloudUnavailable.
        """
        current = await self._needed()
        if not self._stale(current, rejected):
            return current
        return await to_its_end(self._renewed(rejected), LET_FINISH)

    @property
    def cloud(self) -> Cloud:
        if self._cloud is None:
            raise CloudNotConfigured("no Supabase project is set")
        return self._cloud

    @property
    def logins(self) -> Logins:
        """Where sessions are obtained. CloudNotConfigured."""
        return self.cloud.logins

    @property
    def warning(self) -> str | None:
        """What `status` says about how the session is kept."""
        return self._tokens().warning if self._session and self._handed is None else None

    async def _renewed(self, rejected: str | None) -> Session:
        async with self._turns.taken():
            current = await self._needed()  # another task or process may have refreshed it meanwhile
            return await self._refresh(current) if self._stale(current, rejected) else current

    async def _refresh(self, current: Session) -> Session:
        if current.refresh_token is None:
            if self._asked_for != current.access_token:
                self._asked_for = current.access_token
                self.token_needed.set()
            raise LoginRequired("the app's access token is no longer good", hint="The app hands over a new one.")
        try:
            fresh = await self._exchanged(current)
        except LoginRequired:
            await self._delete()
            raise
        await self._save(fresh)
        return fresh

    async def _exchanged(self, current: Session) -> Session:
        """The next session. Where the answer was lost, the server gives it again to whoever asks with its parent."""
        try:
            return await self.logins.refresh(current)
        except CloudUnavailable as error:
            if isinstance(error, RateLimited) or error.retry_after is not None:
                raise
        return await self.logins.refresh(current)

    def _stale(self, session: Session, rejected: str | None) -> bool:
        return session.access_token == rejected or session.expires_at - REFRESH_MARGIN <= self._clock.now().timestamp()

    async def recognise_owner(self) -> None:
        """After a salvage, of this start or of one that was killed, that lost the owner: his whose session is here."""
        if await self.owner_id() != UNKNOWN_OWNER:
            return
        try:
            session = await asyncio.to_thread(lambda: self._tokens().load())
        except StorageError:
            return  # a locked keychain tells nothing: a person has to
        if session is not None:
            await self._database.write(lambda connection: self._claim(connection, session, accept=True))

    def _claim(self, connection: Connection, session: Session, *, accept: bool = False) -> None:
        owner = store.owner(connection)
        if owner is None or (owner.user_id == UNKNOWN_OWNER and accept):
            store.claim(connection, session.user_id, session.label, timestamp(self._clock.now()))
        elif owner.user_id == UNKNOWN_OWNER:
            raise DifferentUser("a damaged database no longer tells whose memory this is", hint=WHOSE)
        elif owner.user_id != session.user_id:
            raise DifferentUser("this memory belongs to another account")

    async def _needed(self) -> Session:
        session = await self._stored()
        if session is None:
            raise LoginRequired("nobody is logged in")
        return session

    async def _stored(self) -> Session | None:
        """The stored session if it is the owner's: a keychain entry can outlive the database it belonged to."""
        if self._cloud is None:
            return None
        if self._handed is not None:
            self._session = self._handed
            return self._session
        owner = await self._database.read(store.owner)
        found = await asyncio.to_thread(lambda: self._tokens().load())
        self._session = found if found is not None and owner is not None and found.user_id == owner.user_id else None
        return self._session

    async def _delete(self) -> None:
        await asyncio.to_thread(lambda: self._tokens().delete())
        self._session = self._handed = None

    async def _save(self, session: Session) -> None:
        await asyncio.to_thread(self._tokens().save, session)
        self._session = session

    async def _revoke(self, session: Session) -> None:
        try:
            await self.logins.sign_out(session)
        except CloudError:
            return  # the server cannot be asked; the token here is gone, and there it expires within the hour


def _busy() -> CloudUnavailable:
    return CloudUnavailable("another process has been refreshing the session for too long")
