"""Events of other programs at the door: strict JSON in, a redacted draft out (seed 002 §4-5 and §8)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date
from hashlib import sha256
from typing import Any, Final, TypeGuard, TypeVar

import msgspec

from sync.clock import UTC_CLOCK, Clock, local_day_and_offset
from sync.errors import InvalidInput, TooLarge
from sync.log.envelope import check_name, parse_timestamp, parse_timestamp_ms, postgres_json_size
from sync.log.event_types import (
    ENTRY_ADDED,
    ENTRY_EDITED,
    ENTRY_MOVED,
    ENTRY_REMOVED,
    EXCHANGE_RECORDED,
    MESSAGE,
    PAYLOAD_EXPIRED,
    PAYLOAD_FORGOTTEN,
)
from sync.log.model import (
    MAX_EVENT_BYTES,
    MAX_EVENT_ID_LENGTH,
    MAX_NAME_LENGTH,
    MAX_PAGE_EVENTS,
    SCHEMA_VERSION,
    EventDraft,
    EventScope,
    Origin,
    Query,
    project_id_for,
    scope_of,
)
from sync.log.payload_schemas import check_payload
from sync.redaction import Redactor

S = TypeVar("S", bound=msgspec.Struct)

MAX_BATCH_EVENTS: Final = 1_000  # events in one all-or-nothing transaction
MAX_PATH_LENGTH: Final = 4_096  # the longest path Linux takes
MAX_POSITION: Final = 2**63 - 1  # SQLite's integers
MAX_TIME_LENGTH: Final = 64  # what the server takes
MAX_TYPE_LENGTH: Final = 128  # likewise
SUMMARY_LENGTH: Final = 100  # what is kept of a message's text when originals are not stored

MAX_UTC_OFFSET: Final = 1440  # minutes from Greenwich that the server takes

ELLIPSIS: Final = "..."  # what follows it

# Fields that this replica sets itself; a caller's value for them would be a lie, but for the day of a time he names.
RESERVED_FIELDS: Final = frozenset(
    {"device_id", "replica_id", "replica_seq", "hlc", "local_date", "utc_offset", "reach", "position"}
    | {"seq", "server_ts"}  # and these belong to the server
)


# Types whose events write lines of the document, and the origins that would make those the user's own words.
_DOCUMENT_TYPES: Final = frozenset({EXCHANGE_RECORDED, ENTRY_ADDED, ENTRY_EDITED, ENTRY_MOVED, ENTRY_REMOVED})
_USER_ORIGINS: Final = frozenset({Origin.USER, Origin.IMPORTED})

# Ids that others choose, and how a digest in the place of one begins.
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


@dataclass(frozen=True, slots=True)
class DraftBuilder:
    """Turns foreign JSON into drafts. `store_messages`: keep the text of `message` events whole (redacted).

    Without it, an import keeps the beginning of a message, and `for_programs` its role and length alone.
    `redactor` is one for what leaves. `local` is that of events whose type stays on this device, where the user has
    turned redaction of those off. `clock`: in whose zone a given time has its day, where the caller does not name it.
    """

    redactor: Redactor
    store_messages: bool = False
    local_redactor: Redactor | None = None
    clock: Clock = UTC_CLOCK
    keep_message_text: bool = True

    def for_other_programs(self) -> "DraftBuilder":
        """For what other programs append now: nothing of a message's text, unless the user wants messages stored."""
        return replace(self, keep_message_text=self.store_messages)

    def build(self, value: object, *, ids_are_known: bool = False) -> EventDraft:
        """One event object. Raises InvalidInput naming the field, TooLarge, RedactionFailed.

        `known`: its ids stand in a log already, so they are taken whatever they look like.
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
        payload = foreign.payload
        if foreign.type == MESSAGE and not self.keep_message_text:
            payload = _without_text(payload)
        elif self.is_shortened(foreign.type, payload):
            payload = self._shortened(payload)
        redactor = self._redactor_for(foreign.type)
        path = _checked_name(foreign.project_path, "project_path", MAX_PATH_LENGTH)
        project_id = _checked_name(foreign.project_id, "project_id")
        session_id = _checked_name(foreign.session_id, "session_id")
        event_id = _checked_name(foreign.event_id, "event_id", MAX_EVENT_ID_LENGTH)
        if not ids_are_known:
            self._check_ids(foreign)
        ts = None if foreign.ts is None else _checked_time(foreign.ts)
        local_date, utc_offset = (None, None) if ts is None else self._local_day(ts, value)
        return _checked_size(
            EventDraft(
                type=foreign.type,
                payload=redactor.clean_payload(payload),
                project_id=project_id or project_id_for(path),
                # A folder can be named after anything, so it is redacted as text is; the id is of the real one.
                project_path=None if path is None else redactor.clean(path),
                session_id=session_id,
                event_id=event_id,
                ts=ts,
                origin=foreign.origin,
                extra=redactor.clean_payload(extra) if extra else None,
                local_date=local_date,
                utc_offset=utc_offset,
            )
        )

    def build_appended(self, value: object) -> EventDraft:
        """One event that a program appends. It cannot write a line of the document as the user's own words."""
        return self.build(_without_user_origin(value) if isinstance(value, Mapping) else value)

    def build_batch(self, values: object) -> list[EventDraft]:
        """A batch: all of it is acceptable, or none is."""
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
        """The wish that the payloads of these events go, here and everywhere (see `document.forgetting`)."""
        return _checked_size(
            EventDraft(type=PAYLOAD_FORGOTTEN, payload=self.redactor.clean_payload_with_ids("event_ids", event_ids, {}))
        )

    def build_expiry(self, event_ids: Sequence[str]) -> EventDraft:
        """That the payloads of these events go on this device alone."""
        payload = self.redactor.clean_payload_with_ids("event_ids", event_ids, {})
        return _checked_size(EventDraft(type=PAYLOAD_EXPIRED, payload=payload, origin=Origin.TOOL))

    def with_safe_ids(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """An event of another installation under ids that `draft` takes: a digest for each that it would refuse.

        The same id has the same digest, so that what belonged together still does and nothing comes in twice.
        """
        given = dict(value)
        for field in _ID_PREFIXES:
            name = given.get(field)
            if isinstance(name, str) and name.isprintable():
                given[field] = self._safe_id(field, name)
        return given

    def safe_session_id(self, name: str | None) -> str | None:
        """The id under which a conversation is kept that an app calls so: a digest where `draft` would refuse it.

        What was said in it is not refused with it: an app that names conversations by the number of whom it speaks with
        would remember nothing.
        """
        return None if name is None else self._safe_id("session_id", name)

    def _safe_id(self, field: str, name: str) -> str:
        """An id, or a digest of it where it says what should not leave."""
        if not self.redactor.is_sensitive_id(name):
            return name
        return _ID_PREFIXES[field] + sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]

    def _check_ids(self, foreign: _ForeignEvent) -> None:
        """Ids are kept and sent as they are, so none may be what redaction would take out of a text."""
        for field in ("type", *_ID_PREFIXES):
            name = getattr(foreign, field)
            if name is not None and self.redactor.is_sensitive_id(name):
                raise InvalidInput(
                    f"{field} looks like a secret or like somebody's number, and ids are sent as they are",
                    field=field,
                    hint="Send another id: a UUID, or the SHA-256 of this one in hexadecimal.",
                )

    def _local_day(self, ts: str, value: Mapping[str, Any]) -> tuple[str | None, int | None]:
        """The day of a time and the minutes east of Greenwich there: the caller's, or else those of this zone."""
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
        """Whether it is a message of which only the beginning is kept: its text, only where the user asked for it."""
        if event_type != MESSAGE or self.store_messages or _is_already_shortened(payload):
            return False
        return len(_message_text(payload)) > SUMMARY_LENGTH

    def _shortened(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The beginning and the length of a message, redacted before it is cut: half a token is not known as one."""
        text = _message_text(message)
        summary = self.redactor.clean(text.replace("\0", ""))[:SUMMARY_LENGTH] + ELLIPSIS
        return {**message, "content": summary, "content_length": len(text)}


def _without_user_origin(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """An event of a program; where it writes lines and claims that the user typed or imported them, a tool did."""
    if value.get("type") not in _DOCUMENT_TYPES:
        return value
    payload = value.get("payload")
    if isinstance(payload, Mapping) and isinstance(payload.get("preferences"), list):
        listed = [
            {**one, "origin": str(Origin.TOOL)} if isinstance(one, Mapping) else one for one in payload["preferences"]
        ]
        value = {**value, "payload": {**payload, "preferences": listed}}
    return {**value, "origin": str(Origin.TOOL)} if value.get("origin") in _USER_ORIGINS else value


def _message_text(message: Mapping[str, Any]) -> str:
    """The text of a message; of one in parts its JSON."""
    content = message.get("content", "")
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _without_text(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message without its content, which its length stands for; the other fields stay as they are."""
    kept = {name: item for name, item in message.items() if name != "content"}
    return kept if message.get("content") is None else {"content_length": len(_message_text(message)), **kept}


def _is_already_shortened(message: Mapping[str, Any]) -> bool:
    """Whether it has been cut as here before, on another device or by a reader who gives it back."""
    content, length = message.get("content"), message.get("content_length")
    if not isinstance(content, str) or type(length) is not int:
        return False
    return content.endswith(ELLIPSIS) and len(content) <= SUMMARY_LENGTH + len(ELLIPSIS) and len(content) < length


def parse_event_query(value: object) -> Query:
    """The filter of `events read` and `events tail`. Raises InvalidInput naming the field."""
    if not isinstance(value, Mapping):
        raise InvalidInput("a filter is a JSON object", field="filter")
    given = _convert(value, _EventFilter)
    if given.limit < 1:
        raise InvalidInput("limit is at least 1", field="limit")
    if not 0 <= given.after <= MAX_POSITION:
        raise InvalidInput("after is a position: 0 or a nextOffset", field="after")
    return Query(
        project_id=given.project_id,
        session_id=given.session_id,
        types=tuple(given.types),
        since_ms=None if given.since_ts is None else parse_timestamp_ms(given.since_ts, field="since_ts"),
        until_ms=None if given.until_ts is None else parse_timestamp_ms(given.until_ts, field="until_ts"),
        after=given.after,
        limit=min(given.limit, MAX_PAGE_EVENTS),
    )


def _convert(value: Mapping[str, Any], shape: type[S]) -> S:
    try:
        return msgspec.convert(dict(value), shape)
    except msgspec.ValidationError as error:
        message = str(error)
        field = message.rpartition("$.")[2].strip("`") if "$." in message else _last_quoted_name(message)
        if message.startswith("Invalid enum value"):  # which the message would repeat
            message = f"{field} is not one of the known values"
        raise InvalidInput(message, field=field) from error


def _last_quoted_name(message: str) -> str | None:
    parts = message.split("`")
    return parts[-2] if len(parts) > 2 else None


def _checked_name(value: str | None, field: str, limit: int = MAX_NAME_LENGTH) -> str | None:
    """A given name, checked. An empty one is an error: minting another in its place would lose the caller's."""
    return None if value is None else check_name(value, field=field, max_length=limit)


def _is_day(value: object) -> TypeGuard[str]:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _checked_time(text: str) -> str:
    try:
        parse_timestamp(check_name(text, field="ts", max_length=MAX_TIME_LENGTH)).astimezone(UTC)
    except OverflowError as error:  # 0001-01-01T00:00:00+08:00: what .NET has for no time at all
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
    """Bytes of what the caller gave, as the server counts them."""
    extra = draft.extra.value if draft.extra else {}
    names = [draft.type, draft.project_id, draft.project_path, draft.session_id, draft.event_id, draft.ts]
    return postgres_json_size([draft.payload.value, extra, names])
