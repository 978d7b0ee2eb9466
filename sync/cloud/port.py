"""What the program asks of a cloud: `supabase.py` is the real one, `memory.py` its twin, one contract suite for both.

Errors of every implementation: CloudUnavailable (outcome unknown, send again), RateLimited, LoginRequired,
BadCredentials, Forbidden, SchemaMismatch, Rejected (for good), DeviceForked, DeviceConflict.
"""

from dataclasses import dataclass
from typing import Protocol

from sync.log.model import Event
from sync.redaction import Clean


@dataclass(frozen=True, slots=True)
class Session:
    """Who is logged in. `expires_at` in Unix seconds; without a refresh token somebody else refreshes it."""

    user_id: str
    label: str
    access_token: str
    refresh_token: str | None
    expires_at: float

    def __repr__(self) -> str:  # tokens must not reach a log through a traceback
        return f"Session(user_id={self.user_id!r})"


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

    async def sign_in(self, email: str, password: str) -> Session: ...

    async def refresh(self, session: Session) -> Session:
        """A new session for an old one. LoginRequired where the server has revoked it."""
        ...

    async def identify(self, access_token: str) -> tuple[str, str]:
        """Whose token this is: user id and label. LoginRequired where the server does not know it."""
        ...

    async def sign_out(self, session: Session) -> None: ...

    async def register_device(self, session: Session, device_id: str, facts: DeviceFacts) -> None:
        """Make this device known; idempotent. Forbidden where it was revoked."""
        ...

    async def sync(self, session: Session, request: SyncRequest) -> SyncAnswer:
        """Push, acknowledge, pull and store the snapshot in one transaction of the server."""
        ...

    async def close(self) -> None: ...
