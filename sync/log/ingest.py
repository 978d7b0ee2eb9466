"""Parse and redact events of other programs: JSON in, a draft out."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date
from hashlib import sha256
from typing import Any, Final, TypeGuard, TypeVar

import msgspec
from msgspec.structs import replace

from sync.clock import UTC_CLOCK, Clock, local_day_and_offset
from sync.errors import InvalidInput, TooLarge
from sync.log.envelope import check_name, parse_timestamp, parse_timestamp_ms, postgres_json_size
from sync.log.event_catalogue import INTERNAL_TYPES
from sync.log.event_types import (
    DOCUMENT_EVENT_TYPES,
    FACT_TYPES,
    MESSAGE,
    PAYLOAD_EXPIRED,
    PAYLOAD_FORGOTTEN,
    RECORD_CHANGE_TYPES,
    SESSION_RECORDED,
)
from sync.log.identity.same_event import client_record_id
from sync.log.model import (
    CLIENT_ID_FIELD,
    DOOR_FIELD,
    ERASURE_STATE_FIELD,
    IMPORTED_FROM_FIELD,
    MAX_EVENT_BYTES,
    MAX_EVENT_ID_LENGTH,
    MAX_NAME_LENGTH,
    MAX_PAGE_EVENTS,
    SCHEMA_VERSION,
    SIGNATURE_FIELD,
    UNPROVEN_FIELD,
    Door,
    EventDraft,
    EventScope,
    Origin,
    Query,
    project_id_for,
    scope_of,
)
from sync.log.payload_schemas import check_payload, is_known_type, listed_fields, unlisted_metadata
from sync.redaction import Redactor
from sync.redaction.line_breaks import with_line_feeds

S = TypeVar("S", bound=msgspec.Struct)

MAX_BATCH_EVENTS: Final = 1_000  # events in one all-or-nothing transaction
MAX_PATH_LENGTH: Final = 4_096  # the longest path of Linux
MAX_POSITION: Final = 2**63 - 1  # SQLite's integers
MAX_TIME_LENGTH: Final = 64  # the server's limit
MAX_TYPE_LENGTH: Final = 128  # the server's limit
SUMMARY_LENGTH: Final = 100  # of a message's text, if originals are not stored

MAX_UTC_OFFSET: Final = 1440  # minutes; the server's limit

ELLIPSIS: Final = "..."  # after a shortened text

# Fields that this replica sets itself, except for the local day of a given time.
RESERVED_FIELDS: Final = frozenset(
    {"device_id", "replica_id", "replica_seq", "hlc", "local_date", "utc_offset", "reach", "position", "author"}
    | {"seq", "server_ts"}  # set by the server
    | {DOOR_FIELD, SIGNATURE_FIELD, UNPROVEN_FIELD, IMPORTED_FROM_FIELD, CLIENT_ID_FIELD, ERASURE_STATE_FIELD}
)


# Types whose text is shown line by line, so that each line can name its author.
_LINE_TYPES: Final = frozenset({*DOCUMENT_EVENT_TYPES, *FACT_TYPES, *RECORD_CHANGE_TYPES})

# Ids that callers choose, with the prefix of a digest that replaces one.
_ID_PREFIXES: Final = {"event_id": "evt_", "session_id": "sess_", "project_id": "proj_"}


class _ForeignEvent(msgspec.Struct):
    type: str
    payload: dict[str, Any] = {}
    schema_version: int = SCHEMA_VERSION
    event_id: str | None = None
    project_id: str | None = None
    project_path: str | None = None
    session_id: str | None = None
    ts: str | None = None
    origin: Origin = Origin.TOOL


class _EventFilter(msgspec.Struct, forbid_unknown_fields=True):
    project_id: str | None = None
    session_id: str | None = None
    since_ts: str | None = None
    until_ts: str | None = None
    after: int = 0
    types: list[str] = []
    limit: int = MAX_PAGE_EVENTS


class DraftBuilder(msgspec.Struct, frozen=True):
    """Builds drafts from foreign JSON. `store_messages`: store the whole (redacted) text of `message` events.

    Otherwise an import stores the beginning of a message, and `for_other_programs` its role and length.
    `local_redactor` is for device-local types if the user turned their redaction off. `clock` gives the time zone for
    the day of a time whose day the caller does not name.
    """

    redactor: Redactor
    store_messages: bool = False
    local_redactor: Redactor | None = None
    clock: Clock = UTC_CLOCK
    keep_message_text: bool = True
    device_id: str = ""  # part of the record ids that programs choose

    def for_other_programs(self, device_id: str = "") -> "DraftBuilder":
        """Return a builder for `events append`: no text of messages, unless the user stores messages."""
        return replace(self, keep_message_text=self.store_messages, device_id=device_id)

    def build(self, value: object, *, ids_are_known: bool = False) -> EventDraft:
        """Build a draft from an event object. Raises InvalidInput naming the field, TooLarge, RedactionFailed.

        `ids_are_known`: its ids are in a log already, so they are accepted even if they look like secrets.
        """
        if not isinstance(value, Mapping):
            raise InvalidInput("an event is a JSON object", field="event")
        foreign = _convert(value, _ForeignEvent)
        if foreign.schema_version != SCHEMA_VERSION:
            raise InvalidInput(f"schema_version {foreign.schema_version} is not known here", field="schema_version")
        extra = {
            key: item
            for key, item in value.items()
            if key not in _ForeignEvent.__struct_fields__ and key not in RESERVED_FIELDS
        }
        check_name(foreign.type, field="type", max_length=MAX_TYPE_LENGTH)
        check_payload(foreign.type, foreign.payload)
        payload = with_line_feeds(foreign.payload) if foreign.type in _LINE_TYPES else foreign.payload
        redactor = self._redactor_for(foreign.type)
        path = _checked_name(foreign.project_path, "project_path", MAX_PATH_LENGTH)
        project_id = _checked_name(foreign.project_id, "project_id")
        session_id = _checked_name(foreign.session_id, "session_id")
        event_id = _checked_name(foreign.event_id, "event_id", MAX_EVENT_ID_LENGTH)
        if not ids_are_known:
            self._check_ids(foreign)
        place = {} if path is None else {"path": path}
        clean, clean_extra, clean_place = redactor.clean_payloads(payload, extra, place)
        if not self.store_messages and is_known_type(
            foreign.type
        ):  # what goes is redacted first: it may name a value that another field repeats
            clean = redactor.clean_payload(self._kept(foreign.type, payload, clean.value))
            clean_extra = redactor.clean_payload(unlisted_metadata(clean_extra.value))
        ts = None if foreign.ts is None else _checked_time(foreign.ts)
        local_date, utc_offset = (None, None) if ts is None else self._local_day(ts, value)
        return _checked_size(
            EventDraft(
                type=foreign.type,
                payload=clean,
                project_id=project_id or project_id_for(path),
                # A path is redacted like text; the project id is that of the real path.
                project_path=None if path is None else redactor.clean(clean_place.value["path"]),
                session_id=session_id,
                event_id=event_id,
                ts=ts,
                origin=foreign.origin,
                extra=clean_extra if clean_extra.value else None,
                local_date=local_date,
                utc_offset=utc_offset,
            )
        )

    def build_appended(self, value: object) -> EventDraft:
        """Build an event that a program appends: whatever its type, its author is the program.

        Raises InvalidInput for a type that only this program emits.
        """
        event_type = value.get("type") if isinstance(value, Mapping) else None
        if event_type in INTERNAL_TYPES:
            raise InvalidInput(
                f"events of the type {event_type} are made by this program alone",
                field="type",
                hint="Call the method that records it, such as `events/forget`, `devices/rename` or `memory/command`.",
            )
        draft = self.build(_without_user_origin(value) if isinstance(value, Mapping) else value)
        payload = draft.payload.value
        if draft.type == SESSION_RECORDED and isinstance(name := payload.get("record_id"), str) and name:
            own = {**payload, "record_id": client_record_id(self.device_id, name)}
            draft = replace(draft, payload=self.redactor.clean_payload(own))
        return replace(draft, door=Door.PROGRAM, event_id=None, client_id=draft.event_id)

    def build_batch(self, values: object) -> list[EventDraft]:
        """Build all drafts of a batch, or none."""
        if not isinstance(values, list) or not values:
            raise InvalidInput("a batch is a JSON array of at least one event", field="events")
        if len(values) > MAX_BATCH_EVENTS:
            raise TooLarge(f"a batch holds at most {MAX_BATCH_EVENTS} events", field="events")
        drafts = []
        for index, value in enumerate(values):
            try:
                drafts.append(self.build_appended(value))
            except InvalidInput as error:
                place = f"events[{index}]" + (f".{error.field}" if error.field else "")
                raise type(error)(f"{place}: {error.message}", field=place, hint=error.hint) from error
        return drafts

    def build_erasure(self, event_ids: Sequence[str]) -> EventDraft:
        """Build the request to erase the payloads of these events everywhere."""
        return _checked_size(
            EventDraft(type=PAYLOAD_FORGOTTEN, payload=self.redactor.clean_payload_with_ids("event_ids", event_ids, {}))
        )

    def build_expiry(self, event_ids: Sequence[str]) -> EventDraft:
        """Build the event that removes the payloads of these events on this device."""
        payload = self.redactor.clean_payload_with_ids("event_ids", event_ids, {})
        return _checked_size(EventDraft(type=PAYLOAD_EXPIRED, payload=payload, origin=Origin.TOOL))

    def build_hold(self, kind: str, event_id: str, event_ids: Sequence[str], **fields: object) -> EventDraft:
        """Build a part of a request to forget, or of its end: both stay on this device."""
        payload = self.redactor.clean_payload_with_ids("event_ids", event_ids, fields)
        return _checked_size(EventDraft(type=kind, payload=payload, origin=Origin.TOOL, event_id=event_id))

    def with_safe_ids(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return an event of another installation with a digest for each id that `build` would refuse.

        The same id has the same digest, so related events stay related and duplicates are recognised.
        """
        safe = dict(value)
        for field in _ID_PREFIXES:
            name = safe.get(field)
            if isinstance(name, str) and name.isprintable():
                safe[field] = self._safe_id(field, name)
        return safe

    def safe_session_id(self, name: str | None) -> str | None:
        """Return a session id, or its digest if `build` would refuse it.

        So an app that names conversations by phone numbers is not refused.
        """
        return None if name is None else self._safe_id("session_id", name)

    def _safe_id(self, field: str, name: str) -> str:
        """Return an id, or its digest if it looks sensitive."""
        if not self.redactor.is_sensitive_id(name):
            return name
        return _ID_PREFIXES[field] + sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]

    def _check_ids(self, foreign: _ForeignEvent) -> None:
        """Refuse ids that redaction would remove from a text: ids are stored and sent as they are."""
        for field in ("type", *_ID_PREFIXES):
            name = getattr(foreign, field)
            if name is not None and self.redactor.is_sensitive_id(name):
                raise InvalidInput(
                    f"{field} looks like a secret or like somebody's number, and ids are sent as they are",
                    field=field,
                    hint="Send another id: a UUID, or the SHA-256 of this one in hexadecimal.",
                )

    def _local_day(self, ts: str, value: Mapping[str, Any]) -> tuple[str | None, int | None]:
        """Return the local day and UTC offset of a time: the caller's, or those of this time zone."""
        day, offset = value.get("local_date"), value.get("utc_offset")
        if _is_day(day) and type(offset) is int and abs(offset) <= MAX_UTC_OFFSET:
            return day, offset
        return local_day_and_offset(parse_timestamp(ts), self.clock) or (None, None)

    def _redactor_for(self, event_type: str) -> Redactor:
        return (
            self.local_redactor
            if self.local_redactor is not None and scope_of(event_type) is EventScope.LOCAL
            else self.redactor
        )

    def is_shortened(self, event_type: str, payload: Mapping[str, Any]) -> bool:
        """Return whether only the beginning of this message is stored."""
        if event_type != MESSAGE or self.store_messages or _is_already_shortened(payload):
            return False
        return len(_message_text(payload)) > SUMMARY_LENGTH

    def _kept(self, event_type: str, payload: Mapping[str, Any], clean: Mapping[str, Any]) -> dict[str, Any]:
        """Return what stays of a clean payload if messages are not stored."""
        kept = listed_fields(event_type, clean)
        if event_type != MESSAGE or payload.get("content") is None:
            return kept
        length = {"content_length": len(_message_text(payload))}
        if not self.keep_message_text:
            return {**length, **{name: item for name, item in kept.items() if name != "content"}}
        if not self.is_shortened(event_type, payload):
            return kept
        return {**kept, **length, "content": _message_text(clean)[:SUMMARY_LENGTH] + ELLIPSIS}


