"""Frames against the real bridge: `frames` in this process, where 20,000 are cheap, `process` on real pipes."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from bridge.methods.door import Door, OpenDoor
from bridge.methods.registry import TABLE
from bridge.methods.table import Notify
from bridge.rpc.direct import DirectWire
from bridge.rpc.dispatch import Dispatcher, attend
from bridge.rpc.frames import Frames, Framing, encode_frame
from bridge.rpc.guard import Parent
from sync.app import Role, open_app
from sync.clock import SystemClock
from sync.cloud.memory import MemoryCloud, MemoryServer
from sync.sections import DailySettings
from sync.settings import Settings
from tests.contract.rpc_peers import End, ProcessEnd
from tests.hostile.calls import PERSON, frame
from tests.hostile.campaign import Campaign, Cases
from tests.hostile.verdict import Verdict, verdict
from tests.sidecar import COMMAND, REPOSITORY, Home

PATIENCE: Final = 30.0  # seconds; a bound for a broken program, not a time anybody expects
SHOWN: Final = 600  # bytes of a frame that was not withstood
MOST_ANSWER: Final = 64 * 1024 * 1024


class Line:
    """One connection: sends a frame as it is, and judges what comes back."""

    def __init__(self, end: End, framing: Framing) -> None:
        self._end = end
        self._framing = framing
        self._frames = Frames(MOST_ANSWER)
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
        told = {"jsonrpc": "2.0", "id": name, "method": method, "params": params}
        await self._end.send(encode_frame(msgspec.json.encode(told), self._framing))
        answer: dict[str, Any] = msgspec.json.decode(await self._answer())
        assert answer["id"] == name, f"nobody asked for {answer}"
        return answer

    async def attack(self, attacking: bytes, chance: random.Random) -> None:
        """Send in pieces; exactly the right answers come, and the next call is answered."""
        wanted = verdict(attacking)
        try:
            for piece in pieces(encode_frame(attacking, self._framing), chance):
                await self._end.send(piece)
            if wanted.answers:
                _judge(msgspec.json.decode(await self._answer()), wanted)
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


def _judge(answer: Any, wanted: Verdict) -> None:
    answers = answer if isinstance(answer, list) else [answer]
    assert isinstance(answer, list) == wanted.batch
    assert len(answers) == wanted.answers
    for one in answers:
        assert one["jsonrpc"] == "2.0"
        assert set(one) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
        if "error" in one:
            error = one["error"]
            assert error["code"] in wanted.codes, error
            assert error["message"]
            assert {"kind", "hint", "retryable"} <= set(error["data"])
            assert error["data"]["hint"]
            assert "Traceback" not in error["message"]
        else:
            assert wanted.may_succeed, one


class _Direct:
    """The dispatcher in this process, on the real table and a real application."""

    def __init__(self, wire: DirectWire, serving: "asyncio.Task[None]") -> None:
        self._wire = wire
        self._serving = serving

    async def send(self, data: bytes) -> None:
        self._wire.send(data)

    async def chunk(self) -> bytes:
        while not (data := self._wire.take()):
            if self._serving.done():
                return b""
            news = asyncio.ensure_future(self._wire.news())
            await asyncio.wait({news, self._serving}, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
        return data

    async def end(self) -> None:
        self._wire.end()

    async def left(self) -> int:
        await self._serving
        return 0


def one_person() -> MemoryServer:
    """A cloud that knows one person."""
    server = MemoryServer(SystemClock())
    server.add_user(PERSON["email"], PERSON["password"])
    return server


def _look_at(pid: int) -> None:
    """What the program does with a parent's number first."""
    Parent(pid).gone()


@asynccontextmanager
async def in_memory(
    folder: Path, *, server: MemoryServer | None = None, device: str | None = None
) -> AsyncIterator[Line]:
    """A sidecar with an account on the twin of the cloud, logged in. `server`: one that several devices share."""
    server = server or one_person()
    settings = Settings(
        data_dir=folder / "data",
        memory_file=folder / "memory.md",
        token_store="file",
        device_id=device,
        daily=DailySettings(home=folder / "home"),
    )

    @asynccontextmanager
    async def opening(_: Notify) -> AsyncIterator[Door]:
        async with open_app(settings, Role.SIDECAR, cloud=MemoryCloud(server)) as app:
            yield OpenDoor(app)

    wire = DirectWire()
    dispatcher = Dispatcher(TABLE, wire, watch_parent=_look_at)
    serving = asyncio.create_task(attend(dispatcher, opening))
    end = _Direct(wire, serving)
    line = Line(end, Framing.LINES)
    try:
        await line.ask("auth/password", **PERSON)
        yield line
    finally:
        await end.end()
        await asyncio.wait({serving})


async def attack_dispatcher(cases: Cases, folder: Path) -> None:
    async with in_memory(folder) as line:
        for case in cases:
            await line.attack(frame(case.chance), case.chance)
        await line.ask("auth/password", **PERSON)
        await line.ask("sync/now")
        refused = await line.ask("sync/quarantine")
        assert not refused["events"], "what was accepted here is refused by the server"


async def attack_process(cases: Cases, folder: Path) -> None:
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
            end = ProcessEnd(served)
            line = Line(end, framing)
            await line.ask("sync/status")
            for case in itertools.chain(held, itertools.islice(waiting, 999)):
                await line.attack(frame(case.chance), case.chance)
            assert await line.ask("shutdown") is None
            assert await end.left() == 0
        assert "Traceback" not in (home.folder / "stderr.log").read_text("utf-8")


FRAMES: Final = Campaign("frames", 20_000, 400, attack_dispatcher)
PROCESS: Final = Campaign("process", 2_000, 40, attack_process)
