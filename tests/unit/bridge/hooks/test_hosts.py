"""The JSON of Claude Code and Cursor, as their documentation and recorded calls show it."""

from typing import Any

import pytest

from bridge.hooks.claude import CLAUDE
from bridge.hooks.cursor import CURSOR
from bridge.hooks.event import HookEvent
from bridge.hooks.hosts import sender_of

CLAUDE_COMMON = {
    "session_id": "790c46a6",
    "transcript_path": "/home/u/.claude/projects/p/790c46a6.jsonl",
    "cwd": "/home/u/project/src",
    "permission_mode": "default",
}
CURSOR_COMMON = {
    "conversation_id": "conv-1",
    "generation_id": "gen-1",
    "model": "gpt",
    "cursor_version": "3.0.1",
    "workspace_roots": ["/home/u/project"],
    "user_email": "u@example.com",
    "transcript_path": None,
}
PROJECT = {"CLAUDE_PROJECT_DIR": "/home/u/project"}
COMMAND = {"command": "npm test", "description": "Run tests"}

GOLDEN: list[tuple[dict[str, Any], HookEvent]] = [
    (
        {**CLAUDE_COMMON, "hook_event_name": "SessionStart", "source": "startup", "model": "claude"},
        HookEvent("claude", "SessionStart", "session_start", "790c46a6", "/home/u/project"),
    ),
    (
        {
            **CLAUDE_COMMON,
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": COMMAND,
            "tool_use_id": "toolu_1",
        },
        HookEvent("claude", "PreToolUse", "before_tool", "790c46a6", "/home/u/project", "Bash", COMMAND),
    ),
    (
        {
            **CLAUDE_COMMON,
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": COMMAND,
            "tool_response": {"stdout": "ok\n", "stderr": "warn", "interrupted": False, "isImage": False},
            "tool_use_id": "toolu_1",
        },
        HookEvent("claude", "PostToolUse", "after_tool", "790c46a6", "/home/u/project", "Bash", COMMAND, "ok\nwarn"),
    ),
    *(
        (
            {
                **CLAUDE_COMMON,
                "hook_event_name": "PostToolUse",
                "tool_name": "Bash",
                "tool_input": COMMAND,
                "tool_response": response,
            },
            HookEvent(
                "claude", "PostToolUse", "after_tool", "790c46a6", "/home/u/project", "Bash", COMMAND, out, "", 1
            ),
        )
        for response, out in (
            ({"stdout": "", "stderr": "boom", "exit_code": 1}, "boom"),
            ("Exit code 1\nboom", "Exit code 1\nboom"),
        )
    ),
    (
        {
            **CLAUDE_COMMON,
            "hook_event_name": "PostToolUse",
            "tool_name": "Write",
            "tool_input": {"file_path": "/home/u/a.py", "content": "x"},
            "tool_response": {"type": "create", "filePath": "/home/u/a.py", "content": "x", "originalFile": None},
        },
        HookEvent(
            "claude",
            "PostToolUse",
            "after_tool",
            "790c46a6",
            "/home/u/project",
            "Write",
            {"file_path": "/home/u/a.py", "content": "x"},
        ),
    ),
    (
        {
            **CLAUDE_COMMON,
            "hook_event_name": "PostToolUseFailure",
            "tool_name": "Bash",
            "tool_input": COMMAND,
            "tool_use_id": "toolu_1",
            "error": "Exit code 1\ncat: /tmp/no_such_file.txt: No such file or directory",
            "is_interrupt": False,
            "duration_ms": 16,
        },
        HookEvent(
            "claude",
            "PostToolUseFailure",
            "tool_failed",
            "790c46a6",
            "/home/u/project",
            "Bash",
            COMMAND,
            error="cat: /tmp/no_such_file.txt: No such file or directory",
            exit_code=1,
        ),
    ),
    (
        {**CURSOR_COMMON, "hook_event_name": "sessionStart", "session_id": "conv-1", "composer_mode": "agent"},
        HookEvent("cursor", "sessionStart", "session_start", "conv-1", "/home/u/project"),
    ),
    (
        {
            **CURSOR_COMMON,
            "hook_event_name": "postToolUse",
            "tool_name": "Shell",
            "tool_input": {"command": "npm test"},
            "tool_output": '{"exitCode":1,"stdout":"1 failed"}',
            "tool_use_id": "t1",
            "cwd": "/home/u/project",
            "duration": 5432,
        },
        HookEvent(
            "cursor",
            "postToolUse",
            "after_tool",
            "conv-1",
            "/home/u/project",
            "Bash",
            {"command": "npm test"},
            "1 failed",
            exit_code=1,
        ),
    ),
    (
        {
            **CURSOR_COMMON,
            "hook_event_name": "postToolUseFailure",
            "tool_name": "Shell",
            "tool_input": {"command": "npm test"},
            "tool_use_id": "t1",
            "cwd": "/home/u/project",
            "error_message": "Command timed out after 30s",
            "failure_type": "timeout",
            "duration": 30_000,
            "is_interrupt": False,
        },
        HookEvent(
            "cursor",
            "postToolUseFailure",
            "tool_failed",
            "conv-1",
            "/home/u/project",
            "Bash",
            {"command": "npm test"},
            error="Command timed out after 30s",
        ),
    ),
    (
        {
            **CURSOR_COMMON,
            "hook_event_name": "afterShellExecution",
            "command": "npm test",
            "output": "1 failed",
            "duration": 1,
        },
        HookEvent(
            "cursor",
            "afterShellExecution",
            "after_tool",
            "conv-1",
            "/home/u/project",
            "Bash",
            {"command": "npm test"},
            "1 failed",
        ),
    ),
]


