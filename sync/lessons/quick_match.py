"""Answer an exact match from the profile's database, opened read-only, when no sidecar runs.

Standard library only. Whatever is wrong (no database, an encrypted one, a lock) is an answer without a lesson.
"""

import json
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sync.lessons.matching import MatchRequest, find_match

BUSY_TIMEOUT: Final = 0.02  # seconds; a hook does not wait for a writer
_PROFILE: Final = re.compile(r"[0-9a-f]{16}")


def match_in(data_dir: Path, params: Mapping[str, Any]) -> dict[str, Any]:
    """The result of `lessons/match` for the same parameters, for an exact match only; it counts nothing."""
    try:
        path = _database_of(data_dir)
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT, isolation_level=None)
        try:
            request = MatchRequest(
                tool=str(params.get("tool") or ""),
                tool_input=params.get("input"),
                output=_text(params.get("output")),
                error=_text(params.get("error")),
                session_id=_text(params.get("sessionId")),
                exit_code=_exit_code(params.get("exitCode")),
            )
            found = find_match(lambda sql, values: connection.execute(sql, values).fetchall(), request, exact_only=True)
        finally:
            connection.close()
    except (OSError, ValueError, KeyError, TypeError, sqlite3.Error):
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


def _database_of(data_dir: Path) -> Path:
    name = json.loads((data_dir / "installation.json").read_text("utf-8"))["profile"]
    if not _PROFILE.fullmatch(name):
        raise ValueError("no profile")
    return Path(data_dir / "profiles" / name / "memory.db").absolute()


def _exit_code(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
