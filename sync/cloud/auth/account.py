"""The login of a profile, and the only place that refreshes a session.

A refresh uses up its token, and two at once make the server revoke the session. So refreshing, logging in and logging
out share a lock between processes, and the stored session is read at every use: another process may have changed it.
A login obtains a session (`auth`), which changes nothing here, and then enters a profile with it (`log_in`).
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sync.clock import Clock, timestamp
from sync.cloud.auth import owner_store
from sync.cloud.auth.session_storage import SessionStorage
from sync.cloud.auth_port import AccountJson, AuthPort, AuthSession
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

REFRESH_MARGIN_SECONDS: Final = 60.0  # before its end a token is renewed; longer than any request
UNKNOWN_OWNER_HINT: Final = "If it is yours, log in with `--accept`; if not, use another XIAOBAI_DATA_DIR."
REFRESH_GRACE_SECONDS: Final = 1.0  # seconds to finish a refresh at shutdown, which has two
LOCK_TIMEOUT: Final = 150.0  # seconds; more than the two deadlines of another process's refresh


class Account:
    """The login of one profile."""

    def __init__(
        self, database: Database, cloud: Cloud | None, tokens: Callable[[], SessionStorage], *, lock: Path, clock: Clock
    ) -> None:
        self._database = database
        self._cloud = cloud
        self._tokens = tokens
        self._refresh_lock = ProcessLock(lock, timeout=LOCK_TIMEOUT, timeout_error=_refresh_busy_error)
        self._clock = clock
        self._session: AuthSession | None = None
        self._app_session: AuthSession | None = None  # from the app, which refreshes it; never stored
        self._token_requested_for: str | None = None  # the token that the app has to replace
        self.changed = ChangeCounter()
        self.token_needed = ChangeCounter()

    async def state(self) -> AccountJson:
        owner = await self._database.read(owner_store.read_owner)
        session = await self._load_session()
        if owner is not None:
            return AccountJson("logged_in" if session else "logged_out", owner.user_id or None, owner.label)
        return AccountJson("guest" if self._cloud else "not_configured", None, None)

    async def session_from_token(self, access_token: str, expires_at: float) -> AuthSession:
        """The session of the app's token. It has no refresh token: the app refreshes it.

        Raises LoginRequired if the server does not know the token, CloudUnavailable.
        """
        user_id, label = await self.auth.identify_user(access_token)
        return AuthSession(user_id, label, access_token, None, expires_at)

    @property
    def is_logged_in(self) -> bool:
        """Whether the last use of the session found a login."""
        return self._session is not None

    async def owner_id(self) -> str | None:
        """The user this profile belongs to; None for a guest's, empty if a damaged database has lost it."""
        owner = await self._database.read(owner_store.read_owner)
        return None if owner is None else owner.user_id

    async def log_in(self, session: AuthSession, *, accept: bool = False) -> AccountJson:
        """Enter this profile with a session. The first user to enter owns it, with all that a guest has recorded.

        `accept`: the user confirms that the memory is theirs, after a damaged database has lost its owner.
        Raises DifferentUser if the profile belongs to another user. Then nothing has changed, and the caller enters
        another profile with the session or passes it to `discard_session`.
        """
        await self._database.write(self._claim_profile, session, accept=accept)
        if session.refresh_token is None:
            self._app_session = session
        else:
            async with self._refresh_lock.hold():
                await self._save_session(session)
            self._app_session = None
        self.changed.increment()
        return await self.state()

    async def discard_session(self, session: AuthSession) -> None:
        """End an unused session on the server. The app ends its own."""
        if session.refresh_token is not None:
            await self._sign_out(session)

    async def log_out(self) -> AccountJson:
        """Delete the session here, and end it on the server if that answers. The memory and its owner stay."""
        async with self._refresh_lock.hold():
            session = await self._load_session()
            await self._delete_session()
        if session is not None:
            await self.discard_session(session)
        self.changed.increment()
        return await self.state()

    async def session(self, *, rejected_token: str | None = None) -> AuthSession:
        """A session that is valid for at least one request. `rejected_token`: the server has just refused it.

        A refresh that has begun is finished and stored even if the caller is cancelled. Only a definite refusal ends
        the session. Raises LoginRequired, CloudNotConfigured, CloudUnavailable.
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
        """The login server. CloudNotConfigured."""
        return self.cloud.auth

    @property
    def warning(self) -> str | None:
        """The warning of `status` about how the session is stored."""
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
        """Refresh a session, once more if the answer was lost: Auth repeats it for the parent of the active token."""
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
        """After a salvage that lost the owner: claim the profile for the user of the stored session."""
        if await self.owner_id() != UNKNOWN_OWNER:
            return
        try:
            session = await asyncio.to_thread(lambda: self._tokens().load())
        except StorageError:
            return  # the keychain is locked: the user has to log in
        if session is not None:
            await self._database.write(self._claim_profile, session, accept=True)

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
            _ = self.cloud  # without a project, a login is not what is missing
            raise LoginRequired("nobody is logged in", hint="Log in first: `xiaobai-memory login`.")
        return session

    async def _load_session(self) -> AuthSession | None:
        """The stored session if it is the owner's. A keychain entry can outlive its database."""
        if self._cloud is None:
            return None
        if self._app_session is not None:
            self._session = self._app_session
            return self._session
        owner = await self._database.read(owner_store.read_owner)
        stored = await asyncio.to_thread(lambda: self._tokens().load())
        is_owners = stored is not None and owner is not None and stored.user_id == owner.user_id
        self._session = stored if is_owners else None
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
            return  # the token is deleted here, and expires on the server within an hour


def _refresh_busy_error() -> CloudUnavailable:
    return CloudUnavailable("another process has been refreshing the session for too long")
