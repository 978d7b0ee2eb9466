"""The wire of the real sidecar: an independent JSON-RPC client, and malformed input."""

import json
import random
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.acceptance.environment import exchanges, question_counts
from tests.integration.bridge.rpc.test_stdio_transport import broken_frame
from tests.sidecar import ANSWER_WITHIN, COMMAND, REPOSITORY, Home, Sidecar

PEER: Final = Path(__file__).parent / "vscode_peer.mjs"
FRAMES: Final = 2000


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


class TestVscodeJsonrpc:
    """The library that language servers speak with, as npm has it: headers, its own ids, its own cancellation."""

    @pytest.fixture
    def seen(self, home: Home) -> dict[str, Any]:
        done = subprocess.run(
            ["node", PEER, *COMMAND, "serve"],
            env=home.environment,
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def test_works_unchanged(self, home: Home, seen: dict[str, Any]) -> None:
        assert seen["hello"]["protocolVersion"] == 1
        assert seen["changed"]
        assert len({*seen["many"], seen["update"]["eventId"]}) == 41
        assert question_counts(seen["document"]) == {"你好 𠮷": 1, **{f"问题 {n}": 1 for n in range(40)}}
        assert seen["unknown"]["code"] == -32601
        assert seen["bad"] == {"code": -32602, "kind": "invalid_input"}
        assert seen["cancelled"] in {"answered before", -32800}
        assert seen["alive"] is True
        assert (seen["noise"], seen["code"]) == ([], 0)
        with Sidecar(home) as again:
            assert {event["event_id"] for event in exchanges(again)} == {*seen["many"], seen["update"]["eventId"]}


def test_two_thousand_broken_frames_are_answered_each_and_the_next_call_works(home: Home) -> None:
    chance = random.Random(20260109)
    frames = [broken_frame(chance)[0] for _ in range(FRAMES)]
    call = {"jsonrpc": "2.0", "id": "last", "method": "memory/load", "params": {}}
    with child(home) as served:
        assert served.stdin is not None
        assert served.stdout is not None
        frame_bytes = b"\n".join([*frames, msgspec.json.encode(call), b""])
        writer = threading.Thread(target=lambda: (served.stdin.write(frame_bytes), served.stdin.flush()))  # type: ignore[union-attr]
        writer.start()
        answers = [json.loads(served.stdout.readline()) for _ in range(FRAMES + 1)]  # nothing but protocol
        writer.join()
        served.stdin.close()
        assert served.stdout.read() == b""
        assert served.wait(ANSWER_WITHIN) == 0
    [good] = [answer for answer in answers if answer.get("id") == "last"]
    assert "result" in good
    codes = Counter(answer["error"]["code"] for answer in answers if answer is not good)
    assert set(codes) == {-32700, -32600, -32601}  # the echo's method is unknown here
    assert codes.total() == FRAMES
    assert "Traceback" not in (home.folder / "stderr.log").read_text("utf-8")


@contextmanager
def child(home: Home) -> Iterator["subprocess.Popen[bytes]"]:
    """The sidecar without a client of ours; ended if the test takes too long."""
    pipe = subprocess.PIPE
    with (home.folder / "stderr.log").open("wb") as said:
        served = subprocess.Popen(
            [*COMMAND, "serve"], env=home.environment, cwd=REPOSITORY, stdin=pipe, stdout=pipe, stderr=said
        )
        guard = threading.Timer(3 * ANSWER_WITHIN, served.kill)
        guard.start()
        try:
            with served:
                yield served
        finally:
            guard.cancel()
