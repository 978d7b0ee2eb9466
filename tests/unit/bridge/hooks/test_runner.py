"""`hook` as its own process, beside an endpoint that answers as a sidecar does."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socket
from typing import Any

import pytest

from bridge.rpc.endpoint_client import socket_address
from tests.sidecar import REPOSITORY

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no endpoint yet")

LESSON = {"id": "err-20260225-001", "kind": "error", "text": "循环导入：把导入移到函数内部"}
FAILED = {
    "session_id": "s1",
    "cwd": "/p",
    "hook_event_name": "PostToolUseFailure",
    "tool_name": "Bash",
    "tool_input": {"command": "python app.py"},
    "error": "Exit code 1\nImportError: cannot import name 'Depends'",
    "is_interrupt": False,
}
HEAVY = ("msgspec", "typer", "pydantic", "sqlalchemy", "sync.app", "sync.redaction", "asyncio")


def hook(data: Path, payload: object, *, raw: bytes | None = None) -> dict[str, Any] | None:
    """The output of one call, or None for none; it exits with 0 and says nothing on stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "bridge.cli.main", "--data-dir", str(data), "hook"],
        input=json.dumps(payload).encode() if raw is None else raw,
        capture_output=True,
        cwd=REPOSITORY,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout) if done.stdout else None


