"""Convert events: row, public JSON and wire record.

Field names are a contract with other programs; unknown fields of newer writers are kept in `extra`.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from operator import attrgetter
from typing import Any, Final, Protocol

import msgspec

from sync.clock import (
    HLC,
    MAX_CLOCK_DRIFT,
    Clock,
    format_hlc,
    from_unix_ms,
    new_event_id,
    parse_hlc,
    timestamp,
    to_unix_ms,
    utc_offset_minutes,
)
from sync.errors import InvalidInput
from sync.log.authorship import author_of
from sync.log.identity.same_event import client_event_id
from sync.log.model import (
    DOOR_FIELD,
    GLOBAL_PROJECT,
    IMPORTED_FROM_FIELD,
    LOCAL_FIELDS,
    MAX_NAME_LENGTH,
    SCHEMA_VERSION,
    Door,
    Event,
    EventDraft,
    EventScope,
    Origin,
    is_imported,
    scope_of,
)


class _WireEvent(msgspec.Struct):
    """The fields of a replicated event. Optional ones may be null (sql/README.md)."""

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
    """A row of the local table `events`, of any driver."""

    def __getitem__(self, name: str, /) -> Any: ...


# What decoding untrusted JSON raises: no JSON, no UTF-8, nested too deep.
DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_DRIFT_LIMIT_MS: Final = MAX_CLOCK_DRIFT // timedelta(milliseconds=1)

# The fields of a wire record that an event has under the same name, in the order in which they are written.
SENT_FIELDS: Final = (
    *("schema_version", "event_id", "project_id", "project_path", "session_id", "ts", "type", "payload"),
    *("device_id", "replica_id", "replica_seq", "hlc", "origin", "local_date", "utc_offset"),
)
_sent_values: Final = attrgetter(*SENT_FIELDS)
KNOWN_FIELDS: Final = frozenset(_WireEvent.__struct_fields__) | {"reach", "position", "author", *LOCAL_FIELDS}


def to_json(event: Event) -> dict[str, Any]:
    """Return the public JSON object: the wire record with the reach, position, server number and author."""
    own = {"reach": str(event.reach), "position": event.position, "seq": event.server_seq}
    return {**to_wire(event), **own, "author": str(author_of(event).author)}


def to_wire(event: Event) -> dict[str, Any]:
    """Return the record that is sent to the server, with unknown fields as they came."""
    fields = zip(SENT_FIELDS, _sent_values(event), strict=True)
    return {**event.extra, **dict(fields), "payload": dict(event.payload)}


def from_wire(value: Mapping[str, Any]) -> Event:
    """Parse a record of the server. Raises InvalidInput if a field is missing or of the wrong type."""
    try:
        known = msgspec.convert(value, _WireEvent)
        parse_hlc(known.hlc)
    except (msgspec.ValidationError, ValueError) as error:
        raise InvalidInput(f"the server's event is malformed: {error}", field="events") from error
    fields = dict(zip(SENT_FIELDS, _sent_values(known), strict=True))
    fields |= {
        "project_id": known.project_id or GLOBAL_PROJECT,
        "session_id": known.session_id or "",
        "local_date": known.local_date or _local_date(parse_hlc(known.hlc)[0], 0).isoformat(),
        "utc_offset": known.utc_offset or 0,
    }
    extra = {key: item for key, item in value.items() if key not in KNOWN_FIELDS}
    return Event(**fields, reach=scope_of(known.type), extra=extra, server_seq=known.seq, server_ts=known.server_ts)


def event_ms(event: Event) -> int:
    """Return the time of an event in Unix milliseconds; that of its HLC if `ts` cannot be parsed."""
    try:
        return parse_timestamp_ms(event.ts)
    except InvalidInput:
        return parse_hlc(event.hlc)[0]


def bounded_hlc(event: Event) -> str:
    """Return the HLC that orders an event among all devices: at most a day ahead of the server's time.

    That of an event out of a file is its source's, but never later than the import.
    """
    hlc = _source_hlc(event)
    if event.server_ts is None:
        return hlc
    try:
        return min(hlc, format_hlc(parse_timestamp_ms(event.server_ts) + _DRIFT_LIMIT_MS))
    except InvalidInput:  # the server's time cannot be parsed
        return hlc


def _source_hlc(event: Event) -> str:
    source = event.extra.get(IMPORTED_FROM_FIELD)
    hlc = source.get("hlc") if isinstance(source, Mapping) else None
    return min(event.hlc, hlc) if isinstance(hlc, str) and HLC.fullmatch(hlc) else event.hlc


def said_ms(event: Event) -> int:
    """Return the time of an event's HLC, no later than the server received it if the author's clock was ahead."""
    bounded = bounded_hlc(event)
    return parse_hlc(bounded)[0] - (0 if bounded == _source_hlc(event) else _DRIFT_LIMIT_MS)


def day_of(event: Event, now: datetime | None = None) -> date:
    """Return the day of an event at its author's place: `local_date`, unless the author's clock was wrong.

    `now` bounds what the server has not seen, for an answer of this device alone. A day that an import or a program
    names comes from no clock.
    """
    seen_ms = None if now is None else to_unix_ms(now)
    with suppress(InvalidInput):
        seen_ms = seen_ms if event.server_ts is None else parse_timestamp_ms(event.server_ts)
    ordered = _local_date(said_ms(event), event.utc_offset)
    try:
        named = date.fromisoformat(event.local_date)
    except ValueError:
        return ordered
    is_stated = is_imported(event) or event.origin == Origin.TOOL or event.extra.get(DOOR_FIELD) == Door.PROGRAM
    if seen_ms is None or is_stated:
        return named
    if parse_hlc(event.hlc)[0] > seen_ms + _DRIFT_LIMIT_MS:  # the HLC still follows a clock that was ahead
        seen = _local_date(seen_ms, event.utc_offset)
        return named if (named - seen).days <= 1 else seen
    return named if abs((named - ordered).days) <= 1 else ordered


def _local_date(unix_ms: int, utc_offset: int) -> date:
    return from_unix_ms(unix_ms + utc_offset * 60_000).date()


def event_order(event: Event) -> tuple[str, str, str]:
    """Return the place of an event in the total order, the same on all devices.

    Replica and number would not do: a home restored from a backup has its own numbers for events that it sent before.
    """
    return bounded_hlc(event), event.hlc, event.event_id


def bounded_time(now: datetime, server_ts: str | None) -> datetime:
    """Return a time that may decide for other devices: at most a day ahead of the server's."""
    if server_ts is None:
        return now
    try:
        return min(now, parse_timestamp(server_ts) + MAX_CLOCK_DRIFT)
    except (InvalidInput, OverflowError):
        return now


