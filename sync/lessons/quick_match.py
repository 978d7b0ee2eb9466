"""Answer a hook from the profile's database, opened read-only, when no sidecar runs.

Standard library only. Whatever is wrong (no database, an encrypted one, a lock) is an answer without a lesson.
"""

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sync.lessons.matching import Execute, MatchRequest, find_match, is_near_error

BUSY_TIMEOUT: Final = 0.02  # seconds; a hook does not wait for a writer
UNAVAILABLE: Final = (OSError, ValueError, KeyError, TypeError, sqlite3.Error)
_TAKEN_NOTES: Final = """
select json_extract(payload, '$.sha256') from events where project_id = ?
  and type in ('memory_note_created', 'memory_note_updated')
  and coalesce(json_extract(extra, '$.door'), '') not in ('project', 'team') and json_extract(payload, '$.shared') = 0
"""
_PROFILE: Final = re.compile(r"[0-9a-f]{16}")


def match_in(data_dir: Path, params: Mapping[str, Any]) -> dict[str, Any]:
    """The result of `lessons/match` for the same parameters, for an exact match only; it counts nothing."""
    try:
        with _connected(data_dir) as connection:
            found = find_match(_execute_with(connection), _request_of(params), exact_only=True)
    except UNAVAILABLE:
        return {"lesson": None, "reason": "unavailable"}
    if found.lesson_id is None:
        return {"lesson": None, "reason": found.reason}
    lesson = {
        "id": found.lesson_id,
        "kind": found.kind,
        "state": found.state,
        "text": found.text,
        "occurrences": found.occurrences,
    }
    return {"lesson": lesson, "reason": found.reason}


def taken_notes(data_dir: Path, project_id: str) -> frozenset[str]:
    """The SHA-256 of the notes of a project that were written here or taken; none if the database cannot be read."""
    try:
        with _connected(data_dir) as connection:
            return frozenset(row[0] for row in connection.execute(_TAKEN_NOTES, (project_id,)))
    except UNAVAILABLE:
        return frozenset()


def teaches(data_dir: Path, params: Mapping[str, Any]) -> bool:
    """Whether a call that has run may teach something: it failed, or is near an error of its session.

    False if there is no memory yet, or if the call succeeded and the database cannot be read.
    """
    try:
        request = _request_of(params)
        if request.has_failed:
            return _database_of(data_dir).is_file()
        with _connected(data_dir) as connection:
            return is_near_error(_execute_with(connection), request)
    except UNAVAILABLE:
        return False


def _request_of(params: Mapping[str, Any]) -> MatchRequest:
    return MatchRequest(
        tool=str(params.get("tool") or ""),
        tool_input=params.get("input"),
        output=_text(params.get("output")),
        error=_text(params.get("error")),
        session_id=_text(params.get("sessionId")),
        exit_code=_exit_code(params.get("exitCode")),
    )


@contextmanager
def _connected(data_dir: Path) -> Iterator[sqlite3.Connection]:
    uri = f"{_database_of(data_dir).as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def _execute_with(connection: sqlite3.Connection) -> Execute:
    return lambda sql, values: connection.execute(sql, tuple(values)).fetchall()


def _database_of(data_dir: Path) -> Path:
    name = json.loads((data_dir / "installation.json").read_text("utf-8"))["profile"]
    if not _PROFILE.fullmatch(name):
        raise ValueError("no profile")
    return Path(data_dir / "profiles" / name / "memory.db").absolute()


def _exit_code(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
