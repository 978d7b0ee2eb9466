"""The local network's part of a sidecar: listen, connect, keep each trusted device connected once."""

import asyncio
import contextlib
import importlib
import logging
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from sync import __version__
from sync.clock import Clock
from sync.errors import InvalidInput, LanOff, PeerRefused, PeerUnreachable, StorageError, location_of
from sync.lan.active_peers import ActivePeer, ActivePeers, peer_json
from sync.lan.discovery.pairing_search import PairingSearch
from sync.lan.local_device import LocalDevice
from sync.lan.model import LanInterfaceJson, LanPairingJson, LanPeerJson
from sync.lan.protocol import frames
from sync.lan.protocol.frames import Hello, ProtocolError
from sync.lan.transport.certificates import key_of_certificate
from sync.lan.transport.channel import Deadlines, PeerChannel, connect_tls, connection_failure
from sync.lan.transport.connection import ConnectionRefused, greet
from sync.lan.transport.listener import PeerListener, is_listening_at, open_listener, refusal_of_handshake
from sync.lan.transport.refusals import Refusals
from sync.lan.transport.tls_contexts import TlsContexts
from sync.lan.transport.trust import RefusalCause
from sync.log.log import EventLog
from sync.runtime.backoff import Backoff
from sync.runtime.change_counter import ChangeCounter
from sync.runtime.supervision import supervise
from sync.settings.sections import LanSettings

if TYPE_CHECKING:
    from sync.lan.discovery.browser import Discovery
    from sync.lan.pairing.code import Invitation
    from sync.lan.pairing.service import PairingService

REDIAL_BACKOFF: Final = Backoff(base=1.0, limit=60.0, jitter=0.5)  # of an address that a person gave
STABLE_SECONDS: Final = 10.0  # a connection that lasted so long begins a new series of failures

log = logging.getLogger(__name__)


