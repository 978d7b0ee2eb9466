"""This device as its peers see it: its key, whom it trusts, whose memory it has, and how it is announced."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from sync.cloud.auth.device_key import DeviceKey
from sync.cloud.replication.erasure_guard import ErasureGuard
from sync.errors import DifferentUser, SettingsError
from sync.lan.discovery.beacon import DiscoveryIds
from sync.lan.pairing.port import AccountClaim, Pairings
from sync.lan.protocol.frames import MAX_TEXT, Hello
from sync.lan.transport.connection import ConnectionRefused
from sync.lan.transport.trust import RefusalCause, TrustList
from sync.runtime.change_counter import ChangeCounter

TrustReader = Callable[[str], Awaitable[TrustList]]


@dataclass(frozen=True, slots=True)
class LocalDevice:
    """This device for its peers. `trust_of` reads the trust list, given the own key; `folder` is private."""

    key: DeviceKey
    guard: ErasureGuard
    trust_of: TrustReader
    pairings: Pairings
    greeting: Callable[[], Hello]
    folder: Path
    account_changed: ChangeCounter

    async def trust(self) -> TrustList:
        return await self.trust_of(await self.key.recent_public_key())

    async def owner_id(self) -> str:
        """The account's id; empty for a guest, and if damage has hidden it."""
        return (await self._owner()).account_id

    async def hello(self) -> Hello:
        """The greeting, with the owner of this memory."""
        owner = await self._owner()
        return replace(self.greeting(), account_id=owner.account_id, account_label=owner.label[:MAX_TEXT])

    async def agree_on_account(self, peer: Hello) -> str:
        """The account for which this device talks to a peer, which may make a guest's memory that account's.

        Raises ConnectionRefused if the peer's memory is another user's.
        """
        try:
            await self.pairings.join(AccountClaim(peer.account_id, peer.account_label))
        except (DifferentUser, SettingsError) as error:
            raise ConnectionRefused(RefusalCause.OTHER_ACCOUNT) from error
        return await self.owner_id()

    async def discovery_ids(self) -> DiscoveryIds:
        """What the marks of this device's announcements, and of those that it looks for, are made of."""
        own, paired = await self.owner_id(), await self.pairings.read()
        if not own and paired:
            own = await self.key.discovery_id()
        return DiscoveryIds(own, frozenset(row.discovery_id for row in paired) | ({own} if own else frozenset()))

    async def _owner(self) -> AccountClaim:
        try:
            return await self.pairings.owner()
        except DifferentUser:
            return AccountClaim()
