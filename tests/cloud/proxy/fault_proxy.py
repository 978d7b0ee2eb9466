"""A network of its own moods between a client and any TCP server: cut, slow, silent, forgetful, or somebody else's.

    async with FaultProxy("127.0.0.1", 54321) as proxy:
        ...                     # clients talk to proxy.url
        await proxy.cut()
        await proxy.restore()

It looks at bytes, not at messages (TLS passes as well), except where it answers by itself.
"""

import asyncio
from dataclasses import dataclass

from tests.cloud.http_server import CHUNK, LoopbackPort, Request, Response, SubServer, http_handler, reset


@dataclass(frozen=True)
class FaultMode:
    """How the network is just now; a new mood is a new value, so a connection can tell that it changed."""

    delay: float = 0.0
    silent: bool = False
    answer: Response | None = None


class AnswerLostError(Exception):
    """An answer came for a request whose answers are to be lost."""


class FaultProxy(SubServer):
    """Every method takes effect before it returns: what it says holds for the next byte of every connection."""

    def __init__(self, target_host: str, target_port: int) -> None:
        self._target = (target_host, target_port)
        self._door = LoopbackPort(self._serve)
        self._answering = http_handler(self._fixed_response)
        self._mood = FaultMode()
        self._to_drop = 0
        self._to_drop_matching = b""
        self.requests_answered = 0  # by the canned answer
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
        """A good network again. A connection that was lied to is reset: bytes are missing in it."""
        before, self._mood = self._mood, FaultMode()
        self._to_drop = 0
        if before.silent or before.answer:
            await self._door.disconnect_clients()
        await self._door.open()

    async def delay(self, seconds: float) -> None:
        """Hold back each piece of data by so much, in both directions."""
        self._mood = FaultMode(delay=seconds)

    async def half_open(self) -> None:
        """Accept everything and never say a word: the other end of a cable that was pulled."""
        self._mood = FaultMode(silent=True)

    async def drop_response_after_request(self, n: int = 1, *, matching: str = "") -> None:
        """Let the next `n` requests reach the server, and lose its answers: committed, but the ack is lost.

        `matching`: only requests whose first bytes (method, path, headers) hold this text count.
        """
        self._to_drop, self._to_drop_matching = n, matching.encode()

    async def respond_with(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        """Answer every request like this, without asking the server: a captive portal, a 429, a 503."""
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
        """A server that begins to answer has committed, so its first byte is proof enough."""
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
