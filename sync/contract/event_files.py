"""The files of the event store and its sessions, as JSON."""

from typing import Any

from sync.clock import from_unix_ms, timestamp
from sync.jsonl.importer import FileImportResult
from sync.jsonl.projection import JsonlRebuildResult
from sync.log.sessions.model import Session, to_json
from sync.log.sessions.tracker import SessionUpsertResult
from sync.published.event_files import EventFilesJson, ImportedJson, RebuiltJson, SessionMetaJson, SessionsJson


def event_files_to_json(root: str, position: int, head: int) -> EventFilesJson:
    return {"root": root, "position": position, "head": head}


def rebuild_to_json(value: JsonlRebuildResult) -> RebuiltJson:
    return {
        "root": str(value.root),
        "events": value.events,
        "files": value.files,
        "written": value.written,
        "removed": value.removed,
    }


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
                "refusals": [{"line": refused.line, "problem": refused.problem} for refused in value.refusals],
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
