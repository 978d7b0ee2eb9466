"""What an event is, and what may be asked of the log. Pure values."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from sync.log.event_types import DEVICE_LOCAL_TYPES, ERASING_TYPES, PAYLOAD_EXPIRED
from sync.redaction import Clean, CleanPayload

SCHEMA_VERSION: Final = 1
MAX_EVENT_BYTES: Final = 60 * 1024  # an event as JSON; the server refuses 64 KiB, the rest is room for its own fields
MAX_EVENT_ID_LENGTH: Final = 128
MAX_NAME_LENGTH: Final = 256  # project ids, session ids and types: names, not texts
MAX_PAGE_EVENTS: Final = 1_000  # events in one answer unless the caller asks for less
GLOBAL_PROJECT: Final = "proj_global"
ERASURE_STATE_FIELD: Final = "held"  # a mark of this device in `extra` of a large erasure request; it is never sent
CLOUD: Final = "cloud"  # the destination of deliveries to the user's Supabase


class RemoteErasureState(StrEnum):
    """What became of a large erasure request of another device, on this device; `extra["held"]` of its event."""

    WAITS = "waits"  # for the person
    REFUSED = "refused"
    ACCEPTED = "accepted"
    APPLIED = "applied"  # without a question: a known key signed it


_NOT_APPLIED: Final = frozenset({RemoteErasureState.WAITS, RemoteErasureState.REFUSED, RemoteErasureState.ACCEPTED})


class Origin(StrEnum):
    """Who said it. Text of a tool or of the web never becomes a preference unasked."""

    USER = "user-typed"
    MODEL = "model-written"
    IMPORTED = "imported"
    TOOL = "tool"
    PEER = "peer"


class EventScope(StrEnum):
    """How far an event may travel."""

    LOCAL = "local"
    CLOUD = "cloud"


# What may leave the device is decided here and nowhere else: lessons stay (seed 003), so do what a
# person hides on this device alone, the words of a daily record before redaction, and what retention takes away.


def scope_of(event_type: str) -> EventScope:
    """How far events of a type travel."""
    return EventScope.LOCAL if event_type in DEVICE_LOCAL_TYPES else EventScope.CLOUD


def project_id_for(project_path: str | None) -> str:
    """`proj_` + the first eight hex digits of the path's SHA-256, in the shape of seed 002; global without a path."""
    if not project_path:
        return GLOBAL_PROJECT
    return f"proj_{hashlib.sha256(project_path.encode()).hexdigest()[:8]}"


def is_excluded_from_import(event_type: object) -> bool:
    """Whether events of a type say something of the installation they came from, and are not imported by another."""
    return event_type == PAYLOAD_EXPIRED or str(event_type).startswith("device_")


@dataclass(frozen=True, slots=True)
class EventDraft:
    """An event before it has a place in the log. `event_id` and `ts` are minted where the caller has none.

    `local_date` and `utc_offset`: the day it was on where it was said; today's, where it is said now.
    """

    type: str
    payload: CleanPayload
    project_id: str = GLOBAL_PROJECT
    project_path: Clean | None = None
    session_id: str | None = None
    event_id: str | None = None
    ts: str | None = None
    origin: Origin = Origin.USER
    extra: CleanPayload | None = None
    local_date: str | None = None
    utc_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A recorded fact. `ts` is kept as its author wrote it, `hlc` orders it, `server_seq` is the server's number."""

    event_id: str
    schema_version: int
    project_id: str
    project_path: str | None
    session_id: str
    ts: str
    type: str
    payload: Mapping[str, Any]
    device_id: str
    replica_id: str
    replica_seq: int
    hlc: str
    origin: str
    reach: EventScope
    local_date: str
    utc_offset: int
    extra: Mapping[str, Any] = field(default_factory=dict)
    position: int = 0
    server_seq: int | None = None
    server_ts: str | None = None

    @property
    def replica_key(self) -> tuple[str, int]:
        """The replica that it is of, and its place there."""
        return self.replica_id, self.replica_seq


def erased_by(event: Event) -> tuple[str, ...]:
    """The ids of the events whose payloads this event takes away, everywhere or here; nothing for most events.

    Nothing for a request that waits for the person or was answered: an accepted one is made again as theirs.
    """
    return () if remote_erasure_state(event) in _NOT_APPLIED else named_event_ids(event)


def remote_erasure_state(event: Event) -> RemoteErasureState | None:
    """What became of a large erasure request of another device; None for any other event."""
    said = event.extra.get(ERASURE_STATE_FIELD)
    return next((state for state in RemoteErasureState if state == said), None)


def named_event_ids(event: Event) -> tuple[str, ...]:
    """The ids that an erasure request names, whether or not it is carried out here."""
    named = event.payload.get("event_ids") if event.type in ERASING_TYPES else None
    return tuple(name for name in named if isinstance(name, str)) if isinstance(named, list) else ()


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The answer of the write door. `duplicate`: the id was known, and the event is the one recorded before."""

    event: Event
    duplicate: bool


@dataclass(frozen=True, slots=True)
class Query:
    """Which events to read, oldest first. `after` is a position; times are Unix milliseconds."""

    project_id: str | None = None
    session_id: str | None = None
    types: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    after: int = 0
    limit: int = MAX_PAGE_EVENTS


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in log order and the position to go on from."""

    events: tuple[Event, ...]
    next_offset: int


@dataclass(frozen=True, slots=True)
class RemoteCursor:
    """How far we have read a remote log: its epoch, the number and id of the last event, and its head as last heard.

    `event_ts`: when the remote took that event, as it says; another time means that it forgot it and got it again.
    `may_lack`: it may lack what it once acknowledged, since it is read from its start or has given a number of ours to
    another event; until we are level with it.
    """

    epoch: str | None = None
    seq: int = 0
    event_id: str | None = None
    head: int = 0
    synced_at: str | None = None
    may_lack: bool = True
    event_ts: str | None = None


@dataclass(frozen=True, slots=True)
class RefusedEvent:
    """Why a destination will never take an event."""

    event_id: str
    code: str
    message: str
    noticed_at: str
