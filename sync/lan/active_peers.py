"""The connections in use: one for each device, registered after the greetings, and ended with a cause."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from sync.clock import Clock, timestamp
from sync.errors import StorageError
from sync.lan.exchange import PeerExchange
from sync.lan.intake import DailyIntake
from sync.lan.local_device import LocalDevice
from sync.lan.model import LanPeerJson
from sync.lan.protocol import frames
from sync.lan.protocol.frames import Hello, ProtocolError
from sync.lan.transport.certificates import key_of_certificate
from sync.lan.transport.channel import PeerChannel
from sync.lan.transport.connection import ConnectionRefused, LogFollower, PeerConnection
from sync.lan.transport.refusals import Refusals
from sync.lan.transport.trust import RefusalCause
from sync.log.log import EventLog
from sync.runtime.change_counter import ChangeCounter


@dataclass(slots=True)
class ActivePeer:
    """A connection in use."""

    channel: PeerChannel
    exchange: PeerExchange
    hello: Hello
    account_id: str  # for which this device talks to it; empty for a guest
    device_id: str
    direction: Literal["incoming", "outgoing"]
    since: str
    dismissed_for: RefusalCause | None = None  # why this device has ended it


class ActivePeers:
    """The connected devices, by public key.

    `connection_lost` counts the ends after which a new connection may be made at once: it broke, or was a duplicate.
    A peer that resets the connection before its `Bye` is read looks like one that broke. `changed` counts all changes.
    """

    def __init__(self, events: EventLog, device: LocalDevice, refusals: Refusals, clock: Clock) -> None:
        self._log = events
        self._device = device
        self._refusals = refusals
        self._clock = clock
        self.by_key: dict[str, ActivePeer] = {}
        self.connection_lost = ChangeCounter()
        self._intake = DailyIntake(clock)
        self.changed = ChangeCounter()

    def to_json(self) -> tuple[LanPeerJson, ...]:
        return tuple(peer_json(peer) for peer in self.by_key.values())

    def end_connections_from(self, address: str) -> None:
        """This machine has lost an address: do not wait until its connections fall silent."""
        for peer in self.by_key.values():
            if peer.channel.local_address == address:
                peer.channel.abort()

    async def end_untrusted(self) -> None:
        """End the connections to devices that are no longer trusted, and those for another account than now."""
        for key, peer in list(self.by_key.items()):
            if (cause := await self._refusal_now(key, peer)) is not None:
                peer.dismissed_for = cause
                await self.dismiss(peer.channel, cause, peer.device_id)

    async def follow_account(self) -> None:
        """Look after each login and logout, until cancelled."""
        while True:
            seen = self._device.account_changed.count
            await self.end_untrusted()
            await self._device.account_changed.wait_for_change(seen)

    async def _refusal_now(self, key: str, peer: ActivePeer) -> RefusalCause | None:
        if await self._device.owner_id() != peer.account_id:
            return RefusalCause.DUPLICATE  # after a login; the next connection is for the new account
        cause = (await self._device.trust()).refusal_of(key)
        return RefusalCause.UNPAIRED if cause is RefusalCause.STRANGER else cause  # it was trusted when it came

    async def register(
        self, key: str, channel: PeerChannel, greeting: tuple[Hello, str], direction: Literal["incoming", "outgoing"]
    ) -> ActivePeer:
        """Make this the connection to the device, or return the one that stays.

        Of two that crossed, both keep the one that the smaller key made. A second one of the other device replaces the
        first, which may be half open; so does any if the first is silent.
        """
        trust = await self._device.trust()
        device_id = trust.device_of(key)
        older = self.by_key.get(key)
        if older is not None:
            preferred = "outgoing" if trust.own_key < key else "incoming"
            stays = preferred if older.direction != direction else "outgoing"
            if older.direction == stays and not older.channel.is_silent:
                await self.dismiss(channel, RefusalCause.DUPLICATE, device_id)
                return older
        exchange = PeerExchange(self._log, self._device.guard, self._clock, device_id, self._intake)
        exchange.on_limit = partial(self._refusals.add, RefusalCause.DAILY_LIMIT, channel.address[0], device_id)
        now = timestamp(self._clock.now())
        peer = self.by_key[key] = ActivePeer(channel, exchange, *greeting, device_id, direction, now)
        self.changed.increment()
        if older is not None:
            await self.dismiss(older.channel, RefusalCause.DUPLICATE, device_id)
        return peer

    async def run(self, key: str, peer: ActivePeer) -> None:
        """Exchange events until the connection ends; why it ended is noted."""
        follower = LogFollower(self._log.changed, partial(self._refusal_now, key, peer))
        connection = PeerConnection(peer.channel, peer.exchange, follower)
        retry_now = False  # what makes one of the two end it would end the next connection as well
        try:
            await connection.run()
        except ConnectionRefused as error:
            retry_now = error.cause is RefusalCause.DUPLICATE  # after a login, or this one has crossed another
            await self.dismiss(peer.channel, error.cause, peer.device_id)
        except TimeoutError:
            retry_now = True
            await self.dismiss(peer.channel, RefusalCause.SLOW, peer.device_id)
        except ProtocolError:
            await self.dismiss(peer.channel, RefusalCause.PROTOCOL, peer.device_id)
        except StorageError:
            await self.dismiss(peer.channel, RefusalCause.STORAGE, peer.device_id)
        except (OSError, EOFError):
            retry_now = peer.dismissed_for in {None, RefusalCause.DUPLICATE}
        finally:
            peer.channel.abort()
            if self.by_key.get(key) is peer:
                del self.by_key[key]
                self.changed.increment()
                if retry_now:
                    self.connection_lost.increment()

    async def dismiss(self, channel: PeerChannel, cause: RefusalCause, device_id: str = "") -> None:
        """Tell the peer why, and close."""
        address = channel.address[0]
        if cause is not RefusalCause.DUPLICATE:
            if not device_id:
                trust = await self._device.trust()
                device_id = trust.device_of(key_of_certificate(channel.peer_certificate, trust.known_keys) or "")
            self._refusals.add(cause, address, device_id)
            self.changed.increment()
        channel.close_with(frames.Bye(cause))


def peer_json(peer: ActivePeer) -> LanPeerJson:
    """A connection as `lan/peers` shows it."""
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
