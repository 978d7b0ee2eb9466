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

from sync.clock import Clock, timestamp
from sync.cloud.auth import owner_store
from sync.cloud.auth.session_storage import SessionStorage
from sync.cloud.auth_port import AuthPort, AuthSession
from sync.cloud.port import Cloud
from sync.db.engine import Database, Transaction
from sync.db.schema import UNKNOWN_OWNER
from sync.errors import (
    CloudError,
    CloudNotConfigured,
    CloudUnavailable,
    DifferentUser,
    LoginRequired,
    RateLimited,
    StorageError,
)
from sync.runtime.change_counter import ChangeCounter
from sync.runtime.supervision import finish_despite_cancel
from sync.system.process_lock import ProcessLock

REFRESH_MARGIN_SECONDS: Final = 60.0  # seconds before its end a token is renewed: longer than any one request
UNKNOWN_OWNER_HINT: Final = "If it is yours, log in with `--accept`; if not, use another XIAOBAI_DATA_DIR."
REFRESH_GRACE_SECONDS: Final = 1.0  # seconds for a refresh under way when we are stopped; the whole stop has two
LOCK_TIMEOUT: Final = 150.0  # seconds for another process's refresh: more than its two deadlines can be


@dataclass(frozen=True, slots=True)
class AccountState:
    """What `auth/status` says. `owner`: the account this profile belongs to, also while logged out."""

    state: Literal["not_configured", "guest", "logged_out", "logged_in"]
    user_id: str | None
    label: str | None


