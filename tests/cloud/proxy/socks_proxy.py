"""A minimal SOCKS5 proxy (RFC 1928) without a password, which records the ports of its connections."""

import asyncio

from tests.cloud.http_server import CHUNK, LoopbackPort, SubServer

NO_PASSWORD = b"\x05\x00"
CONNECTED = b"\x05\x00\x00\x01" + bytes(6)  # the address is not used
BY_NAME = 3
ADDRESS_BYTES = {1: 4, 4: 16}


class SocksProxy(SubServer):
    def __init__(self) -> None:
        self._door = LoopbackPort(self._serve)
        self.asked_for: list[int] = []  # the port of each connection

    @property
    def address(self) -> str:
        return self._door.url.removeprefix("http://")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, methods = await reader.readexactly(2)
        await reader.readexactly(methods)
        writer.write(NO_PASSWORD)
        _, _, _, kind = await reader.readexactly(4)
        host = await reader.readexactly(ADDRESS_BYTES.get(kind) or (await reader.readexactly(1))[0])
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked_for.append(port)
        name = host.decode() if kind == BY_NAME else ".".join(map(str, host))
        upstream_reader, upstream_writer = await asyncio.open_connection(name, port)
        writer.write(CONNECTED)
        async with asyncio.TaskGroup() as directions:
            directions.create_task(_carry(reader, upstream_writer))
            directions.create_task(_carry(upstream_reader, writer))


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(CHUNK):
        sink.write(piece)
        await sink.drain()
    sink.close()