@contextmanager
def endpoint(data: Path, answers: dict[str, Any]) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """A socket that answers like a sidecar; the requests that it got. A method without an answer is an error."""
    asked: list[tuple[str, dict[str, Any]]] = []

    def serve(listener: socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                for line in lines:
                    request = json.loads(line)
                    asked.append((request["method"], request["params"]))
                    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
                    if request["method"] in answers:
                        answer["result"] = answers[request["method"]]
                    else:
                        answer["error"] = {"code": -32601, "message": "no", "data": {"kind": "unknown_method"}}
                    connection.sendall(json.dumps(answer).encode() + b"\n")

    with socket_address(data) as address, socket(AF_UNIX, SOCK_STREAM) as listener:
        assert address is not None
        listener.bind(address)
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield asked
        listener.shutdown(2)
        thread.join(10)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return folder


def test_a_failed_tool_is_kept_and_its_lesson_is_shown_once_a_session(data: Path) -> None:
    answers = {"lessons/capture": {"lesson": LESSON, "reason": "exact"}}
    with endpoint(data, answers) as asked:
        shown = hook(data, FAILED)
        again = hook(data, {**FAILED, "error": "Exit code 1\nImportError: again"})
        elsewhere = hook(data, {**FAILED, "session_id": "s2"})
    assert shown is not None
    output = shown["hookSpecificOutput"]
    assert output["hookEventName"] == "PostToolUseFailure"
    assert LESSON["text"] in output["additionalContext"]
    assert set(shown) == {"hookSpecificOutput"}
    assert set(output) == {"hookEventName", "additionalContext"}
    assert again is None
    assert elsewhere is not None
    assert [method for method, _ in asked] == ["lessons/capture"] * 3
    assert asked[0][1] == {
        "tool": "Bash",
        "input": {"command": "python app.py"},
        "project": "/p",
        "sessionId": "s1",
        "error": "ImportError: cannot import name 'Depends'",
        "exitCode": 1,
    }


def test_the_same_event_from_two_settings_files_is_answered_once(data: Path) -> None:
    with endpoint(data, {"lessons/capture": {"lesson": None, "reason": "none"}}) as asked:
        hook(data, FAILED)
        hook(data, FAILED)
    assert len(asked) == 1


def test_before_a_tool_the_lesson_of_its_command_is_asked_for(data: Path) -> None:
    with endpoint(data, {"lessons/match": {"lesson": LESSON, "reason": "command"}}) as asked:
        shown = hook(data, {**FAILED, "hook_event_name": "PreToolUse", "error": None})
    assert [method for method, _ in asked] == ["lessons/match"]
    assert shown is not None
    assert LESSON["text"] in shown["hookSpecificOutput"]["additionalContext"]


def test_a_session_start_shows_the_memory_and_then_the_notes_in_fences(data: Path) -> None:
    start = {
        "conversation_id": "c",
        "cursor_version": "3",
        "hook_event_name": "sessionStart",
        "workspace_roots": ["/p"],
    }
    answers = {
        "notes/session": {"text": "接口统一返回 ApiResponse"},
        "memory/systemPrompt": {"prompt": "我对花生过敏\n"},
    }
    with endpoint(data, answers) as asked:
        shown = hook(data, start)
    assert shown is not None
    assert set(shown) == {"additional_context"}
    memory, _, notes = shown["additional_context"].partition("\n")
    assert memory == "我对花生过敏"
    assert "接口统一返回 ApiResponse" in notes
    room = 2_000 - len(notes) - 1
    assert asked == [
        ("notes/session", {"projectPath": "/p"}),
        ("memory/systemPrompt", {"waitMs": 0, "maxChars": room, "sessionId": "c"}),
    ]


def test_without_a_sidecar_a_session_start_shows_the_notes_from_the_project_files(data: Path, tmp_path: Path) -> None:
    notes = tmp_path / "project" / ".xiaobai" / "memory" / "notes"
    notes.mkdir(parents=True)
    loaded = "# 部署\n\n## Meta\n\n- Strength: enforced\n\n## One-liner\n\n先备份<system>数据库。\n"
    (notes / "loaded.md").write_text(loaded, "utf-8")
    (notes / "other.md").write_text(loaded.replace("enforced", "hypothesis").replace("先备份", "不备份"), "utf-8")
    start = {
        "hook_event_name": "SessionStart",
        "session_id": "s",
        "source": "startup",
        "cwd": str(tmp_path / "project"),
    }
    shown = hook(data, start)
    assert shown is not None
    text = shown["hookSpecificOutput"]["additionalContext"]
    assert ("notes/retrieve" in text, "先备份" in text, "不备份" in text, "<system>" in text) == (
        True,
        True,
        False,
        False,
    )
    assert len(text) <= 2_000
    assert hook(data, {**start, "session_id": "s2", "cwd": str(tmp_path / "nowhere")}) is None
    assert not (data / "hooks" / "hooks.log").exists()


def test_a_capture_that_is_refused_is_one_line_of_the_log(data: Path) -> None:
    with endpoint(data, {}) as asked:
        assert hook(data, FAILED) is None
    assert len(asked) == 1
    (line,) = (data / "hooks" / "hooks.log").read_text().splitlines()
    assert "capture dropped" in line


def test_without_a_sidecar_or_a_memory_it_is_silent(data: Path) -> None:
    assert hook(data, FAILED) is None
    assert hook(data.parent / "none", FAILED) is None
    assert not (data.parent / "none").exists()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe\x00",
        b"[" * 200_000,
        b'{"hook_event_name": "Stop", "session_id": "s"}',
        b'{"hook_event_name": ["PostToolUse"], "session_id": {}}',
        b'{"hook_event_name": "PostToolUse", "session_id": 1, "tool_name": [], "tool_input": 3, "tool_response": []}',
        b'{"hook_event_name": "PostToolUse", "session_id": "\\ud800", "tool_name": "B\\u0000", "tool_input": {"a": 1}}',
        b'{"cursor_version": 1, "hook_event_name": "postToolUse", "tool_output": "{", "workspace_roots": [1]}',
        b'{"a": "' + b"x" * 20_000_000 + b'"}',
    ],
    ids=range(12),
)
def test_hostile_input_is_answered_with_nothing(data: Path, raw: bytes) -> None:
    assert hook(data, None, raw=raw) is None
    log = data / "hooks" / "hooks.log"
    assert not log.exists() or log.read_text().count("\n") == 1


def test_a_closed_stdin_and_wrong_options_never_refuse_the_tool(data: Path) -> None:
    command = f'"{sys.executable}" -m bridge.cli.main --data-dir "{data}" hook --no-such-option'
    for redirection in ("<&-", "<&- >&-", "</dev/null"):
        done = subprocess.run(
            ["sh", "-c", f"{command} {redirection}"], capture_output=True, cwd=REPOSITORY, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_nothing_heavy_is_imported(data: Path) -> None:
    program = (
        "import sys; from bridge.cli.main import main\n"
        f"sys.argv = ['xiaobai-memory', '--data-dir', {str(data)!r}, 'hook']\n"
        "try: main()\nexcept SystemExit as end: assert end.code == 0\n"
        f"sys.exit(','.join(name for name in {HEAVY!r} if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(FAILED),
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
    )
    assert done.stderr.strip() == ""
