"""A client's end of the bridge, once in memory and once as a real process: one suite runs on both."""

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from bridge.rpc.direct import DirectWire
from bridge.rpc.dispatch import Dispatcher, attend
from bridge.rpc.frames import Frames, Framing, encode_frame
from tests.integration.rpc_echo import TABLE, open_echo

PATIENCE = 20.0  # seconds until a wait is a failure; nothing here takes a tenth of it
ECHO = ["-m", "tests.integration.rpc_echo"]
ROOT = Path(__file__).parents[2]


class End(Protocol):
    """Bytes to and from a sidecar."""

    async def send(self, data: bytes) -> None: ...
    async def chunk(self) -> bytes:
        """What it said, b"" after its last byte."""
        ...

    async def end(self) -> None: ...
    async def left(self) -> int: ...


class Peer:
    """Speaks JSON-RPC over an `End`. What is not asked for yet is kept."""

    def __init__(self, end: End, framing: Framing = Framing.LINES) -> None:
        self.end = end
        self.framing = framing
        self.kept: list[Any] = []
        self._frames = Frames(64 * 1024 * 1024)
        self._numbers = itertools.count(1)

    async def send(self, message: object) -> None:
        await self.raw(encode_frame(msgspec.json.encode(message), self.framing))

    async def raw(self, data: bytes) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.end.send(data)

    async def request(self, method: str, **params: object) -> int:
        """Ask without waiting; answers the id."""
        number = next(self._numbers)
        await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    async def answer(self, number: object) -> Any:
        """The answer with this id; others stay for later."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for message in self.kept:
                    if isinstance(message, dict) and "method" not in message and message.get("id") == number:
                        self.kept.remove(message)
                        return message
                await self._more()

    async def call(self, method: str, **params: object) -> Any:
        answer = await self.answer(await self.request(method, **params))
        assert "error" not in answer, answer
        return answer["result"]

    async def error(self, method: str, **params: object) -> Any:
        return (await self.answer(await self.request(method, **params)))["error"]

    async def next(self) -> Any:
        """The next message of any kind."""
        async with asyncio.timeout(PATIENCE):
            while not self.kept:
                await self._more()
            return self.kept.pop(0)

    async def told(self, method: str) -> Any:
        """The params of the next notification of this name."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for message in self.kept:
                    if isinstance(message, dict) and message.get("method") == method:
                        self.kept.remove(message)
                        return message.get("params")
                await self._more()

    async def rest(self) -> list[Any]:
        """Everything until the sidecar has closed its end."""
        async with asyncio.timeout(PATIENCE):
            while chunk := await self.end.chunk():
                self._take(chunk)
            everything, self.kept = self.kept, []
            return everything

    async def _more(self) -> None:
        chunk = await self.end.chunk()
        if not chunk:
            raise EOFError(f"the sidecar has left; kept: {self.kept!r:.500}")
        self._take(chunk)

    def _take(self, chunk: bytes) -> None:
        for frame in self._frames.feed(chunk):
            assert isinstance(frame, bytes), f"not protocol: {frame}"
            self.kept.append(msgspec.json.decode(frame))


class DirectEnd:
    """The sidecar in this process."""

    def __init__(self) -> None:
        self.wire = DirectWire()
        dispatcher = Dispatcher(TABLE, self.wire)
        self.serving = asyncio.create_task(attend(dispatcher, open_echo))

    async def send(self, data: bytes) -> None:
        self.wire.send(data)

    async def chunk(self) -> bytes:
        while not (data := self.wire.take()):
            if self.serving.done():
                return self.wire.take()
            news = asyncio.ensure_future(self.wire.news())
            await asyncio.wait({news, self.serving}, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
        return data

    async def end(self) -> None:
        self.wire.end()

    async def left(self) -> int:
        async with asyncio.timeout(PATIENCE):
            await self.serving
        return 0


class ProcessEnd:
    """The sidecar as a process of its own, on real pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        await self.process.stdin.drain()

    async def chunk(self) -> bytes:
        assert self.process.stdout is not None
        return await self.process.stdout.read(1 << 16)

    async def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def left(self) -> int:
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    async def stderr(self) -> str:
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            return (await self.process.stderr.read()).decode()


@asynccontextmanager
async def process(*arguments: str, framing: Framing = Framing.LINES) -> AsyncIterator[tuple[Peer, ProcessEnd]]:
    """The echo sidecar as a process; ended by force if the test leaves it running."""
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, *ECHO, *arguments]
    started = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT)
    end = ProcessEnd(started)
    try:
        yield Peer(end, framing), end
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


@asynccontextmanager
async def direct(framing: Framing = Framing.LINES) -> AsyncIterator[Peer]:
    """The echo sidecar in memory."""
    end = DirectEnd()
    try:
        yield Peer(end, framing)
    finally:
        await end.end()
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait({end.serving})
