"""Cursor: the JSON of its hooks, and where they are set (cursor.com/docs/agent/hooks, version 3).

Cursor also runs the hooks of Claude's settings, with its own JSON and the event names of either. `afterShellExecution`
is understood but not installed: `postToolUse` follows it, knows the exit code and can be answered. The fields were
compared with two other programs that copied that page (April 2026).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bridge.hooks.event import INTERRUPT_CODES, SHELL, AgentHost, EventKind, HookEvent, joined, object_of, text_of

KINDS: Final[Mapping[str, EventKind]] = {
    "sessionStart": "session_start",
    "preToolUse": "before_tool",
    "postToolUse": "after_tool",
    "postToolUseFailure": "tool_failed",
    "afterShellExecution": "after_tool",
}
ANSWERED: Final = frozenset({"sessionStart", "postToolUse", "postToolUseFailure"})  # with `additional_context`
TOOLS: Final = "Shell|Write|StrReplace|Delete"
TOOL_NAMES: Final = {"Shell": SHELL, "run_terminal_cmd": SHELL, "StrReplace": "Edit"}
TIMEOUT: Final = 5  # seconds, of the 60 that Cursor waits


def sends(payload: Mapping[str, Any]) -> bool:
    return "cursor_version" in payload or "conversation_id" in payload


def parse(payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent | None:
    name = _event_name(payload)
    kind = KINDS.get(name)
    if kind is None:
        return None
    tool = text_of(payload.get("tool_name"))
    printed, exit_code = _output_of(payload)
    if name == "afterShellExecution":
        arguments: Mapping[str, Any] = {"command": text_of(payload.get("command"))}
    else:
        arguments = object_of(_decoded(payload.get("tool_input")))
    return HookEvent(
        host=CURSOR.name,
        name=name,
        kind=kind,
        session_id=text_of(payload.get("conversation_id")) or text_of(payload.get("session_id")),
        project=_project_of(payload, environment),
        tool=SHELL if name == "afterShellExecution" else TOOL_NAMES.get(tool, tool),
        input=arguments,
        output=printed,
        error=joined(payload.get("error_message"), payload.get("error")),
        exit_code=exit_code,
        interrupted=payload.get("is_interrupt") is True
        or payload.get("failure_type") == "permission_denied"
        or exit_code in INTERRUPT_CODES,
    )


def answer(event: HookEvent, text: str) -> dict[str, Any] | None:
    """Before a tool and after a shell command Cursor reads no text."""
    return {"additional_context": text} if event.name in ANSWERED else None


def user_file(home: Path, environment: Mapping[str, str]) -> Path:
    del environment
    return home / ".cursor" / "hooks.json"


def entries(command: str) -> dict[str, dict[str, Any]]:
    hook = {"command": command, "timeout": TIMEOUT}
    return {
        "sessionStart": hook,
        "postToolUse": {**hook, "matcher": TOOLS},
        "postToolUseFailure": hook,
    }


def _event_name(payload: Mapping[str, Any]) -> str:
    name = text_of(payload.get("hook_event_name"))
    return name[:1].lower() + name[1:]


def _project_of(payload: Mapping[str, Any], environment: Mapping[str, str]) -> str | None:
    roots = payload.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots else None
    return text_of(first) or environment.get("CURSOR_PROJECT_DIR") or text_of(payload.get("cwd")) or None


def _output_of(payload: Mapping[str, Any]) -> tuple[str, int | None]:
    """What the tool printed and its exit code; Cursor gives both as a JSON text."""
    given = next((payload[key] for key in ("tool_output", "result_json", "output") if key in payload), None)
    value = _decoded(given)
    parts = object_of(value)
    code = next((parts[key] for key in ("exitCode", "exit_code") if isinstance(parts.get(key), int)), None)
    return joined(value, parts.get("output"), parts.get("stdout"), parts.get("stderr")), code


def _decoded(value: object) -> object:
    """The object that a JSON text holds; any other value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


CURSOR: Final = AgentHost(
    name="cursor",
    title="Cursor",
    sends=sends,
    parse=parse,
    answer=answer,
    user_file=user_file,
    project_file=".cursor/hooks.json",
    entries=entries,
    settings={"version": 1},
    next_step="Restart Cursor. Settings > Hooks lists the hooks and what they last answered.",
)
