"""The local endpoint of a running sidecar, with real processes."""

import json
import os
import re
import signal
import socket
import stat
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest

from bridge.rpc import local_endpoint
from bridge.rpc.endpoint_client import MAX_SOCKET_PATH_BYTES, SOCKET_NAME, connect_to_sidecar, is_same_user
from bridge.rpc.framing import FRAME_LIMIT
from tests.sidecar import CallFailed, Home, Sidecar, wait_until

FACT = {"type": "memory_fact", "payload": {"content": "重试三次"}}

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no endpoint yet")


def ask(connection: socket.socket, method: str, **params: Any) -> dict[str, Any]:
    connection.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
    with connection.makefile("rb") as answers:
        answer: dict[str, Any] = json.loads(answers.readline())
        return answer


def test_a_running_sidecar_answers_the_same_methods_on_a_socket_that_only_its_user_opens(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with Sidecar(home) as app:
        app.call("memory/update", userMessage="我喜欢爬山", aiResponse="好的")
        assert stat.S_IMODE((home.data / SOCKET_NAME).stat().st_mode) == 0o600
        with connect_to_sidecar(home.data, timeout=30) as connection:
            assert connection is not None
            assert "爬山" in ask(connection, "memory/load")["result"]["content"]
            assert ask(connection, "no/such")["error"]["data"]["kind"] == "unknown_method"
            assert ask(connection, "shutdown")["result"] is None, "ends this connection alone"
        assert "爬山" in app.call("memory/load")["content"]
    assert not (home.data / SOCKET_NAME).exists()


def test_a_command_searches_through_the_sidecar_and_by_itself_when_none_runs(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with Sidecar(home) as app:
        app.call("events/append", event=FACT)
        assert [hit["text"] for hit in home.json("search", "重试")["hits"]] == ["重试三次"]
    assert [hit["text"] for hit in home.json("search", "重试")["hits"]] == ["重试三次"]


def test_the_socket_of_a_killed_sidecar_is_replaced_and_nobody_waits_for_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with Sidecar(home) as app:
        app.call("events/append", event=FACT)
        app.kill()
    assert (home.data / SOCKET_NAME).exists()
    assert len(home.json("search", "重试")["hits"]) == 1
    with Sidecar(home) as app:
        app.call("sync/status")  # only an open sidecar answers it, and its endpoint is there before
        with connect_to_sidecar(home.data, timeout=30) as connection:
            assert connection is not None
            assert "result" in ask(connection, "sync/status")


@pytest.mark.skipif(sys.platform != "linux", reason="only there another process's limit can be set")
def test_the_endpoint_answers_again_after_no_descriptor_was_free(tmp_path: Path) -> None:
    import resource  # noqa: PLC0415 - is not there on Windows

    home = Home(tmp_path)
    with Sidecar(home) as app:
        app.call("events/append", event=FACT)
        wait_until((home.data / SOCKET_NAME).exists)
        _, most = usual = resource.prlimit(app.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(app.process.pid, resource.RLIMIT_NOFILE, (3, most))
        with connect_to_sidecar(home.data, timeout=30) as connection:
            assert connection is not None
            with pytest.raises(CallFailed):  # by its answer the sidecar has tried to accept
                app.call("no/such")
            resource.prlimit(app.process.pid, resource.RLIMIT_NOFILE, usual)
            assert "result" in ask(connection, "sync/status")


def test_a_path_that_is_too_long_for_a_socket_is_reached_by_its_folder(tmp_path: Path) -> None:
    home = Home(tmp_path / ("long" * 30))
    with Sidecar(home) as app:
        app.call("sync/status")  # only an open sidecar answers it, and its endpoint is there before
        assert len(os.fsencode(home.data / SOCKET_NAME)) > MAX_SOCKET_PATH_BYTES
        with connect_to_sidecar(home.data, timeout=30) as connection:
            assert (connection is not None) is (sys.platform == "linux")


def test_two_data_directories_never_mix(tmp_path: Path) -> None:
    one, other = Home(tmp_path / "one"), Home(tmp_path / "other")
    with Sidecar(one) as app, Sidecar(other) as beside:
        app.call("events/append", event=FACT)
        beside.call("memory/load")
        wait_until((other.data / SOCKET_NAME).exists)
        assert other.json("search", "重试")["hits"] == []
        assert len(one.json("search", "重试")["hits"]) == 1


def test_a_sidecar_carries_out_a_command_and_the_command_does_its_work_itself_without_one(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with Sidecar(home) as app:
        app.call("sync/status")
        assert home.json("status")["sidecar"]
        home.run("update", "我喜欢爬山", "好的")
        assert "爬山" in app.load()["content"]
    assert home.json("status")["sidecar"] is False, "no sidecar runs, though the command holds its lock"
    assert "爬山" in home.run("load").stdout


@pytest.mark.parametrize("ending", [signal.SIGSTOP, signal.SIGKILL])
def test_a_command_does_its_work_itself_when_the_sidecar_does_not_answer(
    tmp_path: Path, ending: signal.Signals
) -> None:
    home = Home(tmp_path)
    with Sidecar(home) as app:
        app.call("sync/status")
        app.process.send_signal(ending)
        home.run("events", "append", json.dumps(FACT))
        home.run("update", "爬山要带什么", "好的")
        texts = [event["type"] for event in home.json("events", "read")["events"]]
        app.process.send_signal(signal.SIGCONT if ending is signal.SIGSTOP else signal.SIGKILL)
    assert sorted(texts) == ["exchange_recorded", "memory_fact"], "nothing was recorded twice"


def test_a_request_that_the_wire_cannot_carry_is_carried_out_by_the_command(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with Sidecar(home) as app:
        app.call("sync/status")
        home.run("update", "-", "好的", stdin="a" * (FRAME_LIMIT - 50))  # the envelope makes it too long
        types = [event["type"] for event in app.call("events/tail", limit=2)["events"]]
        assert types == ["exchange_recorded", "exchange_text"]


def test_a_sidecar_leaves_the_socket_of_another_one_in_a_replaced_folder(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with ExitStack() as stack:
        app = stack.enter_context(Sidecar(home))
        app.call("sync/status")
        home.data.rename(tmp_path / "moved away")
        beside = stack.enter_context(Sidecar(home))
        beside.call("sync/status")
        app.stop()
        with connect_to_sidecar(home.data, timeout=30) as connection:
            assert connection is not None
            assert "result" in ask(connection, "sync/status")


class TestOutput:
    """What a command prints and its exit status do not depend on who carries it out."""

    EVENT: ClassVar = json.dumps({"event_id": "evt_01941f29-7c00-7000-8000-000000000001", **FACT})
    COMMANDS: ClassVar[list[tuple[str, ...]]] = [
        ("events", "append", EVENT),
        ("events", "append", EVENT),
        ("events", "append", "[]"),
        ("events", "append", "{"),
        ("events", "append-batch", f"[{EVENT}]"),
        ("events", "append-batch", "7"),
        ("events", "read"),
        ("events", "read", '{"after": -1}'),
        ("update", "爬山要带什么", "好的", "--importance", "0.5"),
        ("update", "", ""),
        ("update", "甲", "乙", "--importance=7"),
        ("update", "-", "好的", "--key", "k"),
        ("load", "--scope", "device"),
        ("load", "--prompt"),
        ("update", "甲", "乙", "--importance", "nan"),
        ("load", "--max-chars", "0"),
        ("load", "--max-chars", str(2**64)),
        ("load", "--wait-ms", str(2**64)),
        ("search", "重试", "--limit=3", "--kind", "fact"),
        ("search", "重试", "--context"),
        ("search", "重试", "--since", "nonsense"),
        ("remember", "今天天气"),
        ("remember", "查看今日记忆"),
        ("session-meta", "upsert", '{"session_id": "s1", "title": "标题"}'),
        ("session-meta", "list"),
        ("session-meta", "list", '{"limit": 0}'),
        ("session-meta", "list", "7"),
        ("load", "--no-such-option"),
        ("status", "superfluous"),
    ]

    def test_it_is_the_same_with_and_without_a_sidecar(self, tmp_path: Path) -> None:
        one, other = Home(tmp_path / "with"), Home(tmp_path / "none")
        with Sidecar(one) as app:
            app.call("sync/status")
            through_sidecar = [self.outcome(one, command) for command in self.COMMANDS]
        assert through_sidecar == [self.outcome(other, command) for command in self.COMMANDS]

    def test_json_and_the_state_have_the_same_shape_with_and_without_a_sidecar(self, tmp_path: Path) -> None:
        one, other = Home(tmp_path / "with"), Home(tmp_path / "none")
        commands = [("--json", *command) for command in [*self.COMMANDS[:3], *self.COMMANDS[8:11], ("status",)]]
        with Sidecar(one) as app:
            app.call("sync/status")
            through_sidecar = [self.json_outcome(one, command) for command in commands]
        assert through_sidecar == [self.json_outcome(other, command) for command in commands]

    def outcome(self, home: Home, command: tuple[str, ...]) -> tuple[int, str, str]:
        done = home.run(*command, stdin="杭州的天气", check=False)
        return done.returncode, self.comparable(done.stdout), self.comparable(done.stderr)

    def json_outcome(self, home: Home, command: tuple[str, ...]) -> tuple[int, object]:
        done = home.run(*command, stdin="杭州的天气", check=False)
        return done.returncode, shape(json.loads(done.stdout or done.stderr))

    def comparable(self, text: str) -> str:
        text = re.sub(r"(evt|sess|proj|memory)[_-][0-9a-f_-]+", r"\1", text)
        return re.sub(r"\d{4}[-/]\d+[-/]\d+[T ]?[\d:.]*Z?", "TIME", text)


def shape(value: object) -> object:
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else type(value).__name__


def test_a_silent_client_makes_room_for_one_that_asks(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with Sidecar(home) as app, ExitStack() as clients:
        app.call("sync/status")
        for _ in range(local_endpoint.MAX_CONNECTIONS):
            assert clients.enter_context(connect_to_sidecar(home.data, timeout=30)) is not None
        with connect_to_sidecar(home.data, timeout=30) as connection:
            assert connection is not None
            assert "result" in ask(connection, "sync/status")


def test_a_process_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = socket.socketpair()
    with here, there:
        assert is_same_user(here)
        monkeypatch.setattr(os, "getuid", lambda: 2**31 - 2)
        assert is_same_user(here) is (sys.platform != "linux")
