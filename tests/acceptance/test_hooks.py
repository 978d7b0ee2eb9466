"""Hooks of coding agents, with real processes."""

import json
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sync.lessons.quick_match import teaches
from tests.sidecar import Home, Sidecar, wait_until

ERROR = "ImportError: cannot import name 'Depends' from 'fastapi'"
CURE = "循环导入问题，使用延迟导入解决"
FAILED = {
    "session_id": "s1",
    "cwd": "/p",
    "hook_event_name": "PostToolUseFailure",
    "tool_name": "Bash",
    "tool_input": {"command": "python app.py"},
    "error": f"Exit code 1\n{ERROR}",
    "is_interrupt": False,
}


def hint(home: Home, payload: dict[str, Any]) -> str:
    """What the hook shows the agent; empty for nothing."""
    shown = home.run("hook", stdin=json.dumps(payload)).stdout
    return str(json.loads(shown)["hookSpecificOutput"]["additionalContext"]) if shown else ""


def learned(home: Home) -> None:
    record = {
        "language": "python",
        "error": {"type": "ImportError", "message": "cannot import name 'Depends' from 'fastapi'"},
        "solution": {"description": CURE},
    }
    with Sidecar(home) as sidecar:
        sidecar.call("lessons/learn", kind="error", record=record)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no endpoint yet")
def test_a_failed_tool_shows_the_lesson_through_the_sidecar_once_a_session(tmp_path: Path) -> None:
    home = Home(tmp_path)
    learned(home)
    with Sidecar(home) as sidecar:
        sidecar.call("sync/status")  # only an open sidecar answers it, and its endpoint is there before
        sidecar.call("lessons/match", tool="Bash", error="warm: up")  # imports what the first call needs
        session = wait_until(lambda: session_with_a_hint(home))
        assert hint(home, {**FAILED, "session_id": session, "error": f"Exit code 1\n{ERROR} again"}) == ""


def session_with_a_hint(home: Home) -> str:
    """A new session that is shown the cure; empty if the sidecar took longer than a hook waits."""
    session = str(uuid4())
    return session if CURE in hint(home, {**FAILED, "session_id": session}) else ""


def test_without_a_sidecar_an_exact_match_comes_from_the_database(tmp_path: Path) -> None:
    home = Home(tmp_path)
    learned(home)
    assert CURE in hint(home, FAILED)
    assert hint(home, {**FAILED, "session_id": "s2", "is_interrupt": True}) == ""


def test_without_a_sidecar_a_failure_and_what_followed_it_are_kept(tmp_path: Path) -> None:
    home = Home(tmp_path)
    learned(home)
    data = home.database.parents[2]

    def observed() -> list[str]:
        events = home.json("events", "read")["events"]
        return [one["payload"].get("command") for one in events if one["type"] == "lesson_observed"]

    def ran(command: str) -> dict[str, Any]:
        response = {"stdout": "ok", "stderr": "", "interrupted": False}
        return {**FAILED, "hook_event_name": "PostToolUse", "tool_input": {"command": command},
                "tool_response": response, "error": None}  # fmt: skip

    cure = {"tool": "Bash", "input": {"command": "make fix"}, "exitCode": 0, "output": "ok"}
    assert not teaches(data, {**cure, "sessionId": "s1"})
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    hint(home, {**FAILED, "tool_input": {"command": f"python app.py {secret}"}})
    wait_until(lambda: len(observed()) == 1)
    assert (teaches(data, {**cure, "sessionId": "s1"}), teaches(data, {**cure, "sessionId": "s2"})) == (True, False)
    assert hint(home, ran("make fix")) == ""
    wait_until(lambda: observed()[1:] == ["make fix"])
    assert [one["occurrences"] for one in home.json("lessons", "list")["lessons"]] == [2]
    assert "可能的解决：make fix" in home.run("lessons", "learn", "error").stdout
    assert secret.encode() not in b"".join(path.read_bytes() for path in data.rglob("*") if path.is_file())
    assert not (data / "hooks" / "hooks.log").exists()
