"""The state of the cloud, and what a round of `sync/now` did."""

from enum import StrEnum

import msgspec

from sync.cloud.replication.freshness import ChannelState
from sync.errors import XiaobaiError
from sync.log.model import RemoteCursor


class CloudState(StrEnum):
    OFF = "off"  # no project is set
    SIGNED_OUT = "signed_out"
    CONNECTING = "connecting"  # no request was made yet
    SYNCED = "synced"
    OFFLINE = "offline"
    REFUSED = "refused"  # the server refuses; a person has to act


class CloudStatus(msgspec.Struct, frozen=True):
    """The cloud part of `sync/status`. `last_error` contains no user text."""

    state: CloudState
    last_sync_at: str | None
    last_error: XiaobaiError | None
    cursor: RemoteCursor
    realtime: ChannelState = "off"


class RoundJson(msgspec.Struct, frozen=True, rename="camel"):
    """What one round did, in events."""

    pushed: int
    pulled: int
    quarantined: int

    def plus(self, other: "RoundJson") -> "RoundJson":
        """The sum of both."""
        return RoundJson(self.pushed + other.pushed, self.pulled + other.pulled, self.quarantined + other.quarantined)
