"""Announce this device on the local network by multicast DNS, and find the account's others.

Each address of this machine has a socket of its own, so that one that fails disturbs no other. Whatever is found is
only an address to try: TLS decides who it is.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from ifaddr import get_adapters
from zeroconf import IPVersion, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from sync.clock import Clock
from sync.lan.discovery.beacon import (
    NAME_BYTES,
    SERVICE_TYPE,
    AnnouncedDevice,
    AnnouncedDevices,
    DiscoveryIds,
    addresses_to_try,
    announcement,
    is_instance_name,
    is_known,
    shows_code,
)
from sync.lan.discovery.pairing_search import PairingSearch
from sync.runtime.change_counter import ChangeCounter, wait_for_any_change

CHECK_SECONDS: Final = 10.0  # how often the addresses of this machine and the day are looked at
RESOLVE_MS: Final = 3_000
MAX_RESOLVING: Final = 8  # announcements that came without their record and are queried at once
MAX_NAMES: Final = 256  # announcements in a minute; more are a flood, and their cache is dropped
PROBE_MS: Final = 2_000
NO_ANSWER: Final = "this machine gets no answer of its own announcement: a firewall may block multicast (UDP 5353)"
FLOOD_PAUSE: Final = 60.0  # seconds without discovery after a flood
LOOPBACK: Final = "127.0.0.1"
EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - names for all addresses in the setting

Dial = Callable[[str, int], Awaitable[bool]]


def own_addresses(only: str) -> list[str]:
    """The IPv4 addresses of this machine, or the only one that the settings name."""
    if only not in EVERY_ADDRESS:
        return [only]
    return sorted({str(one.ip) for adapter in get_adapters() for one in adapter.ips if one.is_IPv4} - {LOOPBACK})


@dataclass(slots=True)
class InterfaceState:
    """One address of this machine; `problem` says why nothing is announced there."""

    address: str
    problem: str | None = None
    names: set[str] = field(default_factory=set)
    zeroconf: AsyncZeroconf | None = None
    browser: AsyncServiceBrowser | None = None
    info: AsyncServiceInfo | None = None
    announced: dict[str, str] = field(default_factory=dict)
    paused_until: float = 0.0
    is_unanswered: bool = False  # at the last probe


class Discovery:
    """Runs beside a listener. `dial` connects to an address and returns whether a device is connected there."""

    def __init__(
        self,
        read_ids: Callable[[], Awaitable[DiscoveryIds]],
        dial: Dial,
        connection_lost: ChangeCounter,
        clock: Clock,
        on_address_gone: Callable[[str], None] = lambda _: None,
        *,
        pairing: PairingSearch | None = None,
        only_address: str = "",
    ) -> None:
        self._read_ids = read_ids
        self._pairing = pairing or PairingSearch()
        self._dial = dial
        self._connection_lost = connection_lost
        self._on_address_gone = on_address_gone
        self._clock = clock
        self._only_address = only_address
        self._name = f"{clock.random_bytes(NAME_BYTES).hex()}.{SERVICE_TYPE}"
        self._ids = DiscoveryIds()
        self._interfaces: dict[str, InterfaceState] = {}
        self._candidates = AnnouncedDevices(self._name)
        self._port = 0
        self._discoveries = ChangeCounter()
        self._flooded = ChangeCounter()
        self._resolving: set[asyncio.Task[None]] = set()

    def problems(self) -> dict[str, str | None]:
        """Each address of this machine, and why nothing is announced there."""
        unanswered = {state.address: NO_ANSWER for state in self._interfaces.values() if state.is_unanswered}
        return {state.address: state.problem or unanswered.get(state.address) for state in self._interfaces.values()}

    async def probe(self) -> None:
        """Look at each address for this device's own announcement, from a second socket; `problems` has the result."""
        for state in list(self._interfaces.values()):
            state.is_unanswered = state.info is not None and not await _is_answered(state.address, state.info.name)

    @property
    def candidate_count(self) -> int:
        """How many devices of the account are announced."""
        return len(self._candidates)

    async def run(self, port: int) -> None:
        """Announce and look until cancelled."""
        self._port = port
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep_announcing())
                group.create_task(self._try_found())
        finally:
            for task in self._resolving:
                task.cancel()
            for state in list(self._interfaces.values()):
                await self._close(state)

    async def _keep_announcing(self) -> None:
        while True:
            seen, flooded = self._pairing.changed.count, self._flooded.count
            ids, known = await self._read_ids(), self._ids.known
            if ids.known != known:  # look at all announcements again
                self._candidates.clear()
                for state in self._interfaces.values():
                    await self._close(state)
            self._ids = ids
            is_used = self._ids.own or self._pairing.is_needed
            addresses = await asyncio.to_thread(own_addresses, self._only_address) if is_used else []
            is_changed = self._interfaces.keys() != set(addresses)
            for gone in [state for address, state in self._interfaces.items() if address not in addresses]:
                await self._close(gone)
                del self._interfaces[gone.address]
                self._on_address_gone(gone.address)
            if is_changed:
                self._candidates.try_all_again(self._clock.monotonic())
                self._discoveries.increment()
            for address in addresses:
                await self._announce_at(self._interfaces.setdefault(address, InterfaceState(address)))
            await wait_for_any_change(CHECK_SECONDS, (self._pairing.changed, seen), (self._flooded, flooded))

    async def _announce_at(self, state: InterfaceState) -> None:
        """Announce this day's mark, and a pairing, at one address; a failure is kept and tried again."""
        now = self._clock.monotonic()
        if state.paused_until > now:
            return
        if len(state.names) > MAX_NAMES:
            await self._close(state)
            state.problem, state.paused_until = "too many announcements on this network", now + FLOOD_PAUSE
            return
        properties = announcement(self._ids.own, self._clock.now(), shows_code=self._pairing.is_showing())
        if state.zeroconf is not None and state.announced == properties:
            return
        try:
            await self._announce(state, properties)
        except (OSError, ValueError) as error:
            state.problem = f"no multicast at this address ({getattr(error, 'strerror', None) or type(error).__name__})"
            await self._close(state)
        else:
            state.problem, state.announced = None, properties

    async def _announce(self, state: InterfaceState, properties: dict[str, str]) -> None:
        if state.zeroconf is None:
            state.zeroconf = AsyncZeroconf(interfaces=[state.address], ip_version=IPVersion.V4Only)
        await self._register(state, state.zeroconf, properties)
        if state.browser is None:

            def on_change(zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange) -> None:
                self._on_announcement(state, zeroconf, service_type, name, state_change)

            state.browser = AsyncServiceBrowser(state.zeroconf.zeroconf, SERVICE_TYPE, handlers=[on_change])

    async def _register(self, state: InterfaceState, zeroconf: AsyncZeroconf, properties: dict[str, str]) -> None:
        """Announce the text record; one without mark and pairing is not announced at all."""
        if len(properties) == 1:
            await zeroconf.async_unregister_all_services()
            state.info = None
            return
        packed = socket.inet_aton(state.address)
        host = f"{self._name.partition('.')[0]}.local."
        info = AsyncServiceInfo(
            SERVICE_TYPE, self._name, addresses=[packed], port=self._port, properties=properties, server=host
        )
        if state.info is None:
            await zeroconf.async_register_service(info, cooperating_responders=True)
        else:
            await zeroconf.async_update_service(info)
        state.info = info

    async def _close(self, state: InterfaceState) -> None:
        zeroconf, browser = state.zeroconf, state.browser
        state.zeroconf = state.browser = state.info = None
        state.announced = {}
        with contextlib.suppress(OSError, TimeoutError):
            if browser is not None:
                await browser.async_cancel()
            if zeroconf is not None:
                await zeroconf.async_unregister_all_services()
                await zeroconf.async_close()
        state.names.clear()

    def _on_announcement(
        self, state: InterfaceState, zeroconf: Zeroconf, service_type: str, name: str, change: ServiceStateChange
    ) -> None:
        """An announcement came, changed or went. A flood is noticed here and ended by `_announce_at`."""
        if name == self._name or len(state.names) > MAX_NAMES:
            return
        if change is ServiceStateChange.Removed:
            state.names.discard(name)
            if not any(name in other.names for other in self._interfaces.values()):
                self._candidates.remove(name)
                self._pairing.remove(name)
            return
        state.names.add(name)
        if len(state.names) > MAX_NAMES:
            self._flooded.increment()
            return
        if not is_instance_name(name, service_type):  # for some zeroconf raises, and would hear of no other any more
            return
        info = AsyncServiceInfo(service_type, name)
        if info.load_from_cache(zeroconf):
            self._consider(info, state)
        elif len(self._resolving) < MAX_RESOLVING:
            task = asyncio.get_running_loop().create_task(self._resolve(info, zeroconf, state))
            self._resolving.add(task)
            task.add_done_callback(self._resolving.discard)

    async def _resolve(self, info: AsyncServiceInfo, zeroconf: Zeroconf, state: InterfaceState) -> None:
        with contextlib.suppress(OSError):
            if await info.async_request(zeroconf, RESOLVE_MS):
                self._consider(info, state)

    def _consider(self, info: AsyncServiceInfo, state: InterfaceState) -> None:
        """Try a device with a known mark, and note one that shows a code; nothing is kept of any other."""
        own = self._interfaces if info.port == self._port else ()
        announced = (address for address in info.parsed_addresses(IPVersion.V4Only) if address not in own)
        addresses = addresses_to_try(announced, state.address)
        self._pairing.note(info.name, addresses, info.port or 0, shows=shows_code(info.properties))
        if is_known(info.properties, self._ids.known, self._clock.now()):
            self._candidates.add(info.name, addresses, info.port or 0, self._clock.monotonic())
            self._discoveries.increment()

    async def _try_found(self) -> None:
        """Try each candidate when its time has come, and again when a connection ends; a silent one delays no other."""
        async with asyncio.TaskGroup() as group:
            while True:
                found, lost = (
                    (self._discoveries, self._discoveries.count),
                    (self._connection_lost, self._connection_lost.count),
                )
                for candidate in self._candidates.take_due(self._clock.monotonic()):
                    group.create_task(self._try(candidate))
                await wait_for_any_change(self._candidates.seconds_to_next(self._clock.monotonic()), found, lost)
                if self._connection_lost.count != lost[1]:
                    self._candidates.try_all_again(self._clock.monotonic())

    async def _try(self, candidate: AnnouncedDevice) -> None:
        connected = False
        for address in candidate.addresses:
            connected = connected or await self._dial(address, candidate.port)
        self._candidates.note_result(candidate.name, self._clock.monotonic(), connected=connected)
        self._discoveries.increment()


async def _is_answered(address: str, name: str) -> bool:
    """Whether an announcement is found by multicast from another socket of this machine."""
    try:
        asking = AsyncZeroconf(interfaces=[address], ip_version=IPVersion.V4Only)
    except OSError:
        return False
    try:
        return await AsyncServiceInfo(SERVICE_TYPE, name).async_request(asking.zeroconf, PROBE_MS)
    finally:
        await asking.async_close()
