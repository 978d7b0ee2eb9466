"""The cloud part of `sync/status`."""

from dataclasses import dataclass
from enum import StrEnum

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


@dataclass(frozen=True, slots=True)
class CloudStatus:
    """The cloud part of `sync/status`. `last_error` contains no user text."""

    state: CloudState
    last_sync_at: str | None
    last_error: XiaobaiError | None
    cursor: RemoteCursor
    realtime: ChannelState = "off"