def _without_user_origin(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace an origin that would present a program's event, or a preference in it, as the user's own words."""
    payload = value.get("payload")
    if isinstance(payload, Mapping) and isinstance(payload.get("preferences"), list):
        preferences = [
            {**one, "origin": str(Origin.TOOL)} if isinstance(one, Mapping) else one for one in payload["preferences"]
        ]
        value = {**value, "payload": {**payload, "preferences": preferences}}
    is_claimed = value.get("origin") in (Origin.USER, Origin.IMPORTED, Origin.PEER)
    return {**value, "origin": str(Origin.TOOL)} if is_claimed else value


def _message_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message; of one in parts its JSON."""
    content = message.get("content", "")
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _is_already_shortened(message: Mapping[str, Any]) -> bool:
    """Return whether a message was shortened before, on another device or in an export."""
    content, length = message.get("content"), message.get("content_length")
    if not isinstance(content, str) or type(length) is not int:
        return False
    return content.endswith(ELLIPSIS) and len(content) <= SUMMARY_LENGTH + len(ELLIPSIS) and len(content) < length


def parse_event_query(value: object) -> Query:
    """Parse the filter of `events read` and `events tail`. Raises InvalidInput naming the field."""
    if not isinstance(value, Mapping):
        raise InvalidInput("a filter is a JSON object", field="filter")
    event_filter = _convert(value, _EventFilter)
    if event_filter.limit < 1:
        raise InvalidInput("limit is at least 1", field="limit")
    if not 0 <= event_filter.after <= MAX_POSITION:
        raise InvalidInput("after is a position: 0 or a nextOffset", field="after")
    return Query(
        project_id=event_filter.project_id,
        session_id=event_filter.session_id,
        types=tuple(event_filter.types),
        since_ms=None if event_filter.since_ts is None else parse_timestamp_ms(event_filter.since_ts, field="since_ts"),
        until_ms=None if event_filter.until_ts is None else parse_timestamp_ms(event_filter.until_ts, field="until_ts"),
        after=event_filter.after,
        limit=min(event_filter.limit, MAX_PAGE_EVENTS),
    )


def _convert(value: Mapping[str, Any], shape: type[S]) -> S:
    try:
        return msgspec.convert(dict(value), shape)
    except msgspec.ValidationError as error:
        message = str(error)
        field = message.rpartition("$.")[2].strip("`") if "$." in message else _last_quoted_name(message)
        if message.startswith("Invalid enum value"):  # the message would repeat the value
            message = f"{field} is not one of the known values"
        raise InvalidInput(message, field=field) from error


def _last_quoted_name(message: str) -> str | None:
    parts = message.split("`")
    return parts[-2] if len(parts) > 2 else None


def _checked_name(value: str | None, field: str, limit: int = MAX_NAME_LENGTH) -> str | None:
    """Check an optional name. An empty one is refused."""
    return None if value is None else check_name(value, field=field, max_length=limit)


def _is_day(value: object) -> TypeGuard[str]:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _checked_time(text: str) -> str:
    try:
        parse_timestamp(check_name(text, field="ts", max_length=MAX_TIME_LENGTH)).astimezone(UTC)
    except OverflowError as error:  # 0001-01-01T00:00:00+08:00: .NET's value for no time
        raise InvalidInput("ts is out of the calendar in UTC", field="ts") from error
    return text


def _checked_size(draft: EventDraft) -> EventDraft:
    size = _draft_bytes(draft)
    if size > MAX_EVENT_BYTES:
        raise TooLarge(
            f"the event is {size} bytes, more than {MAX_EVENT_BYTES}",
            field="payload",
            hint="Split the payload into several events; large files belong beside the memory, not in it.",
        )
    return draft


def _draft_bytes(draft: EventDraft) -> int:
    """Return the size of the caller's fields, as the server counts."""
    extra = draft.extra.value if draft.extra else {}
    names = [draft.type, draft.project_id, draft.project_path, draft.session_id, draft.event_id, draft.ts]
    return postgres_json_size([draft.payload.value, extra, names])
