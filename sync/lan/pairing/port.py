"""What the local network asks of the profile about pairings, as a protocol. `sync.accounts.paired_devices` answers."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sync.cloud.auth.device_key_store import PairedDeviceRow


class AccountClaim(NamedTuple):
    """The owner of a memory; both are empty for a guest's."""

    account_id: str = ""
    label: str = ""


class Pairings(Protocol):
    """The pairings of a profile, and whose memory it is."""

    async def read(self) -> Sequence[PairedDeviceRow]:
        """The paired devices."""
        ...

    async def owner(self) -> AccountClaim:
        """Whose memory this is. Raises DifferentUser if damage has hidden that."""
        ...

    async def join(self, claim: AccountClaim) -> None:
        """Make a guest's memory that of the other device's owner. Raises DifferentUser if it is another user's."""
        ...

    async def add(self, public_key: str, device_id: str, name: str, discovery_id: str) -> None:
        """Store a pairing."""
        ...

    async def forget(self, device_id: str) -> bool:
        """End a pairing; return whether there was one."""
        ...