class Account:
    """The login of one profile."""

    def __init__(
        self, database: Database, cloud: Cloud | None, tokens: Callable[[], SessionStorage], *, lock: Path, clock: Clock
    ) -> None:
        self._database = database
        self._cloud = cloud
        self._tokens = tokens
        self._refresh_lock = ProcessLock(
            lock, timeout=LOCK_TIMEOUT, timeout_error=_refresh_busy_error
        )  # to replace the stored session
        self._clock = clock
        self._session: AuthSession | None = None
        self._app_session: AuthSession | None = None  # by the app, which goes on refreshing it; never stored
        self._token_requested_for: str | None = None  # the token in whose place we asked the app for another
        self.changed = ChangeCounter()
        self.token_needed = ChangeCounter()

    async def state(self) -> AccountState:
        owner = await self._database.read(owner_store.read_owner)
        session = await self._load_session()
        if owner is not None:
            return AccountState("logged_in" if session else "logged_out", owner.user_id or None, owner.label)
        return AccountState("guest" if self._cloud else "not_configured", None, None)

    async def session_from_token(self, access_token: str, expires_at: float) -> AuthSession:
        """The session that the app opened and goes on refreshing, so without a refresh token; the server says whose.

        Raises LoginRequired for a token the server does not know, CloudUnavailable.
        """
        user_id, label = await self.auth.identify_user(access_token)
        return AuthSession(user_id, label, access_token, None, expires_at)

    @property
    def is_logged_in(self) -> bool:
        """Whether somebody was logged in when that was last looked at, here or by a round under way."""
        return self._session is not None

    async def owner_id(self) -> str | None:
        """The user this profile belongs to; None while it is a guest's, empty where damage has hidden it."""
        owner = await self._database.read(owner_store.read_owner)
        return None if owner is None else owner.user_id

    async def log_in(self, session: AuthSession, *, accept: bool = False) -> AccountState:
        """Be logged in here; the first one to enter makes this profile his, with everything the guest recorded.

        `accept`: the memory is this user's, says a person, where a damaged database no longer tells whose it is.
        Raises DifferentUser where the profile is another's. Nothing has changed then, and the session is still open:
        it is the caller's, to enter another profile with or to `abandon`.
        """
        await self._database.write(lambda connection: self._claim_profile(connection, session, accept=accept))
        if session.refresh_token is None:
            self._app_session = session
        else:
            async with self._refresh_lock.hold():
                await self._save_session(session)
            self._app_session = None
        self.changed.increment()
        return await self.state()

    async def discard_session(self, session: AuthSession) -> None:
        """End a session on the server that nobody entered with. The app ends its own itself."""
        if session.refresh_token is not None:
            await self._sign_out(session)

    async def log_out(self) -> AccountState:
        """Forget the session here and end it on the server if it answers; the memory stays and stays his."""
        async with self._refresh_lock.hold():
            session = await self._load_session()
            await self._delete_session()
        if session is not None:
            await self.discard_session(session)
        self.changed.increment()
        return await self.state()

    async def session(self, *, rejected_token: str | None = None) -> AuthSession:
        """A session whose token is good for at least one request. `rejected`: a token the server just refused.

        Raises LoginRequired, CloudUnavailable.
        """
        current = await self._require_session()
        if not self._is_stale(current, rejected_token):
            return current
        return await finish_despite_cancel(self._refresh_if_stale(rejected_token), REFRESH_GRACE_SECONDS)

    @property
    def cloud(self) -> Cloud:
        if self._cloud is None:
            raise CloudNotConfigured("no Supabase project is set")
        return self._cloud

    @property
    def auth(self) -> AuthPort:
        """Where sessions are obtained. CloudNotConfigured."""
        return self.cloud.auth

    @property
    def warning(self) -> str | None:
        """What `status` says about how the session is kept."""
        return self._tokens().warning if self._session and self._app_session is None else None

    async def _refresh_if_stale(self, rejected_token: str | None) -> AuthSession:
        async with self._refresh_lock.hold():
            current = await self._require_session()  # another task or process may have refreshed it meanwhile
            return await self._refresh(current) if self._is_stale(current, rejected_token) else current

    async def _refresh(self, current: AuthSession) -> AuthSession:
        if current.refresh_token is None:
            if self._token_requested_for != current.access_token:
                self._token_requested_for = current.access_token
                self.token_needed.increment()
            raise LoginRequired("the app's access token is no longer good", hint="The app hands over a new one.")
        try:
            fresh = await self._refresh_with_retry(current)
        except LoginRequired:
            await self._delete_session()
            raise
        await self._save_session(fresh)
        return fresh

    async def _refresh_with_retry(self, current: AuthSession) -> AuthSession:
        """The next session. Where the answer was lost, the server gives it again to whoever asks with its parent."""
        try:
            return await self.auth.refresh_session(current)
        except CloudUnavailable as error:
            if isinstance(error, RateLimited) or error.retry_after is not None:
                raise
        return await self.auth.refresh_session(current)

    def _is_stale(self, session: AuthSession, rejected_token: str | None) -> bool:
        return (
            session.access_token == rejected_token
            or session.expires_at - REFRESH_MARGIN_SECONDS <= self._clock.now().timestamp()
        )

    async def restore_owner(self) -> None:
        """After a salvage, of this start or of one that was killed, that lost the owner: his whose session is here."""
        if await self.owner_id() != UNKNOWN_OWNER:
            return
        try:
            session = await asyncio.to_thread(lambda: self._tokens().load())
        except StorageError:
            return  # a locked keychain tells nothing: a person has to
        if session is not None:
            await self._database.write(lambda connection: self._claim_profile(connection, session, accept=True))

    def _claim_profile(self, connection: Transaction, session: AuthSession, *, accept: bool = False) -> None:
        owner = owner_store.read_owner(connection)
        if owner is None or (owner.user_id == UNKNOWN_OWNER and accept):
            owner_store.claim_profile(connection, session.user_id, session.label, timestamp(self._clock.now()))
        elif owner.user_id == UNKNOWN_OWNER:
            raise DifferentUser("a damaged database no longer tells whose memory this is", hint=UNKNOWN_OWNER_HINT)
        elif owner.user_id != session.user_id:
            raise DifferentUser("this memory belongs to another account")

    async def _require_session(self) -> AuthSession:
        session = await self._load_session()
        if session is None:
            raise LoginRequired("nobody is logged in")
        return session

    async def _load_session(self) -> AuthSession | None:
        """The stored session if it is the owner's: a keychain entry can outlive the database it belonged to."""
        if self._cloud is None:
            return None
        if self._app_session is not None:
            self._session = self._app_session
            return self._session
        owner = await self._database.read(owner_store.read_owner)
        found = await asyncio.to_thread(lambda: self._tokens().load())
        self._session = found if found is not None and owner is not None and found.user_id == owner.user_id else None
        return self._session

    async def _delete_session(self) -> None:
        await asyncio.to_thread(lambda: self._tokens().delete())
        self._session = self._app_session = None

    async def _save_session(self, session: AuthSession) -> None:
        await asyncio.to_thread(self._tokens().save, session)
        self._session = session

    async def _sign_out(self, session: AuthSession) -> None:
        try:
            await self.auth.sign_out(session)
        except CloudError:
            return  # the server cannot be asked; the token here is gone, and there it expires within the hour


def _refresh_busy_error() -> CloudUnavailable:
    return CloudUnavailable("another process has been refreshing the session for too long")
