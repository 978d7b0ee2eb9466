"""A transport in memory and a client for it: the whole bridge without a process.

The contract suite runs on it and on real pipes, and keeps the two alike.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import msgspec

from bridge.api.method_table import MethodTable, Notify
from bridge.rpc.dispatcher import Dispatcher, serve_connection
from bridge.rpc.transport import TransportHandler

App = TypeVar("App")


class InMemoryTransport:
    """A `Wire` whose two ends live in one process."""

    def __init__(self) -> None:
        self._handler: TransportHandler | None = None
        self._input_chunks: list[bytes] = []
        self._input_closed = False
        self._reading = True
        self._stalled = False
        self._output = bytearray()
        self._output_changed = asyncio.Event()

    # --- the sidecar's side -----------------------------------------------------------------------------------

    @property
    def unwritten(self) -> int:
        return len(self._output) if self._stalled else 0

    def start(self, handler: TransportHandler) -> None:
        self._handler = handler
        self._deliver()

    def set_reading(self, *, enabled: bool) -> None:
        self._reading = enabled
        if enabled:
            asyncio.get_running_loop().call_soon(self._deliver)

    def write(self, data: bytes) -> None:
        self._output += data
        self._output_changed.set()

    async def flush(self) -> None:
        while self.unwritten:
            self._output_changed.clear()
            await self._output_changed.wait()

    def close(self) -> None:
        self._handler = None
        self._output_changed.set()

    # --- the client's side ------------------------------------------------------------------------------------

    @property
    def unread_input(self) -> int:
        """Bytes the sidecar has not read because it wants the client to wait."""
        return sum(map(len, self._input_chunks))

    def send(self, data: bytes) -> None:
        self._input_chunks.append(data)
        self._deliver()

    def close_input(self) -> None:
        self._input_closed = True
        self._deliver()

    def set_stalled(self, *, stalled: bool) -> None:
        """Stop or go on reading."""
        self._stalled = stalled
        self._output_changed.set()
        if not stalled and self._handler is not None:
            self._handler.resume_writing()

    def read_output(self) -> bytes:
        """What the sidecar has said so far."""
        if self._stalled:
            return b""
        data = bytes(self._output)
        self._output.clear()
        return data

    async def wait_for_output(self) -> None:
        """Wait until there may be something to take."""
        self._output_changed.clear()
        if not self._output or self._stalled:
            await self._output_changed.wait()

    def _deliver(self) -> None:
        while self._handler is not None and self._reading and self._input_chunks:
            self._handler.data_received(self._input_chunks.pop(0))
        if self._handler is not None and self._input_closed and not self._input_chunks:
            self._input_closed = False
            self._handler.eof_received()


class RpcCallError(Exception):
    """The answer was an error; `error` is its `error` member."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error


class InMemoryClient:
    """A JSON-RPC client over an `InMemoryTransport`. `notifications` holds each (method, params) it received."""

    def __init__(self, transport: InMemoryTransport) -> None:
        self._transport = transport
        self._request_ids = itertools.count(1)
        self._pending: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.notifications: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    async def call(self, method: str, params: object = None) -> Any:
        """The result of one call; DirectError if the answer is an error."""
        number = next(self._request_ids)
        answer = self._pending[number] = asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        message = await answer
        if "error" in message:
            raise RpcCallError(message["error"])
        return message["result"]

    def notify(self, method: str, params: object = None) -> None:
        """A call whose outcome is ignored."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def _send(self, message: dict[str, object]) -> None:
        self._transport.send(msgspec.json.encode(message) + b"\n")

    async def dispatch_messages(self) -> None:
        """Hand out what the sidecar says, until cancelled."""
        while True:
            await self._transport.wait_for_output()
            for line in self._transport.read_output().splitlines():
                message = msgspec.json.decode(line)
                if "id" in message:
                    self._pending.pop(message["id"]).set_result(message)
                else:
                    self.notifications.put_nowait((message["method"], message.get("params")))


@asynccontextmanager
async def connect_in_memory(
    table: MethodTable[App], open_app: Callable[[Notify], AbstractAsyncContextManager[App]]
) -> AsyncIterator[InMemoryClient]:
    """A sidecar in memory and a client that talks to it. Leaving the block closes the client's end and waits."""
    wire = InMemoryTransport()
    client = InMemoryClient(wire)
    serving = asyncio.create_task(serve_connection(Dispatcher(table, wire), open_app))
    listening = asyncio.create_task(client.dispatch_messages())
    try:
        yield client
    finally:
        wire.close_input()
        await serving
        listening.cancel()
