"""The wire's twin in memory, and a client for it: the whole bridge without a process.

It ships with the package because it is more than a test double: a test of any method is quicker through it, and the
contract suite that runs on it and on the real pipes keeps the two alike. `DirectClient.stalled` plays a client that
does not read.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import msgspec

from bridge.methods.table import Notify, Table
from bridge.rpc.dispatch import Dispatcher, attend
from bridge.rpc.wire import Receiver

App = TypeVar("App")


class DirectWire:
    """A `Wire` whose two ends live in one process."""

    def __init__(self) -> None:
        self._receiver: Receiver | None = None
        self._inbox: list[bytes] = []
        self._ended = False
        self._wanted = True
        self._stalled = False
        self._unread = bytearray()
        self._news = asyncio.Event()

    # --- the sidecar's side -----------------------------------------------------------------------------------

    @property
    def unwritten(self) -> int:
        return len(self._unread) if self._stalled else 0

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._deliver()

    def read_on(self, *, wanted: bool) -> None:
        self._wanted = wanted
        if wanted:
            asyncio.get_running_loop().call_soon(self._deliver)

    def write(self, data: bytes) -> None:
        self._unread += data
        self._news.set()

    async def flush(self) -> None:
        while self.unwritten:
            self._news.clear()
            await self._news.wait()

    def close(self) -> None:
        self._receiver = None
        self._news.set()

    # --- the client's side ------------------------------------------------------------------------------------

    @property
    def unsent(self) -> int:
        """Bytes the sidecar has not read because it wants the client to wait."""
        return sum(map(len, self._inbox))

    def send(self, data: bytes) -> None:
        self._inbox.append(data)
        self._deliver()

    def end(self) -> None:
        self._ended = True
        self._deliver()

    def stall(self, *, stalled: bool) -> None:
        """Stop or go on reading."""
        self._stalled = stalled
        self._news.set()
        if not stalled and self._receiver is not None:
            self._receiver.room()

    def take(self) -> bytes:
        """What the sidecar has said so far."""
        if self._stalled:
            return b""
        data = bytes(self._unread)
        self._unread.clear()
        return data

    async def news(self) -> None:
        """Wait until there may be something to take."""
        self._news.clear()
        if not self._unread or self._stalled:
            await self._news.wait()

    def _deliver(self) -> None:
        while self._receiver is not None and self._wanted and self._inbox:
            self._receiver.received(self._inbox.pop(0))
        if self._receiver is not None and self._ended and not self._inbox:
            self._ended = False
            self._receiver.ended()


class DirectError(Exception):
    """The answer was an error; `error` is its `error` member."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error


class DirectClient:
    """Calls by name over a `DirectWire`, as many at once as wanted. `notifications` holds (method, params) as told."""

    def __init__(self, wire: DirectWire) -> None:
        self._wire = wire
        self._numbers = itertools.count(1)
        self._pending: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.notifications: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    async def call(self, method: str, params: object = None) -> Any:
        """The result of one call; DirectError if the answer is an error."""
        number = next(self._numbers)
        answer = self._pending[number] = asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        message = await answer
        if "error" in message:
            raise DirectError(message["error"])
        return message["result"]

    def notify(self, method: str, params: object = None) -> None:
        """A call whose outcome nobody wants to know."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def _send(self, message: dict[str, object]) -> None:
        self._wire.send(msgspec.json.encode(message) + b"\n")

    async def listen(self) -> None:
        """Hand out what the sidecar says, until cancelled."""
        while True:
            await self._wire.news()
            for line in self._wire.take().splitlines():
                message = msgspec.json.decode(line)
                if "id" in message:
                    self._pending.pop(message["id"]).set_result(message)
                else:
                    self.notifications.put_nowait((message["method"], message.get("params")))


@asynccontextmanager
async def connection(
    table: Table[App], open_app: Callable[[Notify], AbstractAsyncContextManager[App]]
) -> AsyncIterator[DirectClient]:
    """A sidecar in memory and a client that talks to it. Leaving the block closes the client's end and waits."""
    wire = DirectWire()
    client = DirectClient(wire)
    serving = asyncio.create_task(attend(Dispatcher(table, wire), open_app))
    listening = asyncio.create_task(client.listen())
    try:
        yield client
    finally:
        wire.end()
        await serving
        listening.cancel()
