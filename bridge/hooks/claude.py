"""Claude Code: the JSON of its hooks, and where its settings lie (code.claude.com/docs/en/hooks, version 2.1)."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bridge.hooks.event import INTERRUPT_CODES, AgentHost, EventKind, HookEvent, joined, object_of, text_of

KINDS: Final[Mapping[str, EventKind]] = {
    "SessionStart": "session_start",
    "PreToolUse": "before_tool",
    "PostToolUse": "after_tool",
    "PostToolUseFailure": "tool_failed",
}
TOOLS: Final = "Bash|Edit|MultiEdit|Write|NotebookEdit"
TIMEOUT: Final = 5  # seconds; the host's own bound of 600 would let a hook that hangs stop the session
_EXIT_CODE: Final = re.compile(r"\A(?:Error: )?(?:Exit code|Command exited with non-zero status code) (-?\d{1,9})\s*")


def sends(payload: Mapping[str, Any]) -> bool:
    return "session_id" in payload and text_of(payload.get("hook_event_name")) in KINDS


def parse(payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent | None:
    """`environment`: CLAUDE_PROJECT_DIR is the project; `cwd` changes with each `cd` of the agent."""
    name = text_of(payload.get("hook_event_name"))
    kind = KINDS.get(name)
    if kind is None:
        return None
    response = payload.get("tool_response")
    parts = object_of(response)
    failure = text_of(payload.get("error"))
    output = joined(response, parts.get("stdout"), parts.get("stderr"))
    code = _EXIT_CODE.match(failure or output)
    stated = next((parts[name] for name in ("exit_code", "exitCode") if isinstance(parts.get(name), int)), None)
    exit_code = int(code[1]) if code else stated
    return HookEvent(
        host=CLAUDE.name,
        name=name,
        kind=kind,
        session_id=text_of(payload.get("session_id")),
        project=environment.get("CLAUDE_PROJECT_DIR") or text_of(payload.get("cwd")) or None,
        tool=text_of(payload.get("tool_name")),
        input=object_of(payload.get("tool_input")),
        output=output,
        error=failure[code.end() :] if code and failure else failure,
        exit_code=exit_code,
        interrupted=payload.get("is_interrupt") is True
        or parts.get("interrupted") is True
        or exit_code in INTERRUPT_CODES,
        repeats=payload.get("source") == "resume",
    )


def answer(event: HookEvent, text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}


def user_file(home: Path, environment: Mapping[str, str]) -> Path:
    folder = environment.get("CLAUDE_CONFIG_DIR")
    return (Path(folder) if folder else home / ".claude") / "settings.json"


def entries(command: str) -> dict[str, dict[str, Any]]:
    hook = {"type": "command", "command": command, "timeout": TIMEOUT}
    return {
        "SessionStart": {"hooks": [hook]},
        "PreToolUse": {"matcher": TOOLS, "hooks": [hook]},
        "PostToolUse": {"matcher": TOOLS, "hooks": [hook]},
        "PostToolUseFailure": {"matcher": "*", "hooks": [hook]},
    }


CLAUDE: Final = AgentHost(
    name="claude",
    title="Claude Code",
    sends=sends,
    parse=parse,
    answer=answer,
    user_file=user_file,
    project_file=".claude/settings.json",
    entries=entries,
    settings={},
    next_step="Restart Claude Code: a running session keeps the hooks that it started with. /hooks lists them.",
)
