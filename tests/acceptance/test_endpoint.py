"""The local endpoint of a running sidecar, with real processes."""

import json
import os
import socket
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.rpc import local_endpoint
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
        assert stat.S_IMODE((home.data / local_endpoint.SOCKET_NAME).stat().st_mode) == 0o600
        with local_endpoint.connect_to_sidecar(home.data, timeout=30) as connection:
            assert connection is not None
            assert "爬山" in ask(connection, "memory/load")["result"]["content"]
            assert ask(connection, "no/such")["error"]["data"]["kind"] == "unknown_method"
            assert ask(connection, "shutdown")["result"] is None, "ends this connection alone"
        assert "爬山" in app.call("memory/load")["content"]
    assert not (home.data / local_endpoint.SOCKET_NAME).exists()


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
    assert (home.data / local_endpoint.SOCKET_NAME).exists()
    assert len(home.json("search", "重试")["hits"]) == 1
    with Sidecar(home) as app:
        app.call("sync/status")  # only an open sidecar answers it, and its endpoint is there before
        with local_endpoint.connect_to_sidecar(home.data, timeout=30) as connection:
            assert connection is not None
            assert "result" in ask(connection, "sync/status")


@pytest.mark.skipif(sys.platform != "linux", reason="only there another process's limit can be set")
def test_the_endpoint_answers_again_after_no_descriptor_was_free(tmp_path: Path) -> None:
    import resource  # noqa: PLC0415 - is not there on Windows

    home = Home(tmp_path)
    with Sidecar(home) as app:
        app.call("events/append", event=FACT)
        wait_until((home.data / local_endpoint.SOCKET_NAME).exists)
        _, most = usual = resource.prlimit(app.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(app.process.pid, resource.RLIMIT_NOFILE, (3, most))
        with local_endpoint.connect_to_sidecar(home.data, timeout=30) as connection:
            assert connection is not None
            with pytest.raises(CallFailed):  # by its answer the sidecar has tried to accept
                app.call("no/such")
            resource.prlimit(app.process.pid, resource.RLIMIT_NOFILE, usual)
            assert "result" in ask(connection, "sync/status")


def test_a_path_that_is_too_long_for_a_socket_is_reached_by_its_folder(tmp_path: Path) -> None:
    home = Home(tmp_path / ("long" * 30))
    with Sidecar(home) as app:
        app.call("sync/status")  # only an open sidecar answers it, and its endpoint is there before
        assert len(os.fsencode(home.data / local_endpoint.SOCKET_NAME)) > local_endpoint.MAX_SOCKET_PATH_BYTES
        with local_endpoint.connect_to_sidecar(home.data, timeout=30) as connection:
            assert (connection is not None) is (sys.platform == "linux")


def test_two_data_directories_never_mix(tmp_path: Path) -> None:
    one, other = Home(tmp_path / "one"), Home(tmp_path / "other")
    with Sidecar(one) as app, Sidecar(other) as beside:
        app.call("events/append", event=FACT)
        beside.call("memory/load")
        wait_until((other.data / local_endpoint.SOCKET_NAME).exists)
        assert other.json("search", "重试")["hits"] == []
        assert len(one.json("search", "重试")["hits"]) == 1
