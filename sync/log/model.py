"""Events, drafts and queries. Pure values."""

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from sync.log.event_catalogue import DEVICE_LOCAL_TYPES
from sync.log.event_types import ERASING_TYPES, HOLDING_TYPES, PAYLOAD_EXPIRED
from sync.redaction import Clean, CleanPayload

SCHEMA_VERSION: Final = 1
MAX_EVENT_BYTES: Final = 60 * 1024  # as JSON; the server's limit is 64 KiB with its own fields
MAX_EVENT_ID_LENGTH: Final = 128
MAX_NAME_LENGTH: Final = 256  # of project ids, session ids and types
MAX_PAGE_EVENTS: Final = 1_000  # in one answer
GLOBAL_PROJECT: Final = "proj_global"
ERASURE_STATE_FIELD: Final = "held"  # in `extra` of a large erasure request; never sent
DOOR_FIELD: Final = "door"  # in `extra`: where the event was recorded
SIGNATURE_FIELD: Final = "signature"  # in `extra`: the author's proof on another channel than the server's
UNPROVEN_FIELD: Final = "unproven"  # in `extra`: the channel did not prove the author; never sent
IMPORTED_FROM_FIELD: Final = "imported_from"  # in `extra`: the envelope of the event that was imported
CLIENT_ID_FIELD: Final = "client_id"  # in `extra`: the id that a program gave its event
LOCAL_FIELDS: Final = (ERASURE_STATE_FIELD, UNPROVEN_FIELD)  # of the envelope; they never leave the device
CLOUD: Final = "cloud"  # the destination of deliveries to the user's Supabase
PEERS: Final = "lan"  # in place of it in quarantine: another event came under the id on the local network

ENVELOPE_FIELDS: Final = frozenset(  # of `extra`: they say whose an event is, and are no text of it
    {DOOR_FIELD, SIGNATURE_FIELD, CLIENT_ID_FIELD, IMPORTED_FROM_FIELD, *LOCAL_FIELDS}
)


class RemoteErasureState(StrEnum):
    """The state of another device's large erasure request on this device: `extra["held"]` of its event."""

    WAITS = "waits"  # for the user
    REFUSED = "refused"
    ACCEPTED = "accepted"
    APPLIED = "applied"  # without asking: a known key signed it


_NOT_APPLIED: Final = frozenset({RemoteErasureState.WAITS, RemoteErasureState.REFUSED, RemoteErasureState.ACCEPTED})


class Origin(StrEnum):
    """The author of an event. Text of a tool or of the web never becomes a preference on its own."""

    USER = "user-typed"
    MODEL = "model-written"
    IMPORTED = "imported"
    TOOL = "tool"
    PEER = "peer"


class Door(StrEnum):
    """Where an event was recorded. What this program derives itself has none, nor have events of before doors."""

    UPDATE = "update"  # `memory/update`: the user's message and the model's answer
    HAND = "hand"  # an edit of the memory file, or of a page or note outside a repository
    SAVE = "save"  # `memory/save`
    COMMAND = "command"  # a terminal, a spoken command, or a method that carries a person's decision
    PANEL = "panel"
    PROGRAM = "program"  # `events append`, `daily/add`, hooks, MCP
    APP = "app_db"  # the app's own cache
    CLOUD = "cloud_document"  # the document's row in the cloud, written without a device
    IMPORT = "import"  # a file whose author nothing proves
    PROJECT = "project"  # files of a repository
    TEAM = "team"  # notes of a team's repository


class EventScope(StrEnum):
    """Whether an event stays on its device or is replicated."""

    LOCAL = "local"
    CLOUD = "cloud"


# What may leave the device is decided here and nowhere else: lessons stay, so do what a
# person hides on this device alone, the words of a daily record before redaction, and what retention takes away.


def scope_of(event_type: str) -> EventScope:
    """Return the scope of a type."""
    return EventScope.LOCAL if event_type in DEVICE_LOCAL_TYPES else EventScope.CLOUD


def project_id_for(project_path: str | None) -> str:
    """Return `proj_` and the first eight hex digits of the path's SHA-256; the global project without a path."""
    if not project_path:
        return GLOBAL_PROJECT
    return f"proj_{hashlib.sha256(project_path.encode()).hexdigest()[:8]}"


def is_excluded_from_import(event_type: object) -> bool:
    """Return whether a type describes the installation it comes from, so that another does not import it."""
    return event_type == PAYLOAD_EXPIRED or str(event_type).startswith("device_")


