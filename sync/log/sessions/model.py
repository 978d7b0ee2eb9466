"""Sessions: the events of one `session_id`, started and ended by events. Pure.

A session is over if only `session_meta` and late events (their `ts` is not after the end) follow its last end.
Otherwise it is open again and ends again, so ending too early is harmless. This program ends only sessions that an
event started.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from sync.clock import from_unix_ms, timestamp
from sync.log.envelope import event_ms
from sync.log.event_types import SESSION_END_TYPES, SESSION_STARTED
from sync.log.model import Event, EventDraft, Origin
from sync.redaction import Redactor

ENDED_BY_CUT_OFF: Final = "cut_off"  # its sidecar is gone
ENDED_BY_IDLE_TIME: Final = "idle"

# Fields that are computed; a caller's values for them are ignored.
RESERVED_META_FIELDS: Final = frozenset(
    {"session_id", "project_id", "project_path", "device_id", "started_at", "ended_at", "end_reason"}
    | {"events", "last_at"}
)


class SessionSpan(msgspec.Struct, frozen=True):
    """The place of a session in the log. Its last event is the last one that is not only about the session.

    Times are Unix milliseconds. `device_id` and the project are those of its first event. `newest_ts_ms` ignores
    ends; `recorded_ms` is when the last event was recorded.
    """

    session_id: str
    device_id: str
    project_id: str
    project_path: str | None
    first_ms: int
    last_ms: int
    last_position: int
    last_event_id: str
    event_count: int
    newest_ts_ms: int | None = None
    recorded_ms: int = 0


class Session(msgspec.Struct, frozen=True):
    """A session. `meta` holds title, tags, summary and other fields of its events; the newest value wins."""

    span: SessionSpan
    started_at: str | None
    ended_at: str | None
    end_reason: str | None
    meta: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @property
    def is_described(self) -> bool:
        """Return whether an event describes the session as a whole."""
        return bool(self.started_at or self.ended_at or self.meta)

    @property
    def is_open(self) -> bool:
        return self.started_at is not None and self.ended_at is None


def session_of(span: SessionSpan, about: Iterable[Event]) -> Session:
    """Build a session from its span and the events about it, in log order."""
    started: str | None = None
    ended: str | None = None
    reason: str | None = None
    meta: dict[str, Any] = {}
    for event in about:
        fields = {
            name: value
            for name, value in event.payload.items()
            if value is not None and name not in RESERVED_META_FIELDS
        }
        if event.type == SESSION_STARTED:
            started = started or event.ts
        elif event.type in SESSION_END_TYPES:
            given_reason = fields.pop("reason", None)
            is_late = span.newest_ts_ms is None or event_ms(event) >= span.newest_ts_ms
            if event.position >= span.last_position or is_late:
                ended, reason = event.ts, given_reason if isinstance(given_reason, str) else None
        meta |= fields
    return Session(span, started, ended, reason, meta)


def to_json(session: Session) -> dict[str, Any]:
    """Return the object of `<id>.meta.json` and of `session-meta`."""
    span = session.span
    return {
        "session_id": span.session_id,
        "project_id": span.project_id,
        "project_path": span.project_path,
        "device_id": span.device_id,
        "started_at": session.started_at,
        "ended_at": session.ended_at,
        "end_reason": session.end_reason,
        **{name: session.meta[name] for name in sorted(session.meta)},
    }


def draft_session_end(session: Session, reason: str, redactor: Redactor) -> EventDraft:
    """Build the event that ends an abandoned session, at the time of its last event."""
    span = session.span
    path = None if span.project_path is None else redactor.clean(span.project_path)
    return EventDraft(
        type=SESSION_END_TYPES[0],
        payload=redactor.clean_payload({"reason": reason}),
        project_id=span.project_id,
        project_path=path,
        session_id=span.session_id,
        event_id=end_event_id(span),
        ts=timestamp(from_unix_ms(span.last_ms)),
        origin=Origin.TOOL,
    )


def end_event_id(span: SessionSpan) -> str:
    """Return an id for the end after this last event; repeated ends have the same id."""
    return "evt_" + hashlib.sha256(f"end\n{span.session_id}\n{span.last_event_id}".encode()).hexdigest()[:32]
