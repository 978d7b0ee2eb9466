"""What a session is: the events of one `session_id`, begun and ended by events (seed 002 §2.2). Pure.

Decisions
    A session is over if nothing but words about it (`session_meta`) came after its last end, or only late events: their
    `ts` is not after that of the end. One that goes on is open again, and ends again: ending too early is harmless.
    Only a session that an event began is ended by us: a single `events append` is no conversation that could end.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sync.clock import from_unix_ms, timestamp
from sync.log.envelope import event_ms
from sync.log.event_types import SESSION_END_TYPES, SESSION_STARTED
from sync.log.model import Event, EventDraft, Origin
from sync.redaction import Redactor

ENDED_BY_CUT_OFF: Final = "cut_off"  # the sidecar it ran in is gone
ENDED_BY_IDLE_TIME: Final = "idle"

# What a session's meta tells itself; a caller's value for them is not believed.
RESERVED_META_FIELDS: Final = frozenset(
    {"session_id", "project_id", "project_path", "device_id", "started_at", "ended_at", "end_reason"}
    | {"events", "last_at"}
)


@dataclass(frozen=True, slots=True)
class SessionSpan:
    """Where a session stands in the log. The last event is the last one that is more than words about it.

    Times are Unix milliseconds; `device_id` and the project are those of its first event, `events` counts all.
    `latest_ms` is the newest `ts` of what is no end; `recorded_ms` is when the last event was recorded.
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


@dataclass(frozen=True, slots=True)
class Session:
    """A session as its events tell it. `meta`: title, tags, summary and whatever else was said; the newest wins."""

    span: SessionSpan
    started_at: str | None
    ended_at: str | None
    end_reason: str | None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_described(self) -> bool:
        """Whether an event said anything of it as a whole."""
        return bool(self.started_at or self.ended_at or self.meta)

    @property
    def is_open(self) -> bool:
        return self.started_at is not None and self.ended_at is None


def session_of(span: SessionSpan, about: Iterable[Event]) -> Session:
    """A session from its span and the events about it, in log order."""
    started: str | None = None
    ended: str | None = None
    reason: str | None = None
    meta: dict[str, Any] = {}
    for event in about:
        said = {
            name: value
            for name, value in event.payload.items()
            if value is not None and name not in RESERVED_META_FIELDS
        }
        if event.type == SESSION_STARTED:
            started = started or event.ts
        elif event.type in SESSION_END_TYPES:
            told = said.pop("reason", None)
            late = span.newest_ts_ms is None or event_ms(event) >= span.newest_ts_ms
            if event.position >= span.last_position or late:
                ended, reason = event.ts, told if isinstance(told, str) else None
        meta |= said
    return Session(span, started, ended, reason, meta)


def to_json(session: Session) -> dict[str, Any]:
    """The small object that stands in `<id>.meta.json` and is what `session-meta` answers."""
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
    """The event that ends a session which was cut off, in its own project, at the time of its last word."""
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
    """One end for one last word, however often it is noticed."""
    return "evt_" + hashlib.sha256(f"end\n{span.session_id}\n{span.last_event_id}".encode()).hexdigest()[:32]