class DialedPeer(msgspec.Struct, frozen=True):
    """A connected device at an address that was dialled. `is_new`: over a connection that nothing runs yet."""

    key: str
    peer: ActivePeer
    is_new: bool


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
        self._contexts = TlsContexts(device.key, device.folder)
        self._search = PairingSearch()
        self._pairing: PairingService | None = None  # loaded when a code is shown or entered
        self._connectors: dict[tuple[str, int], asyncio.Task[None]] = {}  # addresses that a person gave
        self._group: asyncio.TaskGroup | None = None
        self._discovery: Discovery | None = None
        self.listening_at: tuple[str, int] | None = None
        self.problem: str | None = None
        self.refusals = Refusals(clock)
        self._peers = ActivePeers(events, device, self.refusals, clock)
        self._active = self._peers.by_key
        self.changed = self._peers.changed
        self.pairing_changed = ChangeCounter()

    def peers(self) -> tuple[LanPeerJson, ...]:
        """The connected devices."""
        return self._peers.to_json()

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
                listening, self._server_context, self._deadlines, self._serve_incoming, self.refusals.add
            )
            try:
                async with asyncio.TaskGroup() as group:
                    self._group = group
                    group.create_task(listener.run())
                    group.create_task(supervise("discovery", self._discover))
                    group.create_task(supervise("account", self._peers.follow_account))
                    on_listening()
            finally:
                self._group, self.listening_at = None, None
                self._connectors.clear()
                self._active.clear()

    def candidate_count(self) -> int:  # devices of the account that are announced on the network
        return 0 if self._discovery is None else self._discovery.candidate_count

    def interfaces(self) -> tuple[LanInterfaceJson, ...]:
        """The addresses at which this device announces itself."""
        problems = {} if self._discovery is None else self._discovery.problems()
        return tuple(LanInterfaceJson(address, problem) for address, problem in problems.items())

    async def probe_multicast(self) -> None:
        """Try whether this machine hears its own announcements; `interfaces` names the address at which it does not."""
        if self._discovery is not None:
            await self._discovery.probe()

    async def _discover(self) -> None:
        """Announce this device and connect to those that are found, for as long as it listens."""
        module = await asyncio.to_thread(importlib.import_module, "sync.lan.discovery.browser")
        self._discovery = module.Discovery(
            self._device.discovery_ids,
            self._connect_found,
            self._peers.connection_lost,
            self._clock,
            self._peers.end_connections_from,
            pairing=self._search,
            only_address=self._settings.address,
        )
        assert self._discovery is not None
        assert self.listening_at is not None
        await self._discovery.run(self.listening_at[1])

    async def _connect_found(self, host: str, port: int) -> bool:
        """Connect to an address that was found; return whether a device is connected there."""
        try:
            dialed = await self._dial(host, port)
        except (PeerRefused, PeerUnreachable, StorageError):
            return False
        if dialed.is_new and self._group is not None:
            self._group.create_task(end_on_defect(self._peers.run(dialed.key, dialed.peer)))
        return True

    async def connect(self, host: str, port: int) -> LanPeerJson:
        """Connect to a device, and again whenever it ends. InvalidInput, LanOff, PeerUnreachable, PeerRefused."""
        if self._group is None:
            raise LanOff("this device does not listen on the local network now")
        if await is_listening_at(self.listening_at, host, port):  # it would look like a copied data directory
            hint = "Give the address and port of the other device: `xiaobai-memory lan status` there shows the port."
            raise InvalidInput("this address is that of this device itself", field="host", hint=hint)
        dialed = await self._dial(host, port)
        connector = self._connectors.get((host, port))
        if connector is None or connector.done() or dialed.is_new:
            if connector is not None:
                connector.cancel()  # it waits for its next try, and would not run this connection
            keeping = end_on_defect(self._keep_connected(host, port, dialed))
            self._connectors[host, port] = self._group.create_task(keeping)
        return peer_json(dialed.peer)

    async def _dial(self, host: str, port: int) -> DialedPeer:
        """Connect, greet and register; of a device that is connected already, return that connection."""
        try:
            context = await self._contexts.client((await self._device.trust()).known_keys)
            channel = await connect_tls(host, port, context, self._deadlines)
        except (OSError, TimeoutError) as error:
            if isinstance(error, ssl.SSLError) and (cause := refusal_of_handshake(error)) is not None:
                self.refusals.add(cause, host)
                raise PeerRefused(f"the device at this address is refused: {cause}", cause=cause) from error
            raise connection_failure(error) from error
        try:
            key = await self._judged(channel)
            if (known := self._active.get(key)) is not None and not known.channel.is_silent:
                await self._peers.dismiss(channel, RefusalCause.DUPLICATE)  # before the peer takes it for a new one
                return DialedPeer(key, known, is_new=False)
            hello = await greet(channel, await self._device.hello())
            account_id = await self._device.agree_on_account(hello)
            peer = await self._peers.register(key, channel, (hello, account_id), "outgoing")
        except ConnectionRefused as error:
            await self._peers.dismiss(channel, error.cause)
            raise PeerRefused(f"the connection was refused: {error.cause}", cause=error.cause) from error
        except (ProtocolError, OSError, EOFError, TimeoutError) as error:
            channel.abort()
            raise PeerUnreachable("the device at this address does not speak this protocol") from error
        except BaseException:
            channel.abort()
            raise
        return DialedPeer(key, peer, is_new=peer.channel is channel)

    async def _keep_connected(self, host: str, port: int, dialed: DialedPeer) -> None:
        """Connect again whenever the connection ends, whoever made it, until the device is no longer trusted."""
        failures, is_connected = 0, True
        while True:
            if is_connected:
                began = self._clock.monotonic()
                if dialed.is_new:
                    await self._peers.run(dialed.key, dialed.peer)
                while self._active.get(dialed.key) is dialed.peer:
                    await self.changed.wait_for_change(self.changed.count)
                failures = 0 if self._clock.monotonic() - began > STABLE_SECONDS else failures
            failures += 1
            await asyncio.sleep(REDIAL_BACKOFF.seconds(failures, self._clock.random_bytes(1)[0] / 255))
            is_connected = False
            with contextlib.suppress(PeerRefused, PeerUnreachable, StorageError):
                if (await self._device.trust()).refusal_of(dialed.key) is not None:
                    return
                dialed = await self._dial(host, port)
                is_connected = True

    async def _serve_incoming(self, channel: PeerChannel, admit: Callable[[], None]) -> None:
        try:
            if channel.peer_certificate is None and self._pairing is not None and self._pairing.is_showing:
                await self._pairing.serve(channel, admit)
                return
            key = await self._judged(channel)
            hello = await greet(channel, await self._device.hello())
            account_id = await self._device.agree_on_account(hello)
            peer = await self._peers.register(key, channel, (hello, account_id), "incoming")
            if peer.channel is channel:
                admit()
                await self._peers.run(key, peer)
        except ConnectionRefused as error:
            await self._peers.dismiss(channel, error.cause)
        except TimeoutError:
            await self._peers.dismiss(channel, RefusalCause.SLOW)
        except ProtocolError:
            await self._peers.dismiss(channel, RefusalCause.PROTOCOL)
        except (OSError, EOFError, StorageError):
            channel.abort()

    async def _judged(self, channel: PeerChannel) -> str:
        """The key of the peer, whose certificate is compared with the current trust list. Raises ConnectionRefused."""
        trust = await self._device.trust()
        key = key_of_certificate(channel.peer_certificate, trust.known_keys)
        cause = trust.refusal_of(key)
        if cause is not None or key is None:
            raise ConnectionRefused(cause or RefusalCause.STRANGER)
        return key

    async def _server_context(self) -> ssl.SSLContext:
        known = (await self._device.trust()).known_keys
        is_showing = self._pairing is not None and self._pairing.is_showing
        return await self._contexts.server(known, admits_pairing=is_showing)

    async def end_untrusted(self) -> None:
        """A pairing has ended: end its connection."""
        await self._peers.end_untrusted()

    async def show_code(self) -> LanPairingJson:
        """Show a new code with the addresses at which this device listens. Raises LanOff."""
        pairing = await self.pairing()
        browser = await asyncio.to_thread(importlib.import_module, "sync.lan.discovery.browser")
        addresses = await asyncio.to_thread(browser.own_addresses, self._settings.address)
        assert self.listening_at is not None
        return pairing.show([(address, self.listening_at[1]) for address in addresses])

    async def enter_code(self, invitation: "Invitation") -> LanPairingJson:
        """Pair with the device that shows a code, and connect to it. Raises as `connect`."""
        own = self.listening_at  # both devices may have one address, such as that of a container bridge
        others = tuple([address for address in invitation.addresses if not await is_listening_at(own, *address)])
        if invitation.addresses and not others:
            hint = "Enter the code on the other device. If that one shows it, give its address: `--host` and `--port`."
            raise InvalidInput("the device that would be paired is this device itself", hint=hint)
        invitation = replace(invitation, addresses=others)
        paired, (host, port) = await (await self.pairing()).enter(invitation)
        if invitation.addresses:
            with contextlib.suppress(LanOff, PeerRefused, PeerUnreachable):
                await self.connect(host, port)
        else:
            await self._connect_found(host, port)
        return paired

    def cancel_pairing(self) -> None:
        """The code that is shown is no longer good."""
        if self._pairing is not None:
            self._pairing.cancel()

    def pairing_state(self) -> LanPairingJson | None:
        """The code that is shown, or what became of the last one."""
        return None if self._pairing is None else self._pairing.state()

    async def pairing(self) -> "PairingService":
        """Pairing by code, loaded at its first use. Raises LanOff."""
        if self._group is None:
            raise LanOff("this device does not listen on the local network now")
        if self._pairing is None:
            module = await asyncio.to_thread(importlib.import_module, "sync.lan.pairing.service")
            made = module.PairingService(self._device, self._search, self.refusals, self._clock, self._deadlines)
            if self._pairing is None:
                self._pairing = made
                made.changed = self.pairing_changed
        assert self._pairing is not None
        return self._pairing


async def end_on_defect(work: Coroutine[None, None, None]) -> None:
    """Run work whose defects end it alone."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - logged
        log.error("work on the local network ended: %s", location_of(error))  # noqa: TRY400 - no text


def make_hello(events: EventLog, name: str) -> Hello:
    """The greeting of this device."""
    return Hello(frames.PROTOCOL_VERSION, events.device_id, name, __version__)
