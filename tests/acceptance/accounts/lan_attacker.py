"""What someone on the same network tries against a device that listens.

`python -m tests.acceptance.accounts.lan_attacker HOST PORT KEY_FILE FOLDER`. The key is that of a device which is
trusted: some of it is tried by a hostile device of the account. Each line of stdin names an attack; the answer is an
empty line when it is over.
"""

import asyncio
import os
import secrets
import socket
import ssl
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from zeroconf import IPVersion
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from sync.cloud.auth.device_key import DeviceKey
from sync.lan.discovery.beacon import SERVICE_TYPE
from sync.lan.discovery.browser import own_addresses
from sync.lan.protocol import frames
from sync.lan.protocol.frames import Hello
from sync.lan.transport.certificates import tls_context
from sync.lan.transport.channel import Deadlines, PeerChannel, connect_tls
from sync.lan.transport.tls_contexts import pairing_context
from sync.system.secret_store import FileSecretStore

FAKE_PEERS: Final = 1_000
HELD_FROM_EACH: Final = 4  # connections
GREETING: Final = Hello(frames.PROTOCOL_VERSION, "device-b", "b", "1")
REFUSALS: Final = (OSError, EOFError, TimeoutError, frames.ProtocolError)  # as the attacker sees them
READ_BYTES: Final = 65_536


class Attacker:
    """Attacks one device."""

    def __init__(self, target: tuple[str, int], key_file: Path, folder: Path) -> None:
        self.target = target
        self._key = DeviceKey(lambda: FileSecretStore(key_file), lock=folder / "key.lock")
        self._folder = folder
        self._held: list[socket.socket] = []

    async def no_tls(self) -> None:
        await asyncio.to_thread(self._send_plain, b"GET / HTTP/1.1\r\n\r\n")

    async def no_certificate(self) -> None:
        await self._until_refused(pairing_context())

    async def unknown_key(self) -> None:
        await self._until_refused(self._context(secrets.token_bytes(32)))

    async def old_tls(self) -> None:
        context = self._context(await self._key.private_half())
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
        await self._until_refused(context)

    async def recorded_bytes(self) -> None:
        """A whole connection of a trusted device, sent again."""
        recorded = await self._record(self._context(await self._key.private_half()))
        await asyncio.to_thread(self._send_plain, recorded)

    async def large_frame(self) -> None:
        channel = await self._greeted()
        channel._writer.write((frames.MAX_FRAME_BYTES + 1).to_bytes(frames.LENGTH_BYTES, "big") + b"x" * 100)
        await _drop(channel)

    async def half_open(self) -> None:
        """Greet, and say nothing more."""
        await _drop(await self._greeted())

    async def hold_places(self) -> None:
        """Open connections from all addresses of this station, and others in their place, for as long as it runs."""
        threading.Thread(target=self._hold, daemon=True).start()

    async def flood(self) -> None:
        """Announce a thousand devices by multicast."""
        announcing = AsyncZeroconf(interfaces=[own_addresses("")[0]], ip_version=IPVersion.V4Only)
        fakes = [_fake_peer(number) for number in range(FAKE_PEERS)]
        await asyncio.gather(*(announcing.async_register_service(one, cooperating_responders=True) for one in fakes))

    def _context(self, seed: bytes) -> ssl.SSLContext:
        context = tls_context(seed, [], self._folder, server=False)
        context.verify_mode = ssl.CERT_NONE
        return context

    async def _until_refused(self, context: ssl.SSLContext) -> None:
        await _drop(await connect_tls(*self.target, context, Deadlines()))

    async def _greeted(self) -> PeerChannel:
        channel = await connect_tls(*self.target, self._context(await self._key.private_half()), Deadlines(idle=60.0))
        await channel.send(GREETING)
        return channel

    def _send_plain(self, data: bytes) -> None:
        with socket.create_connection(self.target) as connection, suppress(OSError):
            connection.sendall(data)
            while connection.recv(READ_BYTES):
                pass

    async def _record(self, context: ssl.SSLContext) -> bytes:
        """What a connection sends, from its first byte to the greeting."""
        coming, going, recorded = ssl.MemoryBIO(), ssl.MemoryBIO(), b""
        tls = context.wrap_bio(coming, going)
        reader, writer = await asyncio.open_connection(*self.target)

        async def through(step: Callable[[], object]) -> None:
            nonlocal recorded
            while True:
                try:
                    step()
                except ssl.SSLWantReadError:
                    is_over = False
                else:
                    is_over = True
                recorded += (sent := going.read())
                writer.write(sent)
                if is_over:
                    return
                coming.write(await reader.read(READ_BYTES))

        await through(tls.do_handshake)
        await through(lambda: tls.write(frames.encode(GREETING)))
        await through(lambda: tls.read(READ_BYTES))
        writer.close()
        return recorded

    def _hold(self) -> None:
        addresses = own_addresses("")
        while True:
            for address in addresses:
                with suppress(OSError):
                    self._held.append(socket.create_connection(self.target, 1.0, source_address=(address, 0)))
                if len(self._held) > HELD_FROM_EACH * len(addresses):
                    self._held.pop(0).close()


def _fake_peer(number: int) -> AsyncServiceInfo:
    return AsyncServiceInfo(
        SERVICE_TYPE,
        f"{number:016x}.{SERVICE_TYPE}",
        addresses=[socket.inet_aton("192.0.2.2")],
        port=9,
        properties={"v": "1", "h": f"fake{number}"},
        server=f"{number:016x}.local.",
    )


async def _drop(channel: PeerChannel) -> None:
    """Read until the other side ends the connection."""
    with suppress(*REFUSALS):
        while not isinstance(await channel.receive(), frames.Bye):
            pass
    channel.abort()


async def main(arguments: Sequence[str]) -> None:
    host, port, key_file, folder = arguments
    attacker = Attacker((host, int(port)), Path(key_file), Path(folder))
    attacks: dict[str, Callable[[], Awaitable[None]]] = {
        attack.__name__: attack
        for attack in (
            attacker.no_tls,
            attacker.no_certificate,
            attacker.unknown_key,
            attacker.old_tls,
            attacker.recorded_bytes,
            attacker.large_frame,
            attacker.half_open,
            attacker.hold_places,
            attacker.flood,
        )
    }
    while line := await asyncio.to_thread(sys.stdin.readline):
        with suppress(*REFUSALS):
            await attacks[line.strip()]()
        print(flush=True)
    os._exit(0)  # with its threads


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
