"""A TLS connection to a peer as a stream of messages, with a deadline for every step."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sync.errors import PeerUnreachable
from sync.lan.protocol import frames
from sync.lan.protocol.frames import Message

BUFFER_BYTES: Final = 128 * 1024  # read ahead of a peer; twice as many at most, whoever it is
MAPPED_IPV4: Final = "::ffff:"  # before an IPv4 address of a socket for both versions


def readable_address(name: Sequence[object]) -> str:
    """The address in a socket's name; an IPv4 address in its own form."""
    return str(name[0]).removeprefix(MAPPED_IPV4)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds. `idle`: between two messages, and a peer sends a `Ping` more often; `frame`: for the rest of one.

    `failed`: how long a refused connection keeps a place of its address, so that one machine cannot try all the time.
    """

    handshake: float = 5.0
    hello: float = 5.0
    frame: float = 30.0
    idle: float = 20.0
    ping: float = 5.0
    failed: float = 0.2


class PeerChannel:
    """A connection after its handshake. Errors: TimeoutError, ProtocolError, EOFError, OSError."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, deadlines: Deadlines) -> None:
        self._reader = reader
        self._writer = writer
        self._is_closed = False
        self._last_received = asyncio.get_running_loop().time()
        self.deadlines = deadlines
        tls, name = writer.get_extra_info("ssl_object"), writer.get_extra_info("peername") or ("", 0)
        self.peer_certificate: bytes | None = None if tls is None else tls.getpeercert(binary_form=True)  # in DER
        self.address = (readable_address(name), int(name[1]))
        self.local_address = readable_address(writer.get_extra_info("sockname") or ("",))

    async def send(self, message: Message) -> None:
        await self.send_frame(frames.encode(message))

    async def send_frame(self, frame: bytes) -> None:
        if self._is_closed:
            raise ConnectionResetError("the connection was closed here")
        async with asyncio.timeout(self.deadlines.frame):
            self._writer.write(frame)
            await self._writer.drain()

    @property
    def is_silent(self) -> bool:
        """Whether the peer has missed a `Ping`: it may have moved to another address."""
        return asyncio.get_running_loop().time() - self._last_received > 2 * self.deadlines.ping

    async def receive(self, *, within: float | None = None) -> Message:
        """The next message. Nothing of a frame that is too large is read."""
        return frames.decode(await self.receive_body(within=within))

    async def receive_body(self, *, within: float | None = None, limit: int = frames.MAX_FRAME_BYTES) -> bytes:
        """The body of the next frame, of at most `limit` bytes."""
        async with asyncio.timeout(within or self.deadlines.idle):
            header = await self._reader.readexactly(frames.LENGTH_BYTES)
        async with asyncio.timeout(self.deadlines.frame):
            body = await self._reader.readexactly(frames.body_length(header, limit))
        if self._is_closed:
            raise ConnectionResetError("the connection was closed here")
        self._last_received = asyncio.get_running_loop().time()
        return body

    def close_with(self, message: Message) -> None:
        """Close after a last message, without waiting: a peer that does not read must not hold up its successor."""
        if not self._is_closed:
            self._writer.write(frames.encode(message))
            self.close()

    def close(self) -> None:
        """Close without waiting: a peer that vanished would not answer."""
        if not self._is_closed:
            self._is_closed = True
            self._writer.close()

    def abort(self) -> None:
        self._is_closed = True
        self._writer.transport.abort()


async def accept_tls(connection: socket.socket, context: ssl.SSLContext, deadlines: Deadlines) -> PeerChannel:
    """Do the server's side of the handshake. Raises OSError (an SSLError is one), TimeoutError."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=BUFFER_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    async with asyncio.timeout(deadlines.handshake):
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, connection, ssl=context, ssl_handshake_timeout=deadlines.handshake
        )
    return PeerChannel(reader, asyncio.StreamWriter(transport, protocol, reader, loop), deadlines)


def connection_failure(error: Exception) -> PeerUnreachable:
    """What `connect_tls` failed with, as our error: without an answer, or closed by the device there."""
    if isinstance(error, (ConnectionResetError, ssl.SSLError)):
        hint = "It takes few connections in quick succession: wait a minute and try again."
        return PeerUnreachable("the device at this address ended the connection", hint=hint)
    return PeerUnreachable("no device answers at this address and port")


async def connect_tls(host: str, port: int, context: ssl.SSLContext, deadlines: Deadlines) -> PeerChannel:
    """Connect and do the client's side of the handshake. Raises OSError (an SSLError is one), TimeoutError."""
    async with asyncio.timeout(deadlines.handshake):
        reader, writer = await asyncio.open_connection(
            host,
            port,
            ssl=context,
            server_hostname="",
            ssl_handshake_timeout=deadlines.handshake,
            limit=BUFFER_BYTES,
        )
    return PeerChannel(reader, writer, deadlines)
