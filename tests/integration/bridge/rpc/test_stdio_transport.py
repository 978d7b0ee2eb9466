"""The real process: descriptors, pipes that are full or broken, parents that die, ends that come too early."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridge.rpc.framing import FRAME_LIMIT, Framing
from bridge.rpc.transport import HIGH_WATER
from tests.contract.rpc_clients import ECHO, PATIENCE, ROOT, process_client

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="signals and poll of POSIX")


def request(number: object, method: str, **params: object) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + b"\n"


def resident(pid: int) -> int:
    """Bytes of memory a process holds."""
    return 1024 * int(subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=True).stdout)


# --- broken frames -----------------------------------------------------------------------------------------


def broken_frame(chance: random.Random) -> tuple[bytes, set[int]]:
    """One line that is not a correct request, and the codes that answer it."""
    good = msgspec.json.encode(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "test/echo",
            "params": {"value": chance.choice(["记忆", "x", 1, [1, [2]]])},
        }
    )
    damages = [
        lambda: (good[: chance.randrange(1, len(good))], {-32700}),
        lambda: (good + chance.choice([b"}", b"]", b"x", b"{}"]), {-32700}),
        lambda: (
            good.replace(b'"value":', b'"value":' + chance.choice([b"NaN", b"Infinity", b"-", b"01"]) + b","),
            {-32700},
        ),
        lambda: (good.replace(b'"value"', b'"\\ud8%02x"' % chance.randrange(256)), {-32700}),
        lambda: (good.replace(b'"value"', b'"' + bytes([chance.randrange(0x80, 0xC2)]) + b'"'), {-32700}),
        lambda: (good.replace(b"2.0", b"1.%d" % chance.randrange(10)), {-32600}),
        lambda: (good.replace(b'"id":1', chance.choice([b'"id":true', b'"id":[1]', b'"id":{}'])), {-32600}),
        lambda: (good.replace(b'"id":1', b'"id":1,"id":%d' % chance.randrange(9)), {-32600}),
        lambda: (good.replace(b'"params":{', b'"params":{"value":0,'), {-32600}),
        lambda: (good.replace(b'"test/echo"', b"%d" % chance.randrange(99)), {-32600}),
        lambda: (chance.choice([b"1", b"null", b"[]", b'"x"', b"{}", b"true"]), {-32600}),
        lambda: (b"[" * (n := chance.randrange(65, 3000)) + b"]" * n, {-32600}),
        lambda: (good.replace(b"test/echo", b"test/%d" % chance.randrange(99)), {-32601}),
        lambda: (good.replace(b'"value"', b'"v%d"' % chance.randrange(99)), {-32602}),
        lambda: (chance.randbytes(chance.randrange(1, 60)).replace(b"\n", b"?").strip() or b"?", {-32700, -32600}),
    ]
    return chance.choice(damages)()


async def test_two_thousand_broken_frames_get_the_right_codes_and_do_no_harm() -> None:
    chance = random.Random(20260108)
    async with process_client() as (peer, _):
        for number in range(2000):
            frame, codes = broken_frame(chance)
            await peer.send_bytes(frame + b"\n")
            answer = await peer.next()
            assert answer["error"]["code"] in codes, (frame, answer)
            assert set(answer["error"]["data"]) >= {"kind", "hint", "retryable"}
            if number % 100 == 0:
                assert await peer.call("test/echo", value=number) == number


async def test_broken_headers_do_not_end_the_conversation() -> None:
    async with process_client(framing=Framing.HEADERS) as (peer, _):
        assert await peer.call("test/echo", value=0) == 0
        for broken in (b"Content-Length: x\r\n\r\n{}", b"Content-Length: 2\r\n\r\n{]", b"Content-Length: 3\r\n\r\n{}x"):
            await peer.send_bytes(broken)
            assert (await peer.next())["error"]["code"] == -32700
            assert await peer.call("test/echo", value=1) == 1


async def test_a_line_of_sixteen_mebibytes_is_refused_and_the_next_is_answered() -> None:
    async with process_client() as (peer, end):
        before = resident(end.process.pid)
        await peer.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"value":"')
        for _ in range(16):
            await peer.send_bytes(b"x" * 1024 * 1024)
        await peer.send_bytes(b'"}}\n' + request("after", "test/echo", value=1))
        assert (await peer.next())["error"]["code"] == -32600
        assert (await peer.answer("after"))["result"] == 1
        assert resident(end.process.pid) - before < 3 * FRAME_LIMIT


async def test_a_body_of_sixteen_mebibytes_is_refused_and_the_next_is_answered() -> None:
    async with process_client(framing=Framing.HEADERS) as (peer, _):
        await peer.send_bytes(b"Content-Length: %d\r\n\r\n" % (16 * 1024 * 1024))
        for _ in range(16):
            await peer.send_bytes(b"x" * 1024 * 1024)
        assert (await peer.next())["error"]["code"] == -32600
        assert await peer.call("test/echo", value=1) == 1


# --- the wire belongs to the protocol ------------------------------------------------------------------------


async def test_stray_prints_raw_writes_and_children_reach_stderr_only() -> None:
    async with process_client() as (peer, end):
        numbers = [await peer.request("test/noisy") for _ in range(5)]
        for number in numbers:
            assert (await peer.answer(number))["result"] == "quiet"
        await peer.end.end()
        assert await peer.remaining_messages() == []
        said = await end.stderr()
        for stray in ("stray print", "stray write", "stray child, read 0"):
            assert said.count(stray) == 5


async def test_the_log_of_a_defect_names_the_place_and_not_the_content() -> None:
    async with process_client() as (peer, end):
        assert (await peer.error("test/crash"))["code"] == -32603
        await peer.end.end()
        said = await end.stderr()
        assert "echo_server.py" in said
        assert "13812345678" not in said


# --- a client that does not read ------------------------------------------------------------------------------


async def test_a_client_that_does_not_read_cannot_make_us_grow() -> None:
    async with process_client() as (peer, end):
        assert await peer.call("test/echo", value=0) == 0
        assert end.process.stdin is not None
        before = resident(end.process.pid)
        sent = 0
        while sent < 20_000:  # would be 600 MB of answers
            block = b"".join(request(f"n{n}", "test/large", size=30_000) for n in range(sent, sent + 100))
            end.process.stdin.write(block)
            sent += 100
            try:
                async with asyncio.timeout(0.5):
                    await end.process.stdin.drain()
            except TimeoutError:
                break
        assert sent < 20_000, "the sidecar read everything although nobody took its answers"
        assert resident(end.process.pid) - before < 8 * HIGH_WATER
        for number in (0, sent - 101, sent - 1):
            assert len((await peer.answer(f"n{number}"))["result"]) == 10_000


def test_a_client_that_does_not_read_cannot_stop_our_loop() -> None:
    with subprocess.Popen(
        [sys.executable, *ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as sidecar:
        assert sidecar.stdin is not None
        assert sidecar.stderr is not None
        sidecar.stdin.write(request(1, "test/large", size=3_000_000))
        sidecar.stdin.close()
        assert sidecar.stderr.read().endswith(b"closed\n")  # it ended by itself, the guard did not kill it
        assert sidecar.wait(PATIENCE) == 0


# --- leaving -----------------------------------------------------------------------------------------------------


def told(command: list[str], data: bytes) -> tuple[int, list[Any]]:
    """Exit code and answers of a process that is given this input and no more; it must leave by itself."""
    done = subprocess.run(command, input=data, capture_output=True, cwd=ROOT, timeout=PATIENCE, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_everything_asked_before_the_end_of_input_is_answered_while_the_application_still_opens() -> None:
    data = b"".join(request(n, "test/echo", value=n) for n in range(10))
    code, answers = told([sys.executable, *ECHO, "--open-seconds", "0.3"], data)
    assert code == 0
    assert [answer["result"] for answer in answers] == list(range(10))


def test_an_application_that_cannot_open_tells_every_caller_and_ends_with_one() -> None:
    code, answers = told([sys.executable, *ECHO, "--fail-to-open"], request(1, "test/echo"))
    assert code == 1
    assert [answer["error"]["data"]["kind"] for answer in answers] == ["storage_full"]


def test_an_opening_without_a_waiting_call_is_abandoned() -> None:
    code, answers = told([sys.executable, *ECHO, "--open-seconds", "60"], request(1, "test/echo"))
    assert code == 0
    assert answers[0]["error"]["data"]["kind"] == "shutting_down"


def test_no_input_at_all_is_a_normal_end(tmp_path: Path) -> None:
    assert told([sys.executable, *ECHO], b"")[0] == 0
    for redirect in ("< /dev/null", "<&-", f"< {os.devnull} 2>&-"):
        command = ["sh", "-c", f"exec {sys.executable} {' '.join(ECHO)} {redirect} > {tmp_path / 'out'}"]
        assert told(command, b"")[0] == 0
        assert (tmp_path / "out").read_bytes() == b""


@posix_only
def test_regular_files_work_as_input_and_output(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"".join(request(n, "test/echo", value="x" * 50_000) for n in range(50)))
    command = f"exec {sys.executable} {' '.join(ECHO)} < {tmp_path / 'in'} > {tmp_path / 'out'}"
    assert told(["sh", "-c", command], b"")[0] == 0
    answers = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    assert [answer["id"] for answer in answers] == list(range(50))


@posix_only
def test_output_and_errors_in_one_pipe_still_work() -> None:
    command = f"exec {sys.executable} {' '.join(ECHO)} 2>&1"
    done = subprocess.run(
        ["sh", "-c", command], input=request(1, "test/large", size=900_000), capture_output=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0
    assert len(json.loads(done.stdout.splitlines()[0])["result"]) == 300_000


def test_a_hang_up_does_not_cut_short_what_was_sent_before_and_still_moves() -> None:
    data = b"".join(request(n, "test/slow", seconds=0.15, label=str(n)) for n in range(2000))
    code, answers = told([sys.executable, *ECHO], data)  # 64 at a time: the hang-up comes seconds before its turn
    assert code == 0
    assert sorted(int(answer["result"]) for answer in answers) == list(range(2000))


async def test_a_client_that_is_gone_is_a_normal_end() -> None:
    async with process_client() as (peer, end):
        assert await peer.call("test/echo", value=1) == 1
        transport = end.process._transport  # type: ignore[attr-defined]
        transport.get_pipe_transport(1).close()
        await peer.request("test/large", size=1_000_000)
        assert await end.wait_closed() == 0
        assert "Traceback" not in await end.stderr()


async def test_it_leaves_also_with_a_call_that_never_ends() -> None:
    async with process_client() as (peer, end):
        await peer.request("test/held")
        await peer.wait_for_notification("test/held")
        await peer.end.end()
        assert await end.wait_closed() == 0
        assert "closed" in await end.stderr()


async def test_the_end_of_input_ends_even_a_process_whose_loop_is_stuck() -> None:
    async with process_client() as (peer, end):
        await peer.call("test/echo")
        await peer.request("test/block", seconds=60)
        await peer.end.end()
        await end.wait_closed()


def test_a_client_that_closed_its_end_and_does_not_read_does_not_keep_us() -> None:
    with subprocess.Popen(
        [sys.executable, *ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
    ) as sidecar:
        assert sidecar.stdin is not None
        sidecar.stdin.write(b"".join(request(n, "test/large", size=300_000) for n in range(1200)))
        sidecar.stdin.close()
        assert sidecar.wait(PATIENCE) == 0


@posix_only
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_finishes_what_was_accepted_and_leaves_with_zero(number: signal.Signals) -> None:
    async with process_client() as (peer, end):
        await peer.call("test/echo")
        slow = await peer.request("test/slow", seconds=0.3, label="kept")
        await peer.call("test/echo")
        end.process.send_signal(number)
        assert (await peer.answer(slow))["result"] == "kept"
        assert await end.wait_closed() == 0


@posix_only
async def test_a_signal_ends_even_a_process_whose_loop_is_stuck() -> None:
    async with process_client() as (peer, end):
        await peer.call("test/echo")
        await peer.request("test/block", seconds=60)
        end.process.send_signal(signal.SIGTERM)
        await end.wait_closed()


PARENT = """
import subprocess, sys, time
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(3,))
child.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"test/echo"}\\n'); child.stdin.flush()
child.stdout.readline()
if BUSY:
    child.stdin.write(b'{"jsonrpc":"2.0","id":2,"method":"test/block","params":{"seconds":60}}\\n'); child.stdin.flush()
