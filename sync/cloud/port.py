"""What the program asks of a cloud: `supabase.py` is the real one, `memory.py` its twin, one contract suite for both.

Logging in is a port of its own (`logins.py`). Errors of every implementation: CloudUnavailable (outcome unknown, send
again), RateLimited, LoginRequired, Forbidden, SchemaMismatch, Rejected (for good), DeviceForked, DeviceConflict.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from sync.cloud.auth_port import AuthPort, AuthSession
from sync.log.model import Event
from sync.redaction import Clean

QUOTA_CODE: Final = "PT429"  # of an event that a daily limit of the account refuses; it is sent again later
FOREIGN_DOCUMENT: Final = "foreign"  # somebody else wrote the device's document since this program read it
STALE_DOCUMENT: Final = "stale"  # an older text of this replica stands there under the same number, and was not named


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What a device says about itself when it registers."""

    replica_id: str
    name: str
    platform: str
    app_version: str
    takeover: str | None = None  # the replica this one replaces, after it turned out to be a copy
    public_key: str | None = None  # `ed25519:` and the base64 of 32 bytes
    proof: str | None = None  # the secret that the server knows this device by, in hexadecimal
    proof_next: str | None = None  # the SHA-256 of the secret from now on; None: the one that is shown

    def __repr__(self) -> str:  # the proof must not reach a log through a traceback
        return f"DeviceFacts(replica_id={self.replica_id!r})"


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device of the account as the server lists it. Times are RFC 3339; a revoked device stays revoked."""

    device_id: str
    name: str | None
    platform: str | None
    app_version: str | None
    public_key: str | None
    created_at: str
    last_seen_at: str
    revoked_at: str | None


@dataclass(frozen=True, slots=True)
class EndedSessions:
    """What revoking a device did to its logins.

    `known`: sessions that the server knows to be the device's. `ended`: how many of them it deleted now. `refused`: the
    project does not let the function delete sessions.
    """

    known: int
    ended: int
    refused: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """The device's document as it may leave: redacted. `through_replica_seq`: the last own event it contains.

    `base_sha256`: the text there that this one may go over: a foreign one that was read and taken in, or one of this
    replica's own with the same `through_replica_seq`.
    """

    content: Clean
    content_sha256: str
    through_replica_seq: int
    base_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """The device's document on the server; `existing_replica_id` is None if another program wrote it."""

    content: str
    content_sha256: str | None
    replica_id: str | None


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """One exchange: what we push, and where we stand: after which number, whose event, taken by the server when."""

    device_id: str
    replica_id: str
    events: tuple[Event, ...] = ()
    after: int = 0
    after_event: str | None = None
    after_ts: str | None = None
    epoch: str | None = None
    limit: int = 500
    snapshot: SnapshotRow | None = None


@dataclass(frozen=True, slots=True)
class SyncAnswer:
    """What the server holds: `acked` pairs of event id and number, `events` after the cursor without a gap.

    `snapshot`: what became of the document: written, kept, STALE, or FOREIGN, which is told without a document as well.
    """

    epoch: str
    head: int
    floor: int
    reset: bool
    events: tuple[Event, ...]
    acked: tuple[tuple[str, int], ...]
    server_time: str
    snapshot: str | None = None


@dataclass(frozen=True, slots=True)
class RealtimeNotice:
    """What came through a channel; anything at all is a sign of life.

    `poke`: the user's log has grown, to `head` where that is said. `ready`: from now on no poke is missed.
    """

    poke: bool = False
    head: int | None = None
    ready: bool = False


class Channel(Protocol):
    """The server's pokes for one user. Every method but `close` raises CloudUnavailable once the channel is over."""

    async def receive(self) -> RealtimeNotice:
        """The next thing that is heard; cancelling the wait loses nothing. LoginRequired, Forbidden: why it ended."""
        ...

    async def send_heartbeat(self) -> None:
        """Ask for a sign of life."""
        ...

    async def update_token(self, session: AuthSession) -> None:
        """Go on under a newer token of the same user, before the old one ends the channel."""
        ...

    async def close(self) -> None: ...


class Cloud(Protocol):
    """A user's memory on a server."""

    @property
    def auth(self) -> AuthPort: ...

    async def register_device(self, session: AuthSession, device_id: str, facts: DeviceFacts) -> None:
        """Make this device known; idempotent. DeviceRevoked where it or its key was, DeviceKeyInUse."""
        ...

    async def list_devices(self, session: AuthSession) -> tuple[DeviceRow, ...]:
        """The account's devices, revoked ones included, the last seen first; 500 at most."""
        ...

    async def rename_device(self, session: AuthSession, device_id: str, name: str) -> None:
        """A name given by a person; no host name replaces it. DeviceUnknown, DeviceRevoked."""
        ...

    async def revoke_device(self, session: AuthSession, device_id: str) -> EndedSessions:
        """For ever. Revoking again changes nothing. DeviceUnknown."""
        ...

    async def report_refusals(self, session: AuthSession, device_id: str, refused: Mapping[str, int]) -> None:
        """For administrators: how many events this device has set aside, by the code they were refused with."""
        ...

    async def sync(self, session: AuthSession, request: SyncRequest) -> SyncAnswer:
        """Push, acknowledge, pull and store the snapshot in one transaction of the server."""
        ...

    async def open_channel(self, session: AuthSession) -> Channel:
        """Join the user's own channel. Forbidden where the project has none, or lets nobody listen."""
        ...

    async def read_document(self, session: AuthSession, device_id: str) -> StoredDocument | None:
        """This user's document of that device; None where there is none."""

    async def is_reachable(self) -> bool:
        """Whether a connection can be made, without sending anything."""
        ...

    async def close(self) -> None: ...
