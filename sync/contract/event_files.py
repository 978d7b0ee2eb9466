"""The files of the event store and its sessions, as JSON."""

from typing import Any

from sync.clock import moment, timestamp
from sync.log.ending import Upserted
from sync.log.sessions import Session, to_json
from sync.published.event_files import EventFilesJson, ImportedJson, RebuiltJson, SessionMetaJson, SessionsJson
from sync.tree.importing import Imported
from sync.tree.tree import Rebuilt


def files(root: str, position: int, head: int) -> EventFilesJson:
    return {"root": root, "position": position, "head": head}


def rebuilt(value: Rebuilt) -> RebuiltJson:
    return {
        "root": str(value.root),
        "events": value.events,
        "files": value.files,
        "written": value.written,
        "removed": value.removed,
    }


def imported(values: list[Imported]) -> ImportedJson:
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


def upserted(value: Upserted) -> SessionMetaJson:
    return {"session": to_json(value.session), "recorded": value.recorded, "eventId": value.event_id}


def sessions(values: list[Session]) -> SessionsJson:
    return {"sessions": [_listed(value) for value in values]}


def _listed(value: Session) -> dict[str, Any]:
    last_at = timestamp(moment(value.span.last_ms))
    return {**to_json(value), "events": value.span.events, "last_at": last_at}
