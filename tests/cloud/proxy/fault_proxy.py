"""A TCP proxy with network faults: cut, slow, silent, losing answers, or with an answer of its own.

    async with FaultProxy("127.0.0.1", 54321) as proxy:
        ...                     # clients talk to proxy.url
        await proxy.cut()
        await proxy.restore()

It forwards bytes, TLS included; it parses messages only for answers of its own.
"""

import asyncio
from dataclasses import dataclass

from tests.cloud.http_server import CHUNK, LoopbackPort, Request, Response, SubServer, http_handler, reset


@dataclass(frozen=True)
class FaultMode:
    """The current fault. Each change is a new object, so that connections notice it."""

    delay: float = 0.0
    silent: bool = False
    answer: Response | None = None


class AnswerLostError(Exception):
    """An answer arrived that is to be lost."""


class FaultProxy(SubServer):
    """Every method takes effect before it returns, for the next byte of every connection."""

    def __init__(self, target_host: str, target_port: int) -> None:
        self._target = (target_host, target_port)
        self._door = LoopbackPort(self._serve)
        self._answering = http_handler(self._fixed_response)
        self._mood = FaultMode()
        self._to_drop = 0
        self._to_drop_matching = b""
        self.requests_answered = 0  # with the answer of `answer`
        self.answers_dropped = 0

    @property
    def url(self) -> str:
        return self._door.url

    @property
    def port(self) -> int:
        return self._door.port

    async def disconnect(self) -> None:
        """Reset every connection and refuse new ones."""
        await self._door.stop_accepting()

    async def reconnect(self) -> None:
        """End all faults. Connections with missing bytes are reset."""
        before, self._mood = self._mood, FaultMode()
        self._to_drop = 0
        if before.silent or before.answer:
            await self._door.disconnect_clients()
        await self._door.open()

    async def delay(self, seconds: float) -> None:
        """Delay all data in both directions."""
        self._mood = FaultMode(delay=seconds)

    async def half_open(self) -> None:
        """Accept everything and never answer, like a server behind a pulled cable."""
        self._mood = FaultMode(silent=True)

    async def drop_response_after_request(self, n: int = 1, *, matching: str = "") -> None:
        """Lose the answers to the next `n` requests, after the server got them.

        `matching`: only requests whose first bytes (method, path, headers) contain this text.
        """
        self._to_drop, self._to_drop_matching = n, matching.encode()

    async def respond_with(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        """Answer every request with this, without the server: a captive portal, a 429, a 503."""
        raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        self._mood = FaultMode(answer=Response(status, raw, body))
        await self._door.disconnect_clients()

    async def _fixed_response(self, _: Request) -> Response:
        self.requests_answered += 1
        return self._mood.answer or Response(502)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mood.answer is not None:
            await self._answering(reader, writer)
            return
        upstream_reader, upstream_writer = await asyncio.open_connection(*self._target)
        losing = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(self._carry_requests(reader, upstream_writer, losing))
                directions.create_task(self._carry_answers(upstream_reader, writer, losing))
        except* (OSError, AnswerLostError):
            reset(writer)
        finally:
            upstream_writer.close()

    async def _carry_requests(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, losing: asyncio.Event
    ) -> None:
        while piece := await source.read(CHUNK):
            if self._to_drop and not losing.is_set() and self._to_drop_matching in piece:
                self._to_drop -= 1
                losing.set()
            await self._carry(piece, sink)
        sink.write_eof()

    async def _carry_answers(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, losing: asyncio.Event
    ) -> None:
        """Stop at the first byte of an answer: the server has committed by then."""
        while piece := await source.read(CHUNK):
            if losing.is_set():
                self.answers_dropped += 1
                raise AnswerLostError
            await self._carry(piece, sink)
        sink.write_eof()

    async def _carry(self, piece: bytes, sink: asyncio.StreamWriter) -> None:
        if self._mood.delay:
            await asyncio.sleep(self._mood.delay)
        if not self._mood.silent:
            sink.write(piece)
            await sink.drain()
