"""Log in and out, and choose the profile.

A user who does not own this profile gets another one: this application must be closed and another opened
(`profile_left`). One write of `installation.json` decides it (see `sync.accounts.switching`). Logins run one at a time
across processes: two at once could create two profiles for one user.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.accounts import switching
from sync.accounts.profiles import Profile, change_installation, new_profile_id, with_active_profile
from sync.clock import Clock
from sync.cloud.auth.account import LOCK_TIMEOUT, Account
from sync.cloud.auth.device_key import load_proof
from sync.cloud.auth.session_storage import SessionStorage
from sync.cloud.auth_port import AccountJson, AuthSession
from sync.cloud.contact import Contact
from sync.document.ownership.other_profiles import ProfilePaths
from sync.document.surfaces.handover import unrecorded_content
from sync.errors import DifferentUser, LoginRequired, NotSynced, StorageBusy, XiaobaiError
from sync.system.process_lock import ProcessLock
from sync.system.secret_store import SecretStore

UNREAD_FILE_HINT: Final = (
    "Try again in a moment; what stays so, `xiaobai-memory status` names. Keep a copy of it elsewhere, and say that it"
    " may be lost: `--even-unsent` (`evenUnsent`)."
)


class ProfileSecrets(msgspec.Struct, frozen=True):
    """The stores of a profile's session and of the private half of its device key."""

    session_store: Callable[[Profile], SessionStorage]
    device_key_store: Callable[[Profile], SecretStore]


class LoginFlow:
    """The logins of one open application. `profile_left` is set when another account's application must be opened."""

    def __init__(
        self,
        active: switching.ActiveProfile,
        account: Account,
        *,
        clock: Clock,
        secrets: ProfileSecrets,
        on_account_change: Callable[[], Awaitable[None]],
        before_logout: Callable[[], Awaitable[None]],
    ) -> None:
        """`on_account_change` is called after a login or logout in this profile; `before_logout` may still send."""
        self._data_dir = active.data_dir
        self._profile = active.profile
        self._log = active.events
        self._document = active.document
        self._account = account
        self._clock = clock
        self._secrets = secrets
        self._encryption = active.encryption
        self._on_account_change = on_account_change
        self._before_logout = before_logout
        self._login_lock = ProcessLock(
            active.data_dir / "entrance.lock", timeout=LOCK_TIMEOUT, timeout_error=_login_busy_error
        )
        self.profile_left = asyncio.Event()
        self.app_session: AuthSession | None = None  # not stored: the next application continues with it

    async def verify_code(self, contact: Contact, code: str, *, accept: bool = False) -> AccountJson:
        """Log in with a code that was sent."""
        return await self._log_in_session(await self._account.auth.verify_code(contact, code), accept=accept)

    async def log_in(self, contact: Contact, password: str, *, accept: bool = False) -> AccountJson:
        """Log in with a password."""
        return await self._log_in_session(
            await self._account.auth.sign_in_with_password(contact, password), accept=accept
        )

    async def adopt_session(self, access_token: str, expires_at: float) -> AccountJson:
        """Use a session that the app opened and keeps refreshing."""
        return await self._log_in_session(await self._account.session_from_token(access_token, expires_at))

    async def log_out(self, *, remove: bool = False, even_unsent: bool = False) -> AccountJson:
        """End the session. `remove`: delete the memory from this machine too; it stays in the cloud.

        Unless `even_unsent`, raises NotSynced if something has not reached the cloud or exists in a document only; the
        session may have ended by then. Raises LoginRequired if the memory has no account: removal would destroy it.
        """
        owner = await self._account.owner_id()
        if remove:
            await self._check_removable(owner, even_unsent=even_unsent)
        await self._before_logout()
        state = await self._account.log_out()
        if not remove:
            await self._on_account_change()
            return state
        await asyncio.to_thread(self._delete_device_key)
        self._log.writes_stopped = True  # a later write would be removed with the memory
        try:
            await self._check_removable(owner, even_unsent=even_unsent)  # of what was recorded during the logout
            self._switch_to(new_profile_id(), remove_current=True)
        except BaseException:
            self._log.writes_stopped = False
            await self._on_account_change()
            raise
        return AccountJson("guest", None, None)

    async def _log_in_session(self, session: AuthSession, *, accept: bool = False) -> AccountJson:
        """Log in to this profile, or leave it for the user's own."""
        async with self._login_lock.hold():
            owner = await self._account.owner_id()
            other = await self._other_profile_of(session, owner)
            if other is None:
                return await self._log_in_here(session, accept=accept)
            if session.refresh_token is None:
                self.app_session = session
            else:
                await asyncio.to_thread(self._secrets.session_store(other).save, session)
            self._switch_to(other.name, remove_current=owner is None)  # a guest's data moves along
            return AccountJson("logged_in", session.user_id, session.label)

    async def _other_profile_of(self, session: AuthSession, owner: str | None) -> Profile | None:
        try:
            return await switching.find_profile_for(self._profile, owner, session, self._encryption, self._clock)
        except XiaobaiError:
            await self._account.discard_session(session)  # it will not be used
            raise

    async def _log_in_here(self, session: AuthSession, *, accept: bool) -> AccountJson:
        try:
            state = await self._account.log_in(session, accept=accept)
        except DifferentUser:
            await self._account.discard_session(session)  # it will not be used
            raise
        if self.profile_left.is_set():  # an earlier login chose another profile, which was not opened yet
            self.app_session = session if session.refresh_token is None else None
            change_installation(self._data_dir, lambda now: with_active_profile(now, self._profile.name))
        await self._on_account_change()
        return state

    def _delete_device_key(self) -> None:
        """Delete the device's key. Its proof stays, so that the next memory here can take the device over at once."""
        secrets = self._secrets.device_key_store(self._profile)
        proof = load_proof(secrets)
        change_installation(self._data_dir, lambda now: replace(now, former_proof=proof or now.former_proof))
        secrets.delete()

    def _switch_to(self, profile: str, *, remove_current: bool) -> None:
        removing = self._profile.name if remove_current else None
        change_installation(self._data_dir, lambda now: with_active_profile(now, profile, removing=removing))
        self.profile_left.set()

    async def _check_removable(self, owner: str | None, *, even_unsent: bool) -> None:
        if not owner:
            raise LoginRequired("this memory belongs to no account, so no cloud holds it", hint="Log in first.")
        if even_unsent:
            return
        paths = ProfilePaths(self._profile.database, self._profile.parked_folder)
        if (unread := await unrecorded_content(self._document, paths)) is not None:
            raise NotSynced(unread, hint=UNREAD_FILE_HINT)
        outbox = await self._log.outbox(after_pending_writes=True)  # including what was just ingested
        if unsent := outbox.pending + outbox.quarantined:
            raise NotSynced(f"{unsent} events are on this device only")


def _login_busy_error() -> StorageBusy:
    return StorageBusy("another process has been logging in for too long")
