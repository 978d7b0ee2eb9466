"""Who comes in and who leaves: every login and logout ends here, and with it the choice of the profile.

A user who is not this profile's gets his own, an old one or a new one, and this application has to be closed and
another opened (`left`); one write of `installation.json` decides it (see `sync.switch`). Whoever holds the sidecar
role then hands the memory file over.

One comes in at a time, also by way of another process: of two who find no profile of theirs, each would make one, and
a user with two would find his words in one of them only.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sync import switch
from sync.clock import Clock
from sync.cloud.account import LOCK_PATIENCE, Account, AccountState
from sync.cloud.contact import Contact
from sync.cloud.device_key import kept_proof
from sync.cloud.logins import Session
from sync.cloud.tokens import TokenStore
from sync.document.handover import only_here
from sync.document.memory_file import MemoryFile
from sync.document.neighbours import Neighbour
from sync.errors import DifferentUser, LoginRequired, NotSynced, StorageBusy, XiaobaiError
from sync.log.log import Log
from sync.profiles import Profile, change_installation, new_profile_id, switched
from sync.secret_store import SecretStore
from sync.turns import Turns
from sync.vault.vault import Vault

UNREAD: Final = (
    "Try again in a moment; what stays so, `xiaobai-memory status` names. Keep a copy of it elsewhere, and say that it"
    " may be lost: `--even-unsent` (`evenUnsent`)."
)


@dataclass(frozen=True, slots=True)
class Owned:
    """What is his who is logged in here: it goes where he takes his memory off this machine."""

    profile: Profile
    events: Log
    document: MemoryFile


@dataclass(frozen=True, slots=True)
class Secrets:
    """Where a profile's session and the private half of its device key are kept."""

    session: Callable[[Profile], TokenStore]
    device_key: Callable[[Profile], SecretStore]


class Entrance:
    """The logins of one opened application. `left` is set once it has to make place for another account's."""

    def __init__(
        self,
        data_dir: Path,
        owned: Owned,
        account: Account,
        *,
        clock: Clock,
        secrets: Secrets,
        vault: Vault,
        entered: Callable[[], Awaitable[None]],
    ) -> None:
        """`entered` is called when somebody has logged in here, or out."""
        self._data_dir = data_dir
        self._profile = owned.profile
        self._log = owned.events
        self._document = owned.document
        self._account = account
        self._clock = clock
        self._secrets = secrets
        self._vault = vault
        self._entered = entered
        self._turns = Turns(data_dir / "entrance.lock", patience=LOCK_PATIENCE, late=_busy)
        self.left = asyncio.Event()
        self.handed: Session | None = None  # the app's session, which is nowhere stored: for the next application

    async def verify(self, contact: Contact, code: str, *, accept: bool = False) -> AccountState:
        """Log in with the code that `account.logins.start` has sent."""
        return await self._enter(await self._account.logins.verify(contact, code), accept=accept)

    async def log_in(self, contact: Contact, password: str, *, accept: bool = False) -> AccountState:
        """Log in with a password."""
        return await self._enter(await self._account.logins.sign_in(contact, password), accept=accept)

    async def adopt_session(self, access_token: str, expires_at: float) -> AccountState:
        """Work with a session that the app opened and goes on refreshing."""
        return await self._enter(await self._account.identify(access_token, expires_at))

    async def log_out(self, *, remove: bool = False, even_unsent: bool = False) -> AccountState:
        """End the session. `remove`: take the memory off this machine too; it stays in the cloud.

        Raises NotSynced where something has not reached the cloud yet, or stands in a document only, unless
        `even_unsent`; if it was said only now, the session has ended. LoginRequired where the memory is nobody's, so
        that a removal would be its end.
        """
        owner = await self._account.owner_id()
        if remove:
            await self._check_removable(owner, even_unsent=even_unsent)
        state = await self._account.log_out()
        if not remove:
            await self._entered()
            return state
        await asyncio.to_thread(self._delete_key)
        self._log.ended = True  # what is said from now on would go with the memory
        try:
            await self._check_removable(owner, even_unsent=even_unsent)  # what was said while the server was told
            self._leave_for(new_profile_id(), removing=True)
        except BaseException:
            self._log.ended = False
            await self._entered()
            raise
        return AccountState("guest", None, None)

    async def _enter(self, session: Session, *, accept: bool = False) -> AccountState:
        """Go in here, or leave for the profile that is this user's."""
        async with self._turns.taken():
            owner = await self._account.owner_id()
            home = await self._home_of(session, owner)
            if home is None:
                return await self._enter_here(session, accept=accept)
            if session.refresh_token is None:
                self.handed = session
            else:
                await asyncio.to_thread(self._secrets.session(home).save, session)
            self._leave_for(home.name, removing=owner is None)  # a guest's words go along, and nothing of him stays
            return AccountState("logged_in", session.user_id, session.label)

    async def _home_of(self, session: Session, owner: str | None) -> Profile | None:
        try:
            return await switch.other_home(self._profile, owner, session, self._vault, self._clock)
        except XiaobaiError:
            await self._account.abandon(session)  # nobody will use it
            raise

    async def _enter_here(self, session: Session, *, accept: bool) -> AccountState:
        try:
            state = await self._account.enter(session, accept=accept)
        except DifferentUser:
            await self._account.abandon(session)  # nobody will use it
            raise
        if self.left.is_set():  # for somebody who has come in before, and whose application was not opened yet
            self.handed = session if session.refresh_token is None else None
            change_installation(self._data_dir, lambda now: switched(now, self._profile.name))
        await self._entered()
        return state

    def _delete_key(self) -> None:
        """Delete the device's key. Its proof stays: with it the next memory here takes the device over at once."""
        secrets = self._secrets.device_key(self._profile)
        proof = kept_proof(secrets)
        change_installation(self._data_dir, lambda now: replace(now, former_proof=proof or now.former_proof))
        secrets.delete()

    def _leave_for(self, profile: str, *, removing: bool) -> None:
        going = self._profile.name if removing else None
        change_installation(self._data_dir, lambda now: switched(now, profile, removing=going))
        self.left.set()

    async def _check_removable(self, owner: str | None, *, even_unsent: bool) -> None:
        if not owner:
            raise LoginRequired("this memory belongs to no account, so no cloud holds it", hint="Log in first.")
        if even_unsent:
            return
        home = Neighbour(self._profile.database, self._profile.parked)
        if (unread := await only_here(self._document, home)) is not None:
            raise NotSynced(unread, hint=UNREAD)
        waiting = await self._log.outbox(behind_writes=True)  # of what was taken in meanwhile too
        if unsent := waiting.pending + waiting.quarantined:
            raise NotSynced(f"{unsent} events are on this device only")


def _busy() -> StorageBusy:
    return StorageBusy("another process has been logging in for too long")
