"""Every byte that leaves toward a server while lessons are taught, corrected, mined and forgotten."""

import json
from pathlib import Path
from typing import Any, Final

from tests.acceptance.environment import Network, cloud_settings, unique_text, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar

PARTS: Final = ("message", "cure", "edited", "pattern", "command", "error", "path", "tag", "file")


def texts_in(sent: bytes) -> str:
    """The bytes as text; escapes of JSON are read, also in JSON that is a string in JSON."""
    text = sent.decode("utf-8", errors="replace")
    for _ in range(3):
        text += "\n" + text.replace("\\\\", "\\").encode("utf-8", "backslashreplace").decode(
            "unicode_escape", "replace"
        )
    return text


def teach(sidecar: Sidecar, words: dict[str, str], folder: Path) -> None:
    record = {
        "language": "python",
        "error": {"type": "ImportError", "message": f"无法找到 {words['message']}"},
        "solution": {"description": words["cure"]},
        "tags": [words["tag"]],
    }
    known = sidecar.call("lessons/list")["lessons"]
    lesson = sidecar.call("lessons/learn", kind="error", record=record)["lesson"]
    sidecar.call("lessons/edit", id=lesson["id"], changes={"solution": {"description": words["edited"]}})
    pattern = {"type": "api", "name": words["pattern"], "pattern": {"structure": words["pattern"]}}
    sidecar.call("lessons/learn", kind="pattern", record=pattern)

    def capture(command: str, **more: Any) -> Any:
        return sidecar.call("lessons/capture", tool="Bash", input={"command": command}, sessionId="s", **more)

    failing = f"./{words['path']}/run {words['command']}"
    for _ in range(2):
        capture(failing, exitCode=1, error=f"RuntimeError: {words['error']} is missing")
    capture(f"make {words['error']}", exitCode=0)
    mined = [name for _ in range(7) for name in capture(failing, exitCode=0)["mined"]]
    assert len(mined) == int(not known)
    sidecar.call("lessons/match", tool="Bash", error=f"RuntimeError: {words['error']} is missing", sessionId="t")
    (folder / "errors").mkdir(parents=True, exist_ok=True)
    edited = [{"error": {"message": words["file"]}}]
    (folder / "errors/mine.json").write_text(json.dumps(edited), "utf-8")
    assert len(sidecar.call("lessons/list")["lessons"]) == 4
    sidecar.call("lessons/clean", ids=[lesson["id"]], confirm=True)


def test_no_word_of_a_lesson_is_in_any_byte_that_is_sent(tmp_path: Path, local_cloud: Cloud, user: User) -> None:
    words = {name: unique_text(f"课{name}") for name in PARTS}
    said, folder = unique_text("说过"), tmp_path / "lessons"
    with Network(local_cloud) as network:
        home = Home(tmp_path / "a", **cloud_settings(local_cloud, network.url), SYNC__REALTIME="false")
        home.settings["LESSONS__DIR"] = str(folder)
        with Sidecar(home) as sidecar:
            teach(sidecar, words, folder)
            sidecar.log_in(user.email, user.password)
            sidecar.update("问", said)
            wait_until_synced(sidecar)
            teach(sidecar, words, folder)
            wait_until_synced(sidecar)
        sent = texts_in(network.received)
    assert said in sent
    assert "tool_call" in sent
    assert [word for word in words.values() if word in sent] == []
