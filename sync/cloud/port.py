"""The server as a protocol. Implemented by `supabase/cloud.py` and `fake/server.py`; one contract suite tests both.

Errors: CloudUnavailable (outcome unknown: send again), RateLimited, LoginRequired, Forbidden, SchemaMismatch, Rejected
(for good), DeviceForked, DeviceConflict. Logging in is a port of its own, `auth_port.py`.
"""

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from sync.cloud.auth_port import AuthPort, AuthSession
from sync.log.model import Event
from sync.redaction import Clean

QUOTA_CODE: Final = "PT429"  # of an event that a daily limit of the account refuses; it is sent again later
FOREIGN_DOCUMENT: Final = "foreign"  # another program has written the device's document since this one read it
STALE_DOCUMENT: Final = (
    "stale"  # the server has another text of this replica with the same number, not named as the base
)


class DeviceFacts(msgspec.Struct, frozen=True):
    """A device's registration."""

    replica_id: str
    name: str
    platform: str
    app_version: str
    takeover: str | None = None  # the replica that this one replaces
    public_key: str | None = None  # `ed25519:` and the base64 of 32 bytes
    proof: str | None = None  # the secret that proves this device, in hexadecimal
    proof_next: str | None = None  # SHA-256 of the next secret; None keeps `proof`

    def __repr__(self) -> str:  # keeps the proof out of logs and tracebacks
        return f"DeviceFacts(replica_id={self.replica_id!r})"


class DeviceRow(msgspec.Struct, frozen=True):
    """A device of the account as the server lists it. Times are RFC 3339; a revoked device stays revoked."""

    device_id: str
    name: str | None
    platform: str | None
    app_version: str | None
    public_key: str | None
    created_at: str
    last_seen_at: str
    revoked_at: str | None


class EndedSessions(msgspec.Struct, frozen=True):
    """What revoking a device did to its sessions.

    The server knew of `known` sessions and has deleted `ended` of them. `refused`: the project does not let the
    function delete sessions.
    """

    known: int
    ended: int
    refused: bool = False


class SnapshotRow(msgspec.Struct, frozen=True):
    """The device's redacted document. `through_replica_seq` is the last own event that it contains.

    `base_sha256` is the text on the server that it may replace: a foreign one that was imported, or an own one with the
    same `through_replica_seq`.
    """

    content: Clean
    content_sha256: str
    through_replica_seq: int
    base_sha256: str | None = None


class StoredDocument(msgspec.Struct, frozen=True):
    """The device's document on the server; `replica_id` is None if another program wrote it."""

    content: str
    content_sha256: str | None
    replica_id: str | None


class SyncRequest(msgspec.Struct, frozen=True):
    """Events to push, and the cursor: the last number pulled, its event id and the server's time of it."""

    device_id: str
    replica_id: str
    events: tuple[Event, ...] = ()
    after: int = 0
    after_event: str | None = None
    after_ts: str | None = None
    epoch: str | None = None
    limit: int = 500
    snapshot: SnapshotRow | None = None


class SyncAnswer(msgspec.Struct, frozen=True):
    """Acknowledged pairs of event id and number, and the events after the cursor, without a gap.

    `snapshot` is the outcome for the document: written, kept, STALE or FOREIGN; FOREIGN also without a document.
    """

    epoch: str
    head: int
    floor: int
    reset: bool
    events: tuple[Event, ...]
    acked: tuple[tuple[str, int], ...]
    server_time: str
    snapshot: str | None = None
    poll_seconds: float | None = None  # how often the owner of the project wants a device at rest to ask


class RealtimeNotice(msgspec.Struct, frozen=True):
    """A message of a channel; any message is a sign of life.

    `poke`: the user's log has grown, to `head` if given. `ready`: from now on no poke is missed.
    """

    poke: bool = False
    head: int | None = None
    ready: bool = False


class Channel(Protocol):
    """The server's notices for one user. Once it has ended, all methods but `close` raise CloudUnavailable."""

    async def receive(self) -> RealtimeNotice:
        """Wait for the next notice; cancelling loses none. LoginRequired or Forbidden say why the channel ended."""
        ...

    async def send_heartbeat(self) -> None:
        """Ask for a sign of life."""
        ...

    async def update_token(self, session: AuthSession) -> None:
        """Use a newer token of the same user, before the old one expires."""
        ...

    async def close(self) -> None: ...


class Cloud(Protocol):
    """A user's memory on a server."""

    @property
    def auth(self) -> AuthPort: ...

    async def register_device(self, session: AuthSession, device_id: str, facts: DeviceFacts) -> None:
        """Register this device; idempotent. DeviceRevoked if it or its key was revoked, DeviceKeyInUse."""
        ...

    async def list_devices(self, session: AuthSession) -> tuple[DeviceRow, ...]:
        """At most 500 devices of the account, revoked ones included, the last seen first."""
        ...

    async def rename_device(self, session: AuthSession, device_id: str, name: str) -> None:
        """Set a name that no host name replaces. DeviceUnknown, DeviceRevoked."""
        ...

    async def revoke_device(self, session: AuthSession, device_id: str) -> EndedSessions:
        """Revoke a device for good; idempotent. DeviceUnknown."""
        ...

    async def report_refusals(self, session: AuthSession, device_id: str, refused: Mapping[str, int]) -> None:
        """Report to administrators how many events this device has in quarantine, by the code of their refusal."""
        ...

    async def sync(self, session: AuthSession, request: SyncRequest) -> SyncAnswer:
        """Push, acknowledge, pull and store the snapshot in one transaction of the server."""
        ...

    async def open_channel(self, session: AuthSession) -> Channel:
        """Join the user's channel. Forbidden if the project has no Realtime or does not let users join."""
        ...

    async def read_document(self, session: AuthSession, device_id: str) -> StoredDocument | None:
        """The stored document of that device; None if there is none."""

    async def is_reachable(self) -> bool:
        """Whether a connection can be made. Sends nothing."""
        ...

    async def close(self) -> None: ...
