"""The devices that were paired with this one by code, and whose memory a pairing makes this one.

Reasons: docs/decisions/035-pairing.md.
"""

from collections.abc import Awaitable, Callable

from sync.clock import Clock, timestamp
from sync.cloud.auth import device_key_store, owner_store
from sync.cloud.auth.account import Account
from sync.cloud.auth.device_key_store import PairedDeviceRow
from sync.db.engine import Database
from sync.db.schema import UNKNOWN_OWNER
from sync.errors import DifferentUser
from sync.lan.pairing.port import AccountClaim
from sync.runtime.change_counter import ChangeCounter


class PairedDevices:
    """The pairings of one profile. `has_other_profile`: whether another profile of this machine is that user's."""

    def __init__(
        self, database: Database, account: Account, has_other_profile: Callable[[str], Awaitable[bool]], clock: Clock
    ) -> None:
        self._database = database
        self._account = account
        self._has_other_profile = has_other_profile
        self._clock = clock
        self.after_pairing: Callable[[str], Awaitable[None]] | None = None
        self.changed = ChangeCounter()

    async def read(self) -> list[PairedDeviceRow]:
        """The paired devices, the first one first."""
        return await self._database.read(device_key_store.read_paired_devices)

    async def owner(self) -> AccountClaim:
        """Whose memory this is. Raises DifferentUser if damage has hidden that."""
        owner = await self._database.read(owner_store.read_owner)
        if owner is None:
            return AccountClaim()
        if owner.user_id == UNKNOWN_OWNER:
            raise DifferentUser("a damaged database no longer tells whose memory this is", hint="Log in first.")
        return AccountClaim(owner.user_id, owner.label)

    async def join(self, claim: AccountClaim) -> None:
        """Make a guest's memory that of the other device's owner. Raises DifferentUser.

        A second profile of a user would hide what the first one has, so a user who has one here logs in instead.
        """
        own = await self.owner()
        if claim.account_id in {"", own.account_id}:
            return
        if await self._has_other_profile(claim.account_id):
            raise DifferentUser("this machine has a memory of the other device's account", hint="Log in to it.")
        now = timestamp(self._clock.now())
        if await self._database.write(owner_store.claim_guest_profile, *claim, now) != claim.account_id:
            raise DifferentUser("the other device's memory belongs to another account")
        self._account.changed.increment()

    async def add(self, public_key: str, device_id: str, name: str, discovery_id: str) -> None:
        """Store a pairing; an earlier one of the same device goes."""
        row = PairedDeviceRow(public_key, device_id, name, discovery_id, timestamp(self._clock.now()))
        await self._database.write(device_key_store.add_paired_device, row)
        if self.after_pairing is not None:
            await self.after_pairing(device_id)
        self.changed.increment()

    async def forget(self, device_id: str) -> bool:
        """End a pairing; return whether there was one."""
        was_paired = await self._database.write(device_key_store.remove_paired_device, device_id)
        self.changed.increment()
        return was_paired