print("ready", flush=True)
time.sleep(60)
"""


@posix_only
@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("leaked", [False, True])
async def test_the_death_of_the_parent_is_noticed(busy: bool, leaked: bool, tmp_path: Path) -> None:
    """`leaked`: another process keeps our input open, so that its end never comes."""
    fifo = tmp_path / "input"
    os.mkfifo(fifo)
    keeper = os.open(fifo, os.O_RDWR)
    program = PARENT.replace("BUSY", str(busy)).replace("pass_fds=(3,)", "close_fds=True")
    if leaked:
        program = program.replace("stdin=subprocess.PIPE", f"stdin=(wire := open({str(fifo)!r}, 'r+b', 0))")
        program = program.replace("child.stdin", "wire")
    pipe = asyncio.subprocess.PIPE
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, sys.executable, *ECHO, stdout=pipe, stderr=pipe, cwd=ROOT
    )
    try:
        assert parent.stdout is not None
        assert parent.stderr is not None
        async with asyncio.timeout(PATIENCE):
            assert await parent.stdout.readline() == b"ready\n"
            parent.kill()
            await parent.stderr.read()  # ends when the last holder of the pipe, the sidecar, is gone
        await parent.wait()
    finally:
        os.close(keeper)


async def test_the_parent_named_by_initialize_is_watched_too() -> None:
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
    async with process_client() as (peer, end):
        await peer.call("initialize", parentPid=other.pid)
        assert await peer.call("test/echo", value=1) == 1
        other.kill()
        await other.wait()
        assert await end.wait_closed() == 0


async def test_a_parent_that_is_not_visible_is_not_watched() -> None:
    async with process_client() as (peer, _):
        for pid in (-1, 0, 2**22 + 1):
            await peer.call("initialize", parentPid=pid)
        assert await peer.call("test/slow", seconds=1.2, label="alive") == "alive"
