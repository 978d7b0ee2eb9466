"""An event as JSON: the same object on the CLI, on the bridge, in exports and on the way to the server.

Field names are those of seed 002 §4.1; unknown fields of a newer writer are kept value for value in `extra`.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import msgspec

from sync.clock import EPOCH, MAX_CLOCK_DRIFT, format_hlc, parse_hlc, to_unix_ms
from sync.errors import InvalidInput
from sync.log.model import ERASURE_STATE_FIELD, GLOBAL_PROJECT, MAX_NAME_LENGTH, Event, EventScope, scope_of


class _WireEvent(msgspec.Struct):
    """The fields of a replicated event. Those the server allows to be missing come as null (sql/README.md)."""

    event_id: str
    schema_version: int
    ts: str
    type: str
    payload: dict[str, Any]
    device_id: str
    replica_id: str
    replica_seq: int
    hlc: str
    origin: str
    project_id: str | None = None
    project_path: str | None = None
    session_id: str | None = None
    local_date: str | None = None
    utc_offset: int | None = None
    seq: int | None = None
    server_ts: str | None = None


class EventRow(Protocol):
    """A row of the local table `events`, whichever driver read it."""

    def __getitem__(self, name: str, /) -> Any: ...


# What decoding JSON of unknown origin raises: no JSON, no UTF-8, nested too deep.
DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_DRIFT_LIMIT_MS: Final = MAX_CLOCK_DRIFT // timedelta(milliseconds=1)

# What our own vocabulary covers; `forgotten_at` is the server's word for a payload it has blanked.
KNOWN_FIELDS: Final = frozenset(_WireEvent.__struct_fields__) | {"reach", "position", ERASURE_STATE_FIELD}


def to_json(event: Event) -> dict[str, Any]:
    """The public JSON object of an event: what is sent, and where it stands here and on the server."""
    return {**to_wire(event), "reach": str(event.reach), "position": event.position, "seq": event.server_seq}


def to_wire(event: Event) -> dict[str, Any]:
    """What is sent to the server: the envelope, with unknown fields beside the known ones, as they came."""
    return {
        **event.extra,
        "schema_version": event.schema_version,
        "event_id": event.event_id,
        "project_id": event.project_id,
        "project_path": event.project_path,
        "session_id": event.session_id,
        "ts": event.ts,
        "type": event.type,
        "payload": dict(event.payload),
        "device_id": event.device_id,
        "replica_id": event.replica_id,
        "replica_seq": event.replica_seq,
        "hlc": event.hlc,
        "origin": event.origin,
        "local_date": event.local_date,
        "utc_offset": event.utc_offset,
    }


def from_wire(value: Mapping[str, Any]) -> Event:
    """An event as the server hands it out. Raises InvalidInput where a field is missing or of the wrong type."""
    try:
        known = msgspec.convert(value, _WireEvent)
        parse_hlc(known.hlc)
    except (msgspec.ValidationError, ValueError) as error:
        raise InvalidInput(f"the server's event is malformed: {error}", field="events") from error
    return Event(
        event_id=known.event_id,
        schema_version=known.schema_version,
        project_id=known.project_id or GLOBAL_PROJECT,
        project_path=known.project_path,
        session_id=known.session_id or "",
        ts=known.ts,
        type=known.type,
        payload=known.payload,
        device_id=known.device_id,
        replica_id=known.replica_id,
        replica_seq=known.replica_seq,
        hlc=known.hlc,
        origin=known.origin,
        reach=scope_of(known.type),
        local_date=known.local_date or _utc_day_of(known.hlc),
        utc_offset=known.utc_offset or 0,
        extra={key: item for key, item in value.items() if key not in KNOWN_FIELDS},
        server_seq=known.seq,
        server_ts=known.server_ts,
    )


def event_ms(event: Event) -> int:
    """When an event was, in Unix milliseconds; by its HLC where its author wrote no time that we can read."""
    try:
        return parse_timestamp_ms(event.ts)
    except InvalidInput:
        return parse_hlc(event.hlc)[0]


def bounded_hlc(event: Event) -> str:
    """An event's HLC as it counts in the order of all devices: at most a day ahead of the server that took it."""
    if event.server_ts is None:
        return event.hlc
    try:
        return min(event.hlc, format_hlc(parse_timestamp_ms(event.server_ts) + _DRIFT_LIMIT_MS))
    except InvalidInput:  # a server whose time nobody can read bounds nothing
        return event.hlc


def bounded_time(now: datetime, server_ts: str | None) -> datetime:
    """The time of a clock for what it decides for other devices too: at most a day ahead of the server's."""
    if server_ts is None:
        return now
    try:
        return min(now, parse_timestamp(server_ts) + MAX_CLOCK_DRIFT)
    except (InvalidInput, OverflowError):
        return now


def is_clock_ahead(event: Event) -> bool:
    """Whether the clock that an event was written by was more than a day ahead of the server that took it."""
    if event.server_ts is None:
        return False
    try:
        return event_ms(event) > parse_timestamp_ms(event.server_ts) + _DRIFT_LIMIT_MS
    except InvalidInput:
        return False


def postgres_json_size(value: object) -> int:
    """Bytes of a JSON value as PostgreSQL writes it: with a space after each colon and comma."""
    return len(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")).encode())


def _utc_day_of(hlc: str) -> str:
    try:
        return (EPOCH + timedelta(milliseconds=parse_hlc(hlc)[0])).date().isoformat()
    except OverflowError:
        return EPOCH.date().isoformat()


def parse_timestamp(text: str, *, field: str = "ts") -> datetime:
    """An RFC 3339 time with its zone. Raises InvalidInput."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"{field} is not a time: write it as 2026-02-02T10:00:00.000Z", field=field) from error
    if parsed.tzinfo is None:
        raise InvalidInput(f"{field} has no time zone: write it as 2026-02-02T10:00:00.000Z", field=field)
    return parsed


def parse_timestamp_ms(text: str, *, field: str = "ts") -> int:
    return to_unix_ms(parse_timestamp(text, field=field))


def check_name(value: str, *, field: str, max_length: int = MAX_NAME_LENGTH) -> str:
    """Ids and types are short names without control characters, so that they can stand in a log line or a path."""
    if not value or len(value) > max_length or not value.isprintable():
        raise InvalidInput(f"{field} must be 1 to {max_length} printable characters", field=field)
    return value


def event_of_row(row: EventRow) -> Event:
    """An event as the local table `events` holds it."""
    return Event(
        event_id=row["event_id"],
        schema_version=row["schema_version"],
        project_id=row["project_id"],
        project_path=row["project_path"],
        session_id=row["session_id"],
        ts=row["ts"],
        type=row["type"],
        payload=msgspec.json.decode(row["payload"]),
        device_id=row["device_id"],
        replica_id=row["replica_id"],
        replica_seq=row["replica_seq"],
        hlc=row["hlc"],
        origin=row["origin"],
        reach=EventScope(row["reach"]),
        local_date=row["local_date"],
        utc_offset=row["utc_offset"],
        extra=msgspec.json.decode(row["extra"]),
        position=row["position"],
        server_seq=row["server_seq"],
        server_ts=row["server_ts"],
    )
