"""Door × derived field: a password that one text names is nowhere as a tag, title, topic, keyword, line or id."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.environment import files_containing
from tests.sidecar import Home, Sidecar

SECRET: Final = "metapass55"
SAID: Final = f"决定服务器密码是 {SECRET}"
TURNS: Final = [
    {"role": "user", "content": SAID},
    {"role": "assistant", "content": f"好的，{SECRET} 已经记下，部署在 8080 端口。"},
    {"role": "user", "content": f"以后用 {SECRET} 登录"},
]


def learned(sidecar: Sidecar, _folder: Path) -> Any:
    error = {"type": "LoginError", "message": f"{SECRET} was refused"}
    record = {"error": error, "solution": {"description": SAID}, "tags": [SECRET], "language": "python"}
    return sidecar.call("lessons/learn", kind="error", record=record)


def captured(sidecar: Sidecar, _folder: Path) -> Any:
    failed = {"exitCode": 1, "error": f"LoginError: password={SECRET} was refused"}
    return sidecar.call("lessons/capture", tool="Bash", input={"command": f"login {SECRET}"}, sessionId="s", **failed)


def noted(sidecar: Sidecar, folder: Path) -> Any:
    payload = {
        "scene": SAID, "principles": [f"用 {SECRET} 登录", "用密钥登录"], "choice": f"用 {SECRET} 登录",
        "source": "remember", "confidence": "high", "evidence": SECRET, "apply": "project",
    }  # fmt: skip
    return sidecar.call("notes/remember", projectPath=str(folder), payloads=[payload], sessionId="s")


def imported(sidecar: Sidecar, folder: Path) -> Any:
    event = {"type": "session_meta", "payload": {"title": SAID, "tags": [SECRET]}, "session_id": "s", "of_file": SECRET}
    file = folder / "events.jsonl"
    file.write_text(json.dumps(event) + "\n", "utf-8")
    answer = sidecar.call("events/import", paths=[str(file)])
    file.unlink()
    return answer


SUMMARY: Final = {
    "topic": SAID,
    "facts": [f"用 {SECRET} 登录"],
    "tags": [SECRET],
    "code": [{"text": f"login {SECRET}"}],
}
DOORS: Final[dict[str, Callable[[Sidecar, Path], Any]]] = {
    "memory/update": lambda sidecar, _: sidecar.update(SAID, f"好的，{SECRET} 已经记下"),
    "daily/record with turns": lambda sidecar, _: sidecar.call("daily/record", turns=TURNS, force=True),
    "daily/record with a summary": lambda sidecar, _: sidecar.call("daily/record", summary=SUMMARY, force=True),
    "daily/add": lambda sidecar, _: sidecar.call("daily/add", summary=SUMMARY),
    "memory/command with turns": lambda sidecar, _: sidecar.call("memory/command", text="记住这个", turns=TURNS),
    "memory/command with a wish": lambda sidecar, _: sidecar.call(
        "memory/command", text=f"记住以后用 {SECRET} 登录", turns=TURNS[:2]
    ),
    "sessionMeta/upsert": lambda sidecar, _: sidecar.call(
        "sessionMeta/upsert", meta={"session_id": "s", "title": SAID, "summary": f"用 {SECRET}", "tags": [SECRET]}
    ),
    "events/append": lambda sidecar, _: sidecar.call(
        "events/append", event={"type": "memory_fact", "payload": {"content": SAID, "tags": [SECRET]}, "more": SECRET}
    ),
    "lessons/learn": learned,
    "lessons/capture": captured,
    "notes/remember": noted,
    "events/import": imported,
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home", LOG_LEVEL="DEBUG", PRIVACY__STORE_MESSAGES="true")


def test_a_password_of_one_field_is_in_no_file_whatever_the_door(home: Home, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with Sidecar(home) as sidecar:
        answers = {door: call(sidecar, project) for door, call in DOORS.items()}
        sidecar.call("insights/next")
        sidecar.load()
    for door, answer in answers.items():
        assert SECRET not in json.dumps(answer, ensure_ascii=False), door
    assert files_containing(home.folder, SECRET) == []
    assert files_containing(project, SECRET) == []
