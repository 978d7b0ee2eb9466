"""A minimal HTTP server for the gateway and the fault proxy: whole messages over keep-alive connections."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import h11

from tests.cloud.prerequisites import LOOPBACK

CHUNK = 1 << 16
BODY_LIMIT = 1 << 25  # bytes; far above what the product may send, far below what would hurt a test machine
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Request:
    method: str
    target: str  # path and query, as they came
    headers: Headers
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


@dataclass(frozen=True)
class Response:
    status: int
    headers: Headers = field(default_factory=list)
    body: bytes = b""


Handler = Callable[[Request], Awaitable[Response]]
# A request for a websocket, the bytes behind it, and the connection.
Upgrade = Callable[[Request, bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


def reset(writer: asyncio.StreamWriter) -> None:
    """Reset a connection."""
    held = writer.get_extra_info("socket")
    if held is not None:
        with contextlib.suppress(OSError):
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


class SubServer:
    """A handler on a port of its own, open as long as the block lasts."""

    _door: "LoopbackPort"

    async def __aenter__(self) -> Self:
        await self._door.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._door.close()


class LoopbackPort:
    """A loopback port that stays reserved while it is closed; closed, it refuses connections."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._held = _bound(0)
        self.port: int = self._held.getsockname()[1]
        self._server: asyncio.Server | None = None
        self._inside: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    async def open(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, sock=self._held)

    async def stop_accepting(self) -> None:
        """Refuse new connections and reset the open ones."""
        if self._server is not None:
            self._server.close()  # closes the socket too; a bound socket that does not listen also refuses
            self._server = None
            self._held = _bound(self.port)
        await self.disconnect_clients()

    async def disconnect_clients(self) -> None:
        tasks = [task for task in self._inside if task is not asyncio.current_task()]
        for task in tasks:
            reset(self._inside[task])
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        await self.stop_accepting()
        self._held.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._inside[task] = writer
        try:
            await self._serve(reader, writer)
        except (OSError, h11.ProtocolError, asyncio.CancelledError):
            pass  # the client left or sent nonsense, or the port was closed
        finally:
            del self._inside[task]
            writer.close()


def _bound(port: int) -> socket.socket:
    held = socket.socket(
        proto=socket.IPPROTO_TCP
    )  # proto: otherwise asyncio leaves Nagle's algorithm on, 40 ms a request
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((LOOPBACK, port))
    return held


def http_handler(handler: Handler, upgrade: Upgrade | None = None) -> Serve:
    """Answer requests until the client closes, asks to close, or requests a websocket."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER)
        while request := await _request(connection, reader, writer):
            if upgrade is not None and (b"upgrade", b"websocket") in request.headers:
                await upgrade(request, connection.trailing_data[0], reader, writer)
                return
            response = await handler(request)
            head = h11.Response(status_code=response.status, headers=_framed(response))
            body = response.body if request.method != "HEAD" else b""
            events = (head, h11.Data(data=body), h11.EndOfMessage())
            writer.write(b"".join(connection.send(event) or b"" for event in events))
            await writer.drain()
            if connection.our_state is h11.MUST_CLOSE:
                return
            connection.start_next_cycle()

    return serve


def _framed(response: Response) -> Headers:
    """Whole bodies are in memory, so their length is known."""
    headers = [(name, value) for name, value in response.headers if name.lower() not in HOP_BY_HOP]
    if response.status != NO_CONTENT:
        headers.append((b"content-length", str(len(response.body)).encode()))
    return headers


HOP_BY_HOP = {b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"upgrade", b"te", b"trailer"}
NO_CONTENT = 204


async def _request(
    connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Request | None:
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                writer.write(connection.send(go_on) or b"")
            connection.receive_data(await reader.read(CHUNK))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > BODY_LIMIT:
                raise h11.RemoteProtocolError("body too large")
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            return Request(head.method.decode(), head.target.decode(), list(head.headers), bytes(body))
        else:
            return None  # the client has closed
