"""Answers about event files and sessions, and how they become JSON."""

from typing import Any, TypedDict

from sync.clock import from_unix_ms, timestamp
from sync.jsonl.importer import FileImportResult
from sync.log.sessions.model import Session, to_json
from sync.log.sessions.tracker import SessionUpsertResult


class EventFilesJson(TypedDict):
    """The folder of the JSONL tree; `position` of `head` events are in it."""

    root: str
    position: int
    head: int


class RefusedLineJson(TypedDict):
    line: int
    problem: str


class ImportedFileJson(TypedDict):
    """`refusals` names the first of `refused`."""

    path: str
    recorded: int
    known: int
    refused: int
    refusals: list[RefusedLineJson]


class ImportedJson(TypedDict):
    recorded: int
    known: int
    refused: int
    files: list[ImportedFileJson]


class SessionMetaJson(TypedDict):
    """`session` in snake_case, as `<id>.meta.json`; `eventId` is null if nothing was new."""

    session: dict[str, Any]
    recorded: bool
    eventId: str | None


class SessionsJson(TypedDict):
    """Newest first; each as `<id>.meta.json`, with `events` and `last_at`."""

    sessions: list[dict[str, Any]]


def event_files_to_json(root: str, position: int, head: int) -> EventFilesJson:
    return {"root": root, "position": position, "head": head}


def file_imports_to_json(values: list[FileImportResult]) -> ImportedJson:
    return {
        "recorded": sum(value.recorded for value in values),
        "known": sum(value.known for value in values),
        "refused": sum(value.refused for value in values),
        "files": [
            {
                "path": str(value.path),
                "recorded": value.recorded,
                "known": value.known,
                "refused": value.refused,
                "refusals": [{"line": int(line), "problem": problem} for line, problem in value.refusals],
            }
            for value in values
        ],
    }


def session_meta_to_json(value: SessionUpsertResult) -> SessionMetaJson:
    return {"session": to_json(value.session), "recorded": value.recorded, "eventId": value.event_id}


def sessions_to_json(values: list[Session]) -> SessionsJson:
    return {"sessions": [_session_to_json(value) for value in values]}


def _session_to_json(value: Session) -> dict[str, Any]:
    last_at = timestamp(from_unix_ms(value.span.last_ms))
    return {**to_json(value), "events": value.span.event_count, "last_at": last_at}
