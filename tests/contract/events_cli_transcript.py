"""The command-line contract of the event store as one transcript of commands and output, byte for byte.

`python -m tests.contract.events_cli_transcript` rewrites `golden/events-cli.txt`. A change in it that is not a new
field changes the contract: raise `CONTRACT_VERSION`, and say so in the changelog.
"""

import json
import re
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.sidecar import Home

FILE: Final = Path(__file__).with_name("golden") / "events-cli.txt"

PLACE: Final = {
    "project_id": "proj_abcd1234",
    "project_path": "/abs/path/to/project",
    "session_id": "sess_20260202_001",
}


def said(number: int, kind: str, payload: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "event_id": f"evt_20260202_{number:06}",
        **PLACE,
        "ts": f"2026-02-02T10:00:{number:02}.000Z",
        "type": kind,
        "payload": payload,
        **more,
    }


STARTED: Final = said(1, "session_started", {})
BATCH: Final = [
    said(2, "message", {"role": "user", "content": "密码是 hunter2，把 API 换成 FastAPI"}, origin="user-typed"),
    said(3, "tool_call", {"tool": "Shell", "details": {"command": "make test", "exit_code": 1}, "stage": "test"}),
    said(4, "memory_fact", {"fact_type": "decision", "content": "用 FastAPI", "tags": ["api"]}, of_tomorrow=[1, None]),
    said(5, "user_feedback", {"feedback_type": "correction", "content": "先写测试"}),
    said(6, "session_finalized", {"reason": "done"}),
]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_TOOL_CALLS: Final = _json({"project_id": PLACE["project_id"], "types": ["tool_call"], "limit": 1000})

_META: Final = {"session_id": PLACE["session_id"], "title": "重构", "tags": ["api"]}

# (arguments, standard input)
STEPS: Final[list[tuple[list[str], str]]] = [
    (["--json", "events", "append", _json(STARTED)], ""),
    (["events", "append", _json(STARTED), "--json"], ""),
    (["--json", "events", "append-batch", "-"], _json(BATCH)),
    (["events", "append", _json(STARTED)], ""),
    (
        ["--json", "events", "read", _json({"project_id": PLACE["project_id"], "types": ["tool_call"], "limit": 1000})],
        "",
    ),
    (["--json", "events", "read", _json({"since_ts": "2026-02-02T10:00:04.000Z", "after": 4, "limit": 1})], ""),
    (["--json", "events", "tail", _json({"project_id": PLACE["project_id"], "limit": 2})], ""),
    (["events", "tail", _json({"project_id": PLACE["project_id"], "limit": 2})], ""),
    (["--json", "events", "read", _json({"project_id": "proj_unknown"})], ""),
    (["--json", "events", "append", _json({"type": "message", "payload": {"role": "robot"}})], ""),
    (["--json", "events", "append-batch", _json([said(7, "of_tomorrow", {}), {"payload": {}}])], ""),
    (["--json", "events", "append", _json({**STARTED, "payload": {"other": 1}})], ""),
    (["--json", "events", "append", "{"], ""),
    (["events", "read", _json({"limit": 0})], ""),
    (["--json", "events", "verify"], ""),
    (["--json", "session-meta", "upsert", _json(_META)], ""),
    (["--json", "session-meta", "upsert", _json(_META)], ""),
    (["--json", "session-meta", "list", _json({"project_id": PLACE["project_id"], "days": 36525})], ""),
    (["--json", "session-meta", "upsert", _json({"title": "重构"})], ""),
    (["--json", "watermarks", "set", "my-skill", "evt_20260202_000003"], ""),
    (["--json", "watermarks", "get", "my-skill"], ""),
    (["--json", "insights", "next", "--stage", "test"], ""),
]

_MINTED: Final = (
    (re.compile(r"rep_[0-9a-f-]{36}"), "rep_…"),
    (re.compile(r'"hlc":"[0-9a-f]{12}-[0-9a-f]{4}"'), '"hlc":"…"'),
    (re.compile(r'"eventId":"evt_[0-9a-f-]{36}"'), '"eventId":"evt_…"'),
    (re.compile(r'"local_date":"\d{4}-\d\d-\d\d"'), '"local_date":"…"'),
)


def transcript(folder: Path) -> str:
    """Return all commands and their output, with generated values masked."""
    home = Home(folder)
    parts = []
    for arguments, stdin in STEPS:
        done = home.run(*arguments, stdin=stdin, check=False)
        command = " ".join(arguments) + (f" < {stdin}" if stdin else "")
        told = f"$ xiaobai-memory {command}\n{done.stdout}"
        parts.append(told + (f"stderr: {done.stderr}" if done.stderr else "") + f"exit: {done.returncode}\n")
    text = "\n".join(parts)
    for pattern, mask in _MINTED:
        text = pattern.sub(mask, text)
    return text


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        FILE.write_text(transcript(Path(folder)), "utf-8")
