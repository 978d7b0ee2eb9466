"""What the program asks of a cloud: `supabase.py` is the real one, `memory.py` its twin, one contract suite for both.

Logging in is a port of its own (`logins.py`). Errors of every implementation: CloudUnavailable (outcome unknown, send
again), RateLimited, LoginRequired, Forbidden, SchemaMismatch, Rejected (for good), DeviceForked, DeviceConflict.
"""

from dataclasses import dataclass
from typing import Protocol

from sync.cloud.logins import Logins, Session
from sync.log.model import Event
from sync.redaction import Clean


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What a device says about itself when it registers."""

    replica_id: str
    name: str
    platform: str
    app_version: str
    takeover: str | None = None  # the replica this one replaces, after it turned out to be a copy


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """The device's document as it may leave: redacted. `through_replica_seq`: the last own event it contains."""

    content: Clean
    content_sha256: str
    through_replica_seq: int


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """One exchange: what we push, and where we stand."""

    device_id: str
    replica_id: str
    events: tuple[Event, ...] = ()
    after: int = 0
    after_event: str | None = None
    epoch: str | None = None
    limit: int = 500
    snapshot: SnapshotRow | None = None


@dataclass(frozen=True, slots=True)
class SyncAnswer:
    """What the server holds: `acked` pairs of event id and number, `events` after the cursor without a gap."""

    epoch: str
    head: int
    floor: int
    reset: bool
    events: tuple[Event, ...]
    acked: tuple[tuple[str, int], ...]
    server_time: str


class Cloud(Protocol):
    """A user's memory on a server."""

    @property
    def logins(self) -> Logins: ...

    async def register_device(self, session: Session, device_id: str, facts: DeviceFacts) -> None:
        """Make this device known; idempotent. Forbidden where it was revoked."""
        ...

    async def sync(self, session: Session, request: SyncRequest) -> SyncAnswer:
        """Push, acknowledge, pull and store the snapshot in one transaction of the server."""
        ...

    async def close(self) -> None: ...