@pytest.mark.parametrize(("payload", "event"), GOLDEN, ids=[event.name for _, event in GOLDEN])
def test_an_event_is_read_from_the_json_of_its_host(payload: dict[str, Any], event: HookEvent) -> None:
    host = sender_of(payload)
    assert host is not None
    assert host.name == event.host
    assert host.parse(payload, PROJECT) == event


def test_cursor_runs_the_hooks_of_claudes_settings_with_its_own_json() -> None:
    payload = {**CURSOR_COMMON, "session_id": "s", "hook_event_name": "PostToolUse", "tool_name": "Shell"}
    host = sender_of(payload)
    assert host is CURSOR
    event = host.parse(payload, {})
    assert event is not None
    assert host.answer(event, "text") == {"additional_context": "text"}


@pytest.mark.parametrize(
    "stopped",
    [
        {**CLAUDE_COMMON, "hook_event_name": "PostToolUseFailure", "error": "x", "is_interrupt": True},
        {**CLAUDE_COMMON, "hook_event_name": "PostToolUseFailure", "error": "Exit code 130\n^C"},
        {**CLAUDE_COMMON, "hook_event_name": "PostToolUse", "tool_response": {"stdout": "", "interrupted": True}},
        {**CURSOR_COMMON, "hook_event_name": "postToolUseFailure", "is_interrupt": True},
        {**CURSOR_COMMON, "hook_event_name": "postToolUseFailure", "failure_type": "permission_denied"},
        {**CURSOR_COMMON, "hook_event_name": "postToolUse", "tool_output": '{"exitCode":130}'},
    ],
)
def test_what_the_user_stopped_or_refused_is_an_interrupt(stopped: dict[str, Any]) -> None:
    host = sender_of(stopped)
    assert host is not None
    event = host.parse({**stopped, "tool_name": "Bash", "tool_input": COMMAND}, {})
    assert event is not None
    assert event.interrupted


def test_a_text_is_answered_where_the_host_reads_it() -> None:
    event = HookEvent("claude", "PreToolUse", "before_tool")
    answer = CLAUDE.answer(event, "t")
    assert answer == {"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "t"}}
    for name in ("sessionStart", "postToolUse", "postToolUseFailure"):
        assert CURSOR.answer(HookEvent("cursor", name, "after_tool"), "t") == {"additional_context": "t"}
    for name in ("preToolUse", "afterShellExecution"):
        assert CURSOR.answer(HookEvent("cursor", name, "after_tool"), "t") is None


@pytest.mark.parametrize("payload", [{}, {"hook_event_name": "Stop", "session_id": "s"}, {"hook_event_name": []}])
def test_another_event_has_no_host(payload: dict[str, Any]) -> None:
    assert sender_of(payload) is None
    assert CURSOR.parse(payload, {}) is None
