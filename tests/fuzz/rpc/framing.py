"""Frames against the real bridge: `frames` in this process, where 20,000 are cheap, `process` on real pipes."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from bridge.api.app_provider import AppProvider, OpenAppProvider
from bridge.api.method_table import Notify
from bridge.methods.registry import METHOD_TABLE
from bridge.rpc.dispatcher import Dispatcher, serve_connection
from bridge.rpc.framing import FrameDecoder, Framing, encode_frame
from bridge.rpc.process_guard import WatchedProcess
from sync.clock import SystemClock
from sync.open_app import AppMode, open_app
from sync.settings.sections import DailySettings
from tests.contract.rpc_clients import ProcessEndpoint, RpcEndpoint
from tests.fake_cloud.server import FakeCloud, FakeServer
from tests.fuzz.campaign import Campaign, FuzzCases
from tests.fuzz.rpc.calls import PERSON, random_frame
from tests.fuzz.rpc.expected_response import ExpectedResponse, expected_response
from tests.in_memory_transport import InMemoryTransport
from tests.sidecar import COMMAND, REPOSITORY, Home
from tests.support import app_settings

PATIENCE: Final = 30.0  # seconds; a bound for a broken program, not a time anybody expects
SHOWN: Final = 600  # bytes shown of a failing frame
MOST_ANSWER: Final = 64 * 1024 * 1024


class CheckedConnection:
    """One connection: sends a frame as it is, and judges what comes back."""

    def __init__(self, end: RpcEndpoint, framing: Framing) -> None:
        self._end = end
        self._framing = framing
        self._frames = FrameDecoder(MOST_ANSWER)
        self._heard: list[bytes] = []
        self._numbers = itertools.count()

    async def ask(self, method: str, **params: object) -> Any:
        """A good call; its result."""
        answer = await self.answer_to(method, **params)
        assert "error" not in answer, answer
        return answer["result"]

    async def answer_to(self, method: str, **params: object) -> dict[str, Any]:
        """One call; its answer, whatever it is."""
        name = f"call {next(self._numbers)}"
        request = {"jsonrpc": "2.0", "id": name, "method": method, "params": params}
        await self._end.send(encode_frame(msgspec.json.encode(request), self._framing))
        answer: dict[str, Any] = msgspec.json.decode(await self._answer())
        assert answer["id"] == name, f"nobody asked for {answer}"
        return answer

    async def attack(self, attacking: bytes, chance: random.Random) -> None:
        """Send in pieces; exactly the right answers come, and the next call is answered."""
        wanted = expected_response(attacking)
        try:
            for piece in pieces(encode_frame(attacking, self._framing), chance):
                await self._end.send(piece)
            if wanted.answers:
                _check_response(msgspec.json.decode(await self._answer()), wanted)
            await self.ask("auth/status")
        except BaseException as error:
            error.add_note(f"the frame: {attacking[:SHOWN]!r}, wanted {wanted.answers} of {sorted(wanted.codes)}")
            raise

    async def _answer(self) -> bytes:
        """The next frame that is no notification."""
        async with asyncio.timeout(PATIENCE):
            while True:
                while self._heard:
                    heard = self._heard.pop(0)
                    if not heard.startswith(b'{"jsonrpc":"2.0","method":'):
                        return heard
                chunk = await self._end.chunk()
                assert chunk, "the sidecar has left"
                for found in self._frames.feed(chunk):
                    assert isinstance(found, bytes), f"not protocol: {found}"
                    self._heard.append(found)


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    """The data cut anywhere, now and then at every byte."""
    if len(data) < 400 and chance.random() < 0.05:
        return [data[at : at + 1] for at in range(len(data))]
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(3)))
    return [data[start:end] for start, end in itertools.pairwise([0, *cuts, len(data)]) if start < end]


def _check_response(answer: Any, expected: ExpectedResponse) -> None:
    answers = answer if isinstance(answer, list) else [answer]
    assert isinstance(answer, list) == expected.batch
    assert len(answers) == expected.answers
    for one in answers:
        assert one["jsonrpc"] == "2.0"
        assert set(one) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
        if "error" in one:
            error = one["error"]
            assert error["code"] in expected.codes, error
            assert error["message"]
            assert {"kind", "hint", "retryable"} <= set(error["data"])
            assert error["data"]["hint"]
            assert "Traceback" not in error["message"]
        else:
            assert expected.may_succeed, one


class _MemoryEndpoint:
    """The dispatcher in this process, on the real table and a real application."""

    def __init__(self, wire: InMemoryTransport, serving: "asyncio.Task[None]") -> None:
        self._wire = wire
        self._serving = serving

    async def send(self, data: bytes) -> None:
        self._wire.send(data)

    async def chunk(self) -> bytes:
        while not (data := self._wire.read_output()):
            if self._serving.done():
                return b""
            news = asyncio.ensure_future(self._wire.wait_for_output())
            await asyncio.wait({news, self._serving}, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
        return data

    async def end(self) -> None:
        self._wire.close_input()

    async def wait_closed(self) -> int:
        await self._serving
        return 0


def cloud_with_one_user() -> FakeServer:
    """A cloud that knows one person."""
    server = FakeServer(SystemClock())
    server.add_user(PERSON["email"], PERSON["password"])
    return server


def _check_parent_pid(pid: int) -> None:
    """What the program does with a parent's number first."""
    WatchedProcess(pid).has_ended()


