"""Parse session files of an earlier installation into events. Pure.

The files have known names (`temp/…`, `pending_session.json`) and no known format. An object, or a list of objects, is
accepted with an id, a project, times and other fields under the usual names; unknown fields go into the end's payload.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sync.clock import timestamp
from sync.errors import InvalidInput
from sync.log.envelope import parse_timestamp
from sync.log.event_types import SESSION_END_TYPES, SESSION_STARTED

_ID: Final = ("session_id", "sessionId", "id")
_STARTED: Final = ("started_at", "start_time", "startedAt", "created_at", "start", "timestamp", "ts")
_ENDED: Final = ("ended_at", "end_time", "endedAt", "updated_at", "last_updated", "end")
_PROJECT: Final = ("project_path", "projectPath", "project", "cwd", "workspace")
_MAX_ID_LENGTH: Final = 200
_MAX_PAYLOAD_LENGTH: Final = 20_000  # characters; a whole conversation is no summary
LEGACY_REASON: Final = "left_by_an_earlier_installation"


def parse_legacy_sessions(data: bytes, modified_at: float) -> list[dict[str, Any]]:
    """Return the start and end events of the sessions in one file; none if it holds no session.

    `modified_at`: the file's modification time in seconds, for sessions without a time.
    """
    last = timestamp(datetime.fromtimestamp(modified_at, UTC))
    try:
        return [event for session in _sessions(json.loads(data)) for event in _start_and_end(session, last)]
    except (ValueError, RecursionError):  # RecursionError: nested too deep
        return []


def _sessions(value: Any) -> list[dict[str, Any]]:
    sessions = value if isinstance(value, list) else value.get("sessions", [value]) if isinstance(value, dict) else []
    return [item for item in sessions if isinstance(item, dict) and item] if isinstance(sessions, list) else []


def _start_and_end(session: Mapping[str, Any], last: str) -> Iterator[dict[str, Any]]:
    digest = hashlib.sha256(json.dumps(session, sort_keys=True, default=str).encode()).hexdigest()[:32]
    name = _first_text(session, _ID)
    session_id = name[:_MAX_ID_LENGTH] if name and name.isprintable() else f"sess_{digest[:16]}"
    project = {"project_id": session.get("project_id"), "project_path": _first_text(session, _PROJECT)}
    known_project = {key: value for key, value in project.items() if isinstance(value, str) and value}
    ended = _first_time(session, _ENDED) or last
    started = _first_time(session, _STARTED) or ended
    start = {
        "type": SESSION_STARTED,
        "event_id": f"evt_{digest}.begun",
        "session_id": session_id,
        "ts": started,
        **known_project,
    }
    yield {**start, "origin": "imported", "payload": {}}
    yield {
        **start,
        "origin": "imported",
        "type": SESSION_END_TYPES[0],
        "event_id": f"evt_{digest}.end",
        "ts": ended,
    } | {"payload": {**_end_payload(session), "reason": LEGACY_REASON}}


def _end_payload(session: Mapping[str, Any]) -> dict[str, Any]:
    parsed = {*_ID, *_STARTED, *_ENDED, *_PROJECT, "project_id"}
    payload = {name: value for name, value in session.items() if name not in parsed}
    for name in ("title", "summary"):
        if not isinstance(payload.get(name), str | None):
            payload[f"earlier_{name}"] = payload.pop(name)
    tags = payload.pop("tags", None)
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        payload["tags"] = tags
    length = len(json.dumps(payload, ensure_ascii=False, default=str))
    return payload if length <= _MAX_PAYLOAD_LENGTH else _shortened_payload(payload)


def _shortened_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the short fields, and the names of the others."""
    limit = _MAX_PAYLOAD_LENGTH // 20
    short = {name: value for name, value in payload.items() if len(json.dumps(value, default=str)) <= limit}
    return {**short, "left_out": sorted(set(payload) - set(short))}


def _first_text(session: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := session.get(name), str) and value), None)


def _first_time(session: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of these fields that is a time: RFC 3339 (UTC without a zone), or Unix (milli)seconds."""
    for name in names:
        value = session.get(name)
        try:
            if isinstance(value, str):
                return timestamp(_parse_local_or_utc(value))
            if isinstance(value, int | float) and not isinstance(value, bool):
                return timestamp(datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC))
        except (InvalidInput, ValueError, OverflowError, OSError):
            continue
    return None


def _parse_local_or_utc(text: str) -> datetime:
    """Parse a time, in UTC if it has no zone. Raises InvalidInput."""
    try:
        return parse_timestamp(text)
    except InvalidInput:
        return parse_timestamp(f"{text}+00:00")
