"""The lesson of the newest failed call, as a proposal that a user confirms."""

from typing import Any

from sync.db.engine import Transaction
from sync.lessons import store
from sync.lessons.mining import possible_cure


def propose(connection: Transaction) -> dict[str, Any]:
    """Fields of a lesson about the newest captured error; empty if there is none. Its cure need not have helped yet."""
    failure = store.newest_failure(connection)
    if failure is None:
        return {}
    calls = store.calls_of_session(connection, failure.session_id)
    at = next((place for place, call in enumerate(calls) if call.position == failure.position), len(calls))
    cure = possible_cure(calls, at) if at < len(calls) else None
    files = [call.file_path for call in (failure, cure) if call is not None and call.file_path]
    return {
        "language": failure.language,
        "error": {"type": failure.error_type, "message": failure.message},
        "context": {"task": failure.command, "related_files": list(dict.fromkeys(files))},
        "solution": {"description": "", "actions": [cure.action_text] if cure is not None else []},
    }