@asynccontextmanager
async def in_memory(
    folder: Path, *, server: FakeServer | None = None, device: str | None = None
) -> AsyncIterator[CheckedConnection]:
    """A sidecar with an account on the twin of the cloud, logged in. `server`: one that several devices share."""
    server = server or cloud_with_one_user()
    settings = app_settings(folder, device_id=device, daily=DailySettings(home=folder / "home"))

    @asynccontextmanager
    async def opening(_: Notify) -> AsyncIterator[AppProvider]:
        async with open_app(settings, AppMode.SIDECAR, cloud=FakeCloud(server)) as app:
            yield OpenAppProvider(app)

    wire = InMemoryTransport()
    dispatcher = Dispatcher(METHOD_TABLE, wire, watch_parent=_check_parent_pid)
    serving = asyncio.create_task(serve_connection(dispatcher, opening))
    end = _MemoryEndpoint(wire, serving)
    line = CheckedConnection(end, Framing.LINES)
    try:
        await line.ask("auth/password", **PERSON)
        yield line
    finally:
        await end.end()
        await asyncio.wait({serving})


async def attack_dispatcher(cases: FuzzCases, folder: Path) -> None:
    async with in_memory(folder) as line:
        for case in cases:
            await line.attack(random_frame(case.chance), case.chance)
        await line.ask("auth/password", **PERSON)
        await line.ask("sync/now")
        refused = await line.ask("sync/quarantine")
        assert not refused["events"], "what was accepted here is refused by the server"


async def attack_process(cases: FuzzCases, folder: Path) -> None:
    """The real program on real pipes; a new one for each framing and every thousand frames."""
    waiting = iter(cases)
    for framing in itertools.cycle(Framing):
        held = list(itertools.islice(waiting, 1))
        if not held:
            return
        home = Home(folder / f"home-{held[0].number}")
        pipe = asyncio.subprocess.PIPE
        with (home.folder / "stderr.log").open("wb") as said:
            served = await asyncio.create_subprocess_exec(
                *COMMAND, "serve", env=home.environment, cwd=REPOSITORY, stdin=pipe, stdout=pipe, stderr=said
            )
            end = ProcessEndpoint(served)
            line = CheckedConnection(end, framing)
            await line.ask("sync/status")
            for case in itertools.chain(held, itertools.islice(waiting, 999)):
                await line.attack(random_frame(case.chance), case.chance)
            assert await line.ask("shutdown") is None
            assert await end.wait_closed() == 0
        assert "Traceback" not in (home.folder / "stderr.log").read_text("utf-8")


FRAMES: Final = Campaign("frames", 20_000, 200, attack_dispatcher)
PROCESS: Final = Campaign("process", 2_000, 40, attack_process)
