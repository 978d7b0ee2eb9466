"""The local network's part of a sidecar: listen, connect, keep each trusted device connected once."""

import asyncio
import importlib
import logging
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from sync import __version__
from sync.clock import Clock, timestamp
from sync.cloud.auth.device_key import DeviceKey
from sync.cloud.replication.erasure_guard import ErasureGuard
from sync.errors import LanOff, PeerRefused, PeerUnreachable, StorageError, location_of
from sync.lan.exchange import PeerExchange
from sync.lan.late_erasures import follow_late_erasures
from sync.lan.model import LanInterfaceJson, LanPeerJson
from sync.lan.protocol import frames
from sync.lan.protocol.frames import Hello, ProtocolError
from sync.lan.transport.certificates import key_of_certificate, tls_context
from sync.lan.transport.channel import Deadlines, PeerChannel, connect_tls
from sync.lan.transport.connection import ConnectionRefused, LogFollower, PeerConnection, greet
from sync.lan.transport.listener import PeerListener, open_listener, refusal_of_handshake
from sync.lan.transport.refusals import Refusals
from sync.lan.transport.trust import RefusalCause, TrustList
from sync.log.log import EventLog
from sync.runtime.backoff import Backoff
from sync.runtime.change_counter import ChangeCounter
from sync.runtime.supervision import supervise
from sync.settings.sections import LanSettings

if TYPE_CHECKING:
    from sync.lan.discovery.browser import Discovery

REDIAL_BACKOFF: Final = Backoff(base=1.0, limit=60.0, jitter=0.5)  # of an address that a person gave
STABLE_SECONDS: Final = 10.0  # a connection that lasted so long begins a new series of failures

log = logging.getLogger(__name__)

TrustReader = Callable[[str], Awaitable[TrustList]]


@dataclass(slots=True)
class ActivePeer:
    """A connection in use."""

    channel: PeerChannel
    exchange: PeerExchange
    hello: Hello
    device_id: str
    direction: Literal["incoming", "outgoing"]
    since: str


@dataclass(frozen=True, slots=True)
class LocalDevice:
    """This device for its peers. `trust_of` reads the trust list, given the own key; `folder` is private."""

    key: DeviceKey
    guard: ErasureGuard
    trust_of: TrustReader
    account_id: Callable[[], Awaitable[str | None]]  # None for a guest: nothing is announced
    hello: Callable[[], Hello]
    folder: Path


