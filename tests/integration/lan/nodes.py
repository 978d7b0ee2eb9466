"""Devices with real databases, keys and sockets on 127.0.0.1."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from sync.accounts.paired_devices import PairedDevices
from sync.lan.local_device import LocalDevice
from sync.lan.model import LanPeerJson
from sync.lan.pairing.port import AccountClaim
from sync.lan.protocol import frames
from sync.lan.protocol.frames import Hello
from sync.lan.service import LanService
from sync.lan.transport.certificates import tls_context
from sync.lan.transport.channel import Deadlines, PeerChannel, connect_tls
from sync.lan.transport.listener import open_listener
from sync.lan.transport.trust import TrustList, trust_list
from sync.runtime.change_counter import ChangeCounter, wait_for_any_change
from sync.settings.sections import LanSettings
from tests.fake_cloud.server import FakeServer
from tests.integration.lan.harness import devices, guard_of
from tests.support import BROKEN_AFTER, Device, LoopClock, device_key_in

HASTY = Deadlines(handshake=0.5, hello=0.5, frame=0.5, idle=0.5, ping=60.0)
RECHECK_SECONDS = 0.2


@dataclass
class Node:
    """A device that listens. `keys` and `revoked` are its trust list and may change."""

    device: Device
    service: LanService
    public_key: str
    pairings: PairedDevices
    keys: dict[str, str] = field(default_factory=dict)
    revoked: dict[str, str | None] = field(default_factory=dict)

    @property
    def port(self) -> int:
        assert self.service.listening_at is not None
        return self.service.listening_at[1]

    async def connect(self, other: "Node") -> LanPeerJson:
        return await self.service.connect("127.0.0.1", other.port)

    async def texts(self) -> list[str]:
        return sorted(event.payload.get("text", "") for event in await self.device.events())

    def causes(self) -> list[str]:
        return [str(refusal.cause) for refusal in self.service.refusals.newest_first()]

    async def raw_channel(self, other: "Node", deadlines: Deadlines | None = None) -> PeerChannel:
        """A connection to another node that says what the test wants, with this node's key."""
        seed = await device_key_in(self.device.folder).private_half()
        known = [self.public_key, other.public_key]
        context = tls_context(seed, known, self.device.folder, server=False)
        return await connect_tls("127.0.0.1", other.port, context, deadlines or Deadlines())


@asynccontextmanager
async def nodes(
    folder: Path,
    server: FakeServer,
    *names: str,
    deadlines: Deadlines | None = None,
    account: str | None = None,
    listens_at: str = "127.0.0.1",
) -> AsyncIterator[list[Node]]:
    """Nodes that all trust each other. With an `account` they announce themselves on the loopback interface.

    Unless `deadlines` say otherwise, one may try again at once after a refusal: all nodes have one address.
    """
    deadlines = deadlines or replace(Deadlines(), failed=0.0)
    async with devices(folder, server, *names) as opened:
        made = [await _node(device, deadlines, account, listens_at) for device in opened]
        for node in made:
            node.keys |= {other.public_key: other.device.log.device_id for other in made}
        tasks = [asyncio.create_task(node.service.run()) for node in made]
        try:
            await until(lambda: all(node.service.listening_at for node in made))
            yield made
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _node(device: Device, deadlines: Deadlines, account: str | None, listens_at: str) -> Node:
    key = device_key_in(device.folder)

    async def trust_of(own_key: str) -> TrustList:
        paired = {row.public_key: row.device_id for row in await pairings.read()}
        return trust_list(own_key, {**paired, **node.keys}, node.revoked)

    async def has_other_profile(_: str) -> bool:
        return False

    def hello() -> Hello:
        return Hello(frames.PROTOCOL_VERSION, device.log.device_id, f"name of {device.log.device_id}", "1")

    pairings = PairedDevices(device.database, device.account, has_other_profile, device.clock)
    if account is not None:
        await pairings.join(AccountClaim(account, "a user"))
    local = LocalDevice(key, guard_of(device), trust_of, pairings, hello, device.folder, device.account.changed)
    settings = LanSettings(enabled="on", address=listens_at)
    public_key = await key.public_key()
    clock = LoopClock(seed=hash(public_key))
    service = LanService(device.log, local, clock=clock, settings=settings, deadlines=deadlines)
    node = Node(device, service, public_key, pairings)
    return node


async def until(condition: Callable[[], object], *counters: ChangeCounter) -> None:
    """Wait until a condition holds."""

    async def check() -> object:
        return condition()

    await until_async(check, *counters)


async def until_async(condition: Callable[[], Awaitable[object]], *counters: ChangeCounter) -> None:
    async with asyncio.timeout(BROKEN_AFTER):
        while True:
            seen = [(counter, counter.count) for counter in counters or (ChangeCounter(),)]
            if await condition():
                return
            await wait_for_any_change(RECHECK_SECONDS, *seen)


async def refused_silently(channel: PeerChannel) -> bool:
    """Whether the other side ends the connection, with or without saying why."""
    with suppress(ssl.SSLError, ConnectionError, EOFError):
        while True:
            if isinstance(await channel.receive(), frames.Bye):
                return True
    return True


def bare_connection(node: Node, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", node.port), source_address=(address, 0))


def free_port() -> int:
    with open_listener("127.0.0.1", 0) as listening:
        return int(listening.getsockname()[1])
