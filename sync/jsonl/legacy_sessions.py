"""What an earlier installation left of a session, as events (seed 002 §6.1). Pure.

The seed names the files (`temp/…`, `pending_session.json`) and not what stands in them, so this reads what such files
usually hold: an object, or a list of them, with an id, a project, times, and some words about the conversation under
whichever of the usual names. What is not recognised is kept under its own name in the end's payload.
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
_MAX_ID_LENGTH: Final = 200  # characters of an id
_MAX_PAYLOAD_LENGTH: Final = (
    20_000  # characters of a session's words; what was said in full belongs to nobody's summary
)
LEGACY_REASON: Final = "left_by_an_earlier_installation"


def parse_legacy_sessions(data: bytes, modified_at: float) -> list[dict[str, Any]]:
    """The beginnings and ends of the sessions in one file, as events for the door; nothing where it holds none.

    `modified`: when the file was last written, in seconds since 1970, for sessions that say no time.
    """
    last = timestamp(datetime.fromtimestamp(modified_at, UTC))
    try:
        return [event for session in _sessions(json.loads(data)) for event in _start_and_end(session, last)]
    except (ValueError, RecursionError):  # the latter where it is nested without end
        return []


def _sessions(value: Any) -> list[dict[str, Any]]:
    found = value if isinstance(value, list) else value.get("sessions", [value]) if isinstance(value, dict) else []
    return [item for item in found if isinstance(item, dict) and item] if isinstance(found, list) else []


def _start_and_end(session: Mapping[str, Any], last: str) -> Iterator[dict[str, Any]]:
    mark = hashlib.sha256(json.dumps(session, sort_keys=True, default=str).encode()).hexdigest()[:32]
    name = _first_text(session, _ID)
    session_id = name[:_MAX_ID_LENGTH] if name and name.isprintable() else f"sess_{mark[:16]}"
    project = {"project_id": session.get("project_id"), "project_path": _first_text(session, _PROJECT)}
    place = {key: value for key, value in project.items() if isinstance(value, str) and value}
    ended = _first_time(session, _ENDED) or last
    started = _first_time(session, _STARTED) or ended
    begun = {"type": SESSION_STARTED, "event_id": f"evt_{mark}.begun", "session_id": session_id, "ts": started, **place}
    yield {**begun, "origin": "imported", "payload": {}}
    yield {**begun, "origin": "imported", "type": SESSION_END_TYPES[0], "event_id": f"evt_{mark}.end", "ts": ended} | {
        "payload": {**_end_payload(session), "reason": LEGACY_REASON}
    }


def _end_payload(session: Mapping[str, Any]) -> dict[str, Any]:
    used = {*_ID, *_STARTED, *_ENDED, *_PROJECT, "project_id"}
    said = {name: value for name, value in session.items() if name not in used}
    for name in ("title", "summary"):
        if not isinstance(said.get(name), str | None):
            said[f"earlier_{name}"] = said.pop(name)
    tags = said.pop("tags", None)
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        said["tags"] = tags
    return (
        said
        if len(json.dumps(said, ensure_ascii=False, default=str)) <= _MAX_PAYLOAD_LENGTH
        else _shortened_payload(said)
    )


def _shortened_payload(said: Mapping[str, Any]) -> dict[str, Any]:
    """Where a whole conversation lies in the file: its small words, and how much else there was."""
    kept = {
        name: value for name, value in said.items() if len(json.dumps(value, default=str)) <= _MAX_PAYLOAD_LENGTH // 20
    }
    return {**kept, "left_out": sorted(set(said) - set(kept))}


def _first_text(session: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := session.get(name), str) and value), None)


def _first_time(session: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The first of these that is a time: RFC 3339 (without a zone: UTC), or seconds or milliseconds since 1970."""
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
    """Raises InvalidInput."""
    try:
        return parse_timestamp(text)
    except InvalidInput:
        return parse_timestamp(f"{text}+00:00")