class LanService:
    """Talks to the account's devices on the local network."""

    def __init__(
        self,
        events: EventLog,
        device: LocalDevice,
        *,
        clock: Clock,
        settings: LanSettings,
        deadlines: Deadlines | None = None,
    ) -> None:
        self._log = events
        self._device = device
        self._clock = clock
        self._settings = settings
        self._deadlines = deadlines or Deadlines()
        self._contexts: dict[tuple[bool, frozenset[str]], ssl.SSLContext] = {}
        self._active: dict[str, ActivePeer] = {}  # by public key
        self._kept: dict[tuple[str, int], asyncio.Task[None]] = {}  # addresses that a person gave
        self._group: asyncio.TaskGroup | None = None
        self._discovery: Discovery | None = None
        self._connection_lost = ChangeCounter()
        self.listening_at: tuple[str, int] | None = None
        self.problem: str | None = None
        self.refusals = Refusals(clock)
        self.changed = ChangeCounter()

    async def trust(self) -> TrustList:
        return await self._device.trust_of(await self._device.key.public_key())

    def peers(self) -> tuple[LanPeerJson, ...]:
        """The connected devices."""
        return tuple(_peer_json(peer) for peer in self._active.values())

    async def run(self, on_listening: Callable[[], None] = lambda: None) -> None:
        """Listen until cancelled. Raises OSError if the port cannot be opened."""
        try:
            listening = open_listener(self._settings.address, self._settings.port)
        except OSError as error:
            self.problem = f"the port cannot be opened ({error.strerror or type(error).__name__})"
            raise
        self.problem = None
        with listening:
            name = listening.getsockname()
            self.listening_at = (str(name[0]), int(name[1]))
            listener = PeerListener(
                listening, partial(self._context, server=True), self._deadlines, self._serve_incoming, self.refusals.add
            )
            try:
                async with asyncio.TaskGroup() as group:
                    self._group = group
                    group.create_task(listener.run())
                    group.create_task(supervise("discovery", self._discover))
                    group.create_task(supervise("late erasures", partial(follow_late_erasures, self._log)))
                    on_listening()
            finally:
                self._group, self.listening_at = None, None
                self._kept.clear()
                self._active.clear()

    def candidate_count(self) -> int:  # devices of the account that are announced on the network
        return 0 if self._discovery is None else self._discovery.candidate_count

    def interfaces(self) -> tuple[LanInterfaceJson, ...]:
        """The addresses at which this device announces itself."""
        problems = {} if self._discovery is None else self._discovery.problems()
        return tuple(LanInterfaceJson(address, problem) for address, problem in problems.items())

    async def _discover(self) -> None:
        """Announce this device and connect to those that are found, for as long as it listens."""
        module = await asyncio.to_thread(importlib.import_module, "sync.lan.discovery.browser")
        self._discovery = module.Discovery(
            self._device.account_id,
            self._connect_found,
            self._connection_lost,
            self._clock,
            self._end_connections_from,
            only_address=self._settings.address,
        )
        assert self._discovery is not None
        assert self.listening_at is not None
        await self._discovery.run(self.listening_at[1])

    def _end_connections_from(self, address: str) -> None:
        """This machine has lost an address: do not wait until its connections fall silent."""
        for peer in self._active.values():
            if peer.channel.local_address == address:
                peer.channel.abort()

    async def _connect_found(self, host: str, port: int) -> bool:
        """Connect to an address that was found; return whether a device is connected there."""
        try:
            peer, key, is_new = await self._dial(host, port)
        except (PeerRefused, PeerUnreachable, StorageError):
            return False
        if is_new and self._group is not None:
            self._group.create_task(end_on_defect(self._run_peer(key, peer)))
        return True

    async def connect(self, host: str, port: int) -> LanPeerJson:
        """Connect to a device, and again whenever the connection ends. LanOff, PeerUnreachable, PeerRefused."""
        if self._group is None:
            raise LanOff("this device does not listen on the local network now")
        peer, key, is_new = await self._dial(host, port)
        kept = self._kept.get((host, port))
        if is_new and (kept is None or kept.done()):
            self._kept[host, port] = self._group.create_task(
                end_on_defect(self._keep_connected(host, port, (key, peer)))
            )
        return _peer_json(peer)

    async def _dial(self, host: str, port: int) -> tuple[ActivePeer, str, bool]:
        """Connect, greet and register. The flag is False for a device that is connected already."""
        try:
            channel = await connect_tls(host, port, await self._context(server=False), self._deadlines)
        except (OSError, TimeoutError) as error:
            if isinstance(error, ssl.SSLError) and (cause := refusal_of_handshake(error)) is not None:
                self.refusals.add(cause, host)
                raise PeerRefused(f"the device at this address is refused: {cause}", cause=cause) from error
            raise PeerUnreachable("no device answers at this address and port") from error
        try:
            key = await self._judged(channel)
            if (known := self._active.get(key)) is not None and not known.channel.is_silent:
                await self._dismiss(channel, RefusalCause.DUPLICATE)  # before the peer takes it for a new one
                return known, key, False
            hello = await greet(channel, self._device.hello())
        except ConnectionRefused as error:
            await self._dismiss(channel, error.cause)
            raise PeerRefused(f"the connection was refused: {error.cause}", cause=error.cause) from error
        except (ProtocolError, OSError, EOFError, TimeoutError) as error:
            channel.abort()
            raise PeerUnreachable("the device at this address does not speak this protocol") from error
        peer = await self._register(key, channel, hello, "outgoing")
        return peer, key, peer.channel is channel

    async def _keep_connected(self, host: str, port: int, first: tuple[str, ActivePeer]) -> None:
        current: tuple[str, ActivePeer] | None = first
        failures = 0
        while True:
            if current is not None:
                began = self._clock.monotonic()
                await self._run_peer(*current)
                failures = 0 if self._clock.monotonic() - began > STABLE_SECONDS else failures
            failures += 1
            await asyncio.sleep(REDIAL_BACKOFF.seconds(failures, self._clock.random_bytes(1)[0] / 255))
            try:
                peer, key, is_new = await self._dial(host, port)
                current = (key, peer) if is_new else None
                while not is_new and self._active.get(key) is peer:
                    await self.changed.wait_for_change(self.changed.count)
            except (PeerRefused, PeerUnreachable, StorageError):
                current = None

    async def _serve_incoming(self, channel: PeerChannel) -> None:
        try:
            key = await self._judged(channel)
            hello = await greet(channel, self._device.hello())
            peer = await self._register(key, channel, hello, "incoming")
            if peer.channel is channel:
                await self._run_peer(key, peer)
        except ConnectionRefused as error:
            await self._dismiss(channel, error.cause)
        except TimeoutError:
            await self._dismiss(channel, RefusalCause.SLOW)
        except ProtocolError:
            await self._dismiss(channel, RefusalCause.PROTOCOL)
        except (OSError, EOFError, StorageError):
            channel.abort()

    async def _judged(self, channel: PeerChannel) -> str:
        """The key of the peer, whose certificate is compared with the trust list of now. Raises ConnectionRefused."""
        trust = await self.trust()
        key = key_of_certificate(channel.peer_certificate, trust.known_keys)
        cause = trust.refusal_of(key)
        if cause is not None or key is None:
            raise ConnectionRefused(cause or RefusalCause.STRANGER)
        return key

    async def _register(
        self, key: str, channel: PeerChannel, hello: Hello, direction: Literal["incoming", "outgoing"]
    ) -> ActivePeer:
        """Make this the connection to the device, or return the one that stays.

        Of two that crossed, both keep the one that the smaller key made. A second one of the other device replaces the
        first, which may be half open; so does any if the first is silent.
        """
        trust = await self.trust()
        device_id = trust.device_of(key)
        if (older := self._active.get(key)) is not None:
            preferred = "outgoing" if trust.own_key < key else "incoming"
            stays = preferred if older.direction != direction else "outgoing"
            if older.direction == stays and not older.channel.is_silent:
                await self._dismiss(channel, RefusalCause.DUPLICATE, device_id)
                return older
            await self._dismiss(older.channel, RefusalCause.DUPLICATE, device_id)
        exchange = PeerExchange(self._log, self._device.guard, self._clock)
        now = timestamp(self._clock.now())
        self._active[key] = ActivePeer(channel, exchange, hello, device_id, direction, now)
        self.changed.increment()
        return self._active[key]

    async def _run_peer(self, key: str, peer: ActivePeer) -> None:
        """Exchange events until the connection ends; why it ended is noted."""

        async def refusal_now() -> RefusalCause | None:
            return (await self.trust()).refusal_of(key)

        connection = PeerConnection(peer.channel, peer.exchange, LogFollower(self._log.changed, refusal_now))
        try:
            await connection.run()
        except ConnectionRefused as error:
            await self._dismiss(peer.channel, error.cause, peer.device_id)
        except TimeoutError:
            await self._dismiss(peer.channel, RefusalCause.SLOW, peer.device_id)
        except ProtocolError:
            await self._dismiss(peer.channel, RefusalCause.PROTOCOL, peer.device_id)
        except (OSError, EOFError, StorageError):
            pass  # it left, or the disk is full; both are over by themselves
        finally:
            peer.channel.abort()
            if self._active.get(key) is peer:
                del self._active[key]
                self.changed.increment()
                self._connection_lost.increment()

    async def _dismiss(self, channel: PeerChannel, cause: RefusalCause, device_id: str = "") -> None:
        """Tell the peer why, if it still listens, and close."""
        address = channel.address[0]
        if cause is not RefusalCause.DUPLICATE:
            if not device_id:
                trust = await self.trust()
                device_id = trust.device_of(key_of_certificate(channel.peer_certificate, trust.known_keys) or "")
            self.refusals.add(cause, address, device_id)
            self.changed.increment()
        try:
            await channel.send(frames.Bye(cause))
        except (OSError, TimeoutError):
            channel.abort()
        else:
            channel.close()

    async def _context(self, *, server: bool) -> ssl.SSLContext:
        known = (await self.trust()).known_keys
        if (server, known) not in self._contexts:
            self._contexts = {of: kept for of, kept in self._contexts.items() if of[1] == known}
            seed = await self._device.key.private_half()
            made = await asyncio.to_thread(tls_context, seed, known, self._device.folder, server=server)
            self._contexts[server, known] = made
        return self._contexts[server, known]


async def end_on_defect(work: Coroutine[None, None, None]) -> None:
    """Run work whose defects end it alone."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - logged
        log.error("work on the local network ended: %s", location_of(error))  # noqa: TRY400 - no text


def make_hello(events: EventLog, name: str) -> Hello:
    """The greeting of this device."""
    return Hello(frames.PROTOCOL_VERSION, events.device_id, name, __version__)


def _peer_json(peer: ActivePeer) -> LanPeerJson:
    address, port = peer.channel.address
    return LanPeerJson(
        device_id=peer.device_id,
        name=peer.hello.name,
        address=address,
        port=port,
        direction=peer.direction,
        since=peer.since,
        level=peer.exchange.is_level,
        sent=peer.exchange.sent,
        received=peer.exchange.received,
    )
