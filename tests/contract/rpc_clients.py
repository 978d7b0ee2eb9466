"""A client's end of the bridge, once in memory and once as a real process: one suite runs on both."""

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from bridge.rpc.dispatcher import Dispatcher, serve_connection
from bridge.rpc.framing import FrameDecoder, Framing, encode_frame
from tests.in_memory_transport import InMemoryTransport
from tests.integration.bridge.rpc.echo_server import TABLE, open_echo

PATIENCE = 60.0  # seconds until a wait is a failure; nothing here takes a tenth of it
ECHO = ["-m", "tests.integration.bridge.rpc.echo_server"]
ROOT = Path(__file__).parents[2]


class RpcEndpoint(Protocol):
    """Bytes to and from a sidecar."""

    async def send(self, data: bytes) -> None: ...
    async def chunk(self) -> bytes:
        """What it said, b"" after its last byte."""
        ...

    async def end(self) -> None: ...
    async def wait_closed(self) -> int: ...


class RpcClient:
    """Speaks JSON-RPC over an `End`. What is not asked for yet is kept."""

    def __init__(self, end: RpcEndpoint, framing: Framing = Framing.LINES) -> None:
        self.end = end
        self.framing = framing
        self.kept: list[Any] = []
        self._frames = FrameDecoder(64 * 1024 * 1024)
        self._numbers = itertools.count(1)

    async def send(self, message: object) -> None:
        await self.send_bytes(encode_frame(msgspec.json.encode(message), self.framing))

    async def send_bytes(self, data: bytes) -> None:
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
                await self._read_more()

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
                await self._read_more()
            return self.kept.pop(0)

    async def wait_for_notification(self, method: str) -> Any:
        """The params of the next notification of this name."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for message in self.kept:
                    if isinstance(message, dict) and message.get("method") == method:
                        self.kept.remove(message)
                        return message.get("params")
                await self._read_more()

    async def remaining_messages(self) -> list[Any]:
        """Everything until the sidecar has closed its end."""
        async with asyncio.timeout(PATIENCE):
            while chunk := await self.end.chunk():
                self._feed(chunk)
            everything, self.kept = self.kept, []
            return everything

    async def _read_more(self) -> None:
        chunk = await self.end.chunk()
        if not chunk:
            raise EOFError(f"the sidecar has left; kept: {self.kept!r:.500}")
        self._feed(chunk)

    def _feed(self, chunk: bytes) -> None:
        for frame in self._frames.feed(chunk):
            assert isinstance(frame, bytes), f"not protocol: {frame}"
            self.kept.append(msgspec.json.decode(frame))


class MemoryEndpoint:
    """The sidecar in this process."""

    def __init__(self) -> None:
        self.wire = InMemoryTransport()
        dispatcher = Dispatcher(TABLE, self.wire)
        self.serving = asyncio.create_task(serve_connection(dispatcher, open_echo))

    async def send(self, data: bytes) -> None:
        self.wire.send(data)

    async def chunk(self) -> bytes:
        while not (data := self.wire.read_output()):
            if self.serving.done():
                return self.wire.read_output()
            news = asyncio.ensure_future(self.wire.wait_for_output())
            await asyncio.wait({news, self.serving}, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
        return data

    async def end(self) -> None:
        self.wire.close_input()

    async def wait_closed(self) -> int:
        async with asyncio.timeout(PATIENCE):
            await self.serving
        return 0


class ProcessEndpoint:
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

    async def wait_closed(self) -> int:
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    async def stderr(self) -> str:
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            return (await self.process.stderr.read()).decode()


@asynccontextmanager
async def process_client(
    *arguments: str, framing: Framing = Framing.LINES
) -> AsyncIterator[tuple[RpcClient, ProcessEndpoint]]:
    """The echo sidecar as a process; ended by force if the test leaves it running."""
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, *ECHO, *arguments]
    started = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT)
    end = ProcessEndpoint(started)
    try:
        yield RpcClient(end, framing), end
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


@asynccontextmanager
async def memory_client(framing: Framing = Framing.LINES) -> AsyncIterator[RpcClient]:
    """The echo sidecar in memory."""
    end = MemoryEndpoint()
    try:
        yield RpcClient(end, framing)
    finally:
        await end.end()
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait({end.serving})