class EventDraft(msgspec.Struct, frozen=True):
    """An event before it has a place in the log. A missing `event_id` or `ts` is minted.

    `door`: where it was recorded; None if this program derives it.

    `client_id`: the id that a program gave it, unique on this device; the event id is then derived from both.

    `local_date` and `utc_offset` are those of the author's place; without them, those of now.
    """

    type: str
    payload: CleanPayload
    project_id: str = GLOBAL_PROJECT
    project_path: Clean | None = None
    session_id: str | None = None
    event_id: str | None = None
    client_id: str | None = None
    ts: str | None = None
    origin: Origin = Origin.USER
    door: Door | None = None
    extra: CleanPayload | None = None
    imported_from: Mapping[str, str] | None = None  # the envelope of the event that it was made of
    local_date: str | None = None
    utc_offset: int | None = None

    @property
    def envelope_extra(self) -> dict[str, Any]:
        """Return the fields of the envelope that are not columns of their own."""
        extra = self.extra.value if self.extra else {}
        own = {
            DOOR_FIELD: self.door and str(self.door),
            CLIENT_ID_FIELD: self.client_id,
            IMPORTED_FROM_FIELD: self.imported_from,
        }
        return {**extra, **{name: value for name, value in own.items() if value is not None}}


class Event(msgspec.Struct, frozen=True):
    """A recorded fact. `ts` is as its author wrote it, `hlc` orders it, `server_seq` is the server's number."""

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
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict)
    position: int = 0
    server_seq: int | None = None
    server_ts: str | None = None

    @property
    def replica_key(self) -> tuple[str, int]:
        """Return the replica and the number in it."""
        return self.replica_id, self.replica_seq

    @property
    def door(self) -> str | None:
        """Return where the event was recorded, one of `Door` unless a newer program wrote it."""
        door = self.extra.get(DOOR_FIELD)
        return door if isinstance(door, str) else None

    @property
    def is_proven(self) -> bool:
        """Return whether the channel, or a signature, proved the device of this event."""
        return UNPROVEN_FIELD not in self.extra


def text_in(event: Event, name: str) -> str | None:
    """Return a field of the payload if it is a text; another device or program may have put anything there."""
    value = event.payload.get(name)
    return value if isinstance(value, str) else None


def replicable_events(events: Iterable[Event]) -> list[Event]:
    """Return the events that another device may send: an event of a type that stays on its device is forged."""
    return [event for event in events if event.reach is EventScope.CLOUD and scope_of(event.type) is EventScope.CLOUD]


def is_imported(event: Event) -> bool:
    """Return whether the event came out of an archive or another program's files."""
    return event.origin == Origin.IMPORTED or "imported_device_id" in event.extra


def erased_by(event: Event) -> tuple[str, ...]:
    """Return the ids whose payloads this event erases, everywhere or on this device; none for most events.

    None for a large request of another device that waits or was answered: an accepted one is requested again here.
    """
    is_held = event.type in HOLDING_TYPES or remote_erasure_state(event) in _NOT_APPLIED
    return () if is_held else named_event_ids(event)


def changed_by(event: Event) -> tuple[str, ...]:
    """Return the ids whose payloads this event erases, hides until they are erased, or shows again."""
    return named_event_ids(event) if event.type in HOLDING_TYPES else erased_by(event)


def remote_erasure_state(event: Event) -> RemoteErasureState | None:
    """Return the state of another device's large erasure request; None for any other event."""
    value = event.extra.get(ERASURE_STATE_FIELD)
    return next((state for state in RemoteErasureState if state == value), None)


def named_event_ids(event: Event) -> tuple[str, ...]:
    """Return the ids that an erasure request or a request to forget names, whether or not it is applied here."""
    named = event.payload.get("event_ids") if event.type in (*ERASING_TYPES, *HOLDING_TYPES) else None
    return tuple(name for name in named if isinstance(name, str)) if isinstance(named, list) else ()


class AppendResult(msgspec.Struct, frozen=True):
    """The result of an append. `duplicate`: the id was known; the event is the one recorded before."""

    event: Event
    duplicate: bool
    client_id: str | None = None

    @property
    def given_id(self) -> str:
        """Return the id by which the caller knows the event."""
        return self.client_id or self.event.event_id


class Query(msgspec.Struct, frozen=True):
    """Which events to read, oldest first. `after` is a position; times are Unix milliseconds."""

    project_id: str | None = None
    session_id: str | None = None
    types: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    after: int = 0
    limit: int = MAX_PAGE_EVENTS


class EventPage(msgspec.Struct, frozen=True):
    """Events in log order, and the position to continue from."""

    events: tuple[Event, ...]
    next_offset: int


class RemoteCursor(msgspec.Struct, frozen=True):
    """How far a remote log was read: its epoch, the number and id of the last event, and its last known head.

    `event_ts`: the remote's time of that event; another time means that it lost the event and received it again.
    `may_lack`: the remote may lack events that it acknowledged, because it is read from its start or gave one of our
    numbers to another event. False again once caught up.
    """

    epoch: str | None = None
    seq: int = 0
    event_id: str | None = None
    head: int = 0
    synced_at: str | None = None
    may_lack: bool = True
    event_ts: str | None = None


class RefusedEvent(msgspec.Struct, frozen=True):
    """An event that a destination refuses permanently, and why."""

    event_id: str
    code: str
    message: str
    noticed_at: str