def postgres_json_size(value: object) -> int:
    """Return the size of a JSON value as PostgreSQL writes it: with a space after each colon and comma."""
    return len(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")).encode())


def parse_timestamp(text: str, *, field: str = "ts") -> datetime:
    """Parse an RFC 3339 time with its zone. Raises InvalidInput."""
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
    """Refuse a name that is empty, too long or not printable; names appear in log lines and paths."""
    if not value or len(value) > max_length or not value.isprintable():
        raise InvalidInput(f"{field} must be 1 to {max_length} printable characters", field=field)
    return value


def event_of_row(row: EventRow) -> Event:
    """Build an event from a row of the local table `events`."""
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


def event_of_draft(
    draft: EventDraft, replica_id: str, seq: int, hlc: str, device_id: str, default_session_id: str, clock: Clock
) -> Event:
    """Build the event that a draft becomes at this moment, as `device_id` records it."""
    now = clock.now()
    named = None if draft.client_id is None else client_event_id(device_id, draft.client_id)
    return Event(
        event_id=named or draft.event_id or new_event_id(clock),
        schema_version=SCHEMA_VERSION,
        project_id=draft.project_id,
        project_path=None if draft.project_path is None else str(draft.project_path),  # a plain str for JSON
        session_id=draft.session_id or default_session_id,
        ts=draft.ts or timestamp(now),
        type=draft.type,
        payload=draft.payload.value,
        device_id=device_id,
        replica_id=replica_id,
        replica_seq=seq,
        hlc=hlc,
        origin=str(draft.origin),
        reach=scope_of(draft.type),
        local_date=draft.local_date or now.date().isoformat(),
        utc_offset=utc_offset_minutes(now) if draft.utc_offset is None else draft.utc_offset,
        extra=draft.envelope_extra,
    )
