"""A connection of two devices on the local network: the real exchange and the real trust lists, without TLS.

Each side works in its own program, where it may fail or die. What travels is checked: frames are those of the wire.
"""

import json
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sync.app import App
from sync.lan.exchange import PeerExchange
from sync.lan.protocol import frames
from sync.lan.protocol.frames import Message
from sync.log.devices.store import read_registry
from sync.log.event_types import LESSON_LEARNED, PAYLOAD_EXPIRED, PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED
from tests.simulation.checks.expected_state import words_of
from tests.simulation.host.device import SimulatedDevice

if TYPE_CHECKING:
    from sync.lan.service import LanService
    from sync.lan.transport.trust import TrustList
    from tests.simulation.simulator import Simulator

HONEST: Final = 0.3  # probability, for each message of a hostile side
RETRACTING: Final = (PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED)
_REQUESTS: Final = "select event_id from events where type in (?, ?) and reach = 'cloud' and payload <> '{}'"
_HELD: Final = "select event_id from events"
_NUMBER: Final = "select replica_id, replica_seq from events where event_id = ?"
_UNDER_NUMBER: Final = "select event_id from events where replica_id = ? and replica_seq = ?"
_OFFERED: Final = """
select event_id from events where reach = 'cloud' and payload <> '{}' and position <= ? and event_id not in (
  select named.value from events as request, json_each(request.payload, '$.event_ids') as named
  where request.type in (?, ?)
)
"""


@dataclass
class LanSide:
    """One end of a connection. `waiting`: the frames on their way to it; `requests`: its erasure requests at first."""

    device: SimulatedDevice
    app: App
    service: "LanService"
    key: str = ""
    trust: "TrustList | None" = None
    waiting: deque[bytes] = field(default_factory=deque)
    requests: set[str] = field(default_factory=set)
    exchange: PeerExchange = field(init=False)

    def __post_init__(self) -> None:
        self.exchange = PeerExchange(self.app.log, self.service._device.guard, self.device.clock, "")

    def has_number_of(self, peer: "LanSide", event_id: str) -> bool:
        """Whether this side has any event under the number that an event of the peer has there."""
        (number,) = peer.device.query(peer.app.log.database.path, _NUMBER, event_id)
        return bool(self.device.query(self.app.log.database.path, _UNDER_NUMBER, *number))

    def event_ids(self, question: str, *given: str | int) -> set[str]:
        return {event_id for (event_id,) in self.device.query(self.app.log.database.path, question, *given)}


class LanLink:
    """A connection in use. `is_over`: one side has failed, or was closed.

    `forging`: the sides are hostile and sometimes send an event as one of a type that stays on its device.
    """

    def __init__(self, world: "Simulator", sides: tuple[LanSide, LanSide], owner: str) -> None:
        self.world = world
        self.sides = sides
        for side, peer in (sides, reversed(sides)):
            side.exchange.peer_device = peer.app.log.device_id
        self.owner = owner
        self.is_over = False
        self.forging: random.Random | None = None
        self.forged_ids: set[str] = set()

    @property
    def has_waiting(self) -> bool:
        return not self.is_over and any(side.waiting for side in self.sides)

    async def start(self) -> None:
        for side in self.sides:
            side.requests = side.event_ids(_REQUESTS, *RETRACTING)
        for number in (0, 1):
            await self._work(number, self.sides[number].exchange.start)

    async def note_changes(self) -> None:
        for number in (0, 1):
            await self._work(number, self.sides[number].exchange.on_log_change)

    async def deliver_one(self, number: int) -> None:
        """Deliver the next frame to a side."""
        side = self.sides[number]
        message = frames.decode(side.waiting.popleft()[frames.LENGTH_BYTES :])
        await self._work(number, lambda: side.exchange.on_message(message))
        if self.forged_ids and self.forged_ids & side.event_ids(_HELD):
            self.world.add_defect(f"{side.device.name} takes in a lesson that its peer has forged")

    async def _work(self, number: int, messages: Callable[[], AsyncIterator[Message]]) -> None:
        side, peer = self.sides[number], self.sides[1 - number]
        sent: list[Message] = []

        async def working() -> None:
            async for message in messages():
                sent.append(message)  # noqa: PERF401 - what was sent before an error has left

        self.is_over = self.is_over or side.device.app is not side.app
        if self.is_over:
            return
        self.is_over = not await self.world.run_on_device(side.device, "lan", working)
        for message in sent:
            self.world.trace_event(f"lan {side.device.name} to {peer.device.name}: {type(message).__name__}")
            if isinstance(message, frames.Events):
                self._check_sent(side, peer, message)
                message = self._with_forged_lesson(message)  # noqa: PLW2901 - what travels instead
            peer.waiting.append(frames.encode(message))

    def _check_sent(self, side: LanSide, peer: LanSide, message: frames.Events) -> None:
        """Nothing that stays on a device, of another account, or secret; the peer's erasure requests come first."""
        expected, name = self.world.expected, side.device.name
        said = json.dumps(message.events, ensure_ascii=False)
        words, owners = set(words_of(said)), expected.owners()
        for fact in expected.facts:
            if fact.stays_here and words.intersection(fact.words):
                self.world.add_defect(f"{fact.words} must stay on {fact.device} and {name} sends it to a peer")
        if strange := sorted(word for word in words if owners.get(word) not in {None, self.owner}):
            self.world.add_defect(f"{name} sends {self.owner} what holds {strange[0]} of {owners[strange[0]]}")
        if any(secret in said for secret in expected.secrets):
            self.world.add_defect(f"{name} sends the secret of a user to a peer")
        is_first = all(record["type"] in RETRACTING for record in message.events)
        if not is_first and (lacking := peer.requests - side.event_ids(_HELD)):
            self.world.add_defect(f"{name} sends events although it lacks the erasure request {min(lacking)}")

    def _with_forged_lesson(self, message: frames.Events) -> frames.Events:
        """The same events, one of them now and then as a lesson of another id."""
        events = list(message.events)
        places = [place for place, record in enumerate(events) if record["type"] not in RETRACTING]
        if self.forging is None or not places or self.forging.random() < HONEST:
            return message
        place = self.forging.choice(places)
        forged_id = f"evt_forged_{self.forging.getrandbits(64):x}"
        events[place] = {**events[place], "event_id": forged_id, "type": LESSON_LEARNED}
        self.forged_ids.add(forged_id)
        return frames.Events(message.epoch, events)

    def check_level(self) -> None:
        """After everything was delivered each side has what the other offers, unless it was forged."""
        if self.forged_ids:
            return
        for side, peer in (self.sides, self.sides[::-1]):
            if not side.exchange.is_level:
                self.world.add_defect(f"{side.device.name} still lacks what {peer.device.name} offers on the network")
            seen = peer.exchange._conversation  # a round with the cloud may have brought more since the last look
            read_to = seen.own.position if seen is not None else 0
            offered = peer.event_ids(_OFFERED, read_to, PAYLOAD_FORGOTTEN, PAYLOAD_EXPIRED)
            lacking = offered - side.event_ids(_HELD)
            if self.world.copied:  # an event of a copy under a number that is in use is noticed by the server only
                lacking = {event_id for event_id in lacking if not side.has_number_of(peer, event_id)}
            if lacking:
                self.world.add_defect(f"{side.device.name} lacks {min(lacking)} after {peer.device.name} has sent all")


async def connect(world: "Simulator", *devices: SimulatedDevice) -> LanLink | None:
    """Connect two devices if both trust each other; a wrong trust is a defect."""
    sides: list[LanSide] = []
    for device in devices:
        app = await device.started()
        if app is None or not await world.run_on_device(device, "lan trust", lambda: add_side(sides, device, app)):  # noqa: B023 - awaited here
            return None
    left, right = sides
    causes = [one.trust.refusal_of(other.key) for one, other in ((left, right), (right, left)) if one.trust]
    world.trace_event(f"lan {left.device.name} and {right.device.name}: {[str(cause) for cause in causes]}")
    if any(causes):
        return None
    owners = [dict(one.device.profiles()).get(one.app.log.database.path) for one in sides]
    if owners[0] is None or owners[0] != owners[1]:
        world.add_defect(f"{left.device.name} of {owners[0]} connects to {right.device.name} of {owners[1]}")
        return None
    for one, other in ((left, right), (right, left)):
        if other.device.settings.device_id in await _revoked_for(one):
            world.add_defect(f"{one.device.name} connects to {other.device.name}, which it knows to be revoked")
        registered = world.server.user_logs[owners[0]].devices
        is_registered = other.device.settings.device_id in registered or other.key in {
            device.public_key
            for device in registered.values()  # a copied home has the key of its original
        }
        if (one.device.name, other.device.name) in world.forgotten_pairings and not is_registered:
            world.add_defect(f"{one.device.name} connects to {other.device.name}, which it has forgotten")
    return LanLink(world, (left, right), owners[0])


async def add_side(sides: list[LanSide], device: SimulatedDevice, app: App) -> None:
    """A side with its key and its trust list of now."""
    side = LanSide(device, app, app.lan._build())
    side.key = await side.service._device.key.public_key()
    side.trust = await side.service._device.trust()
    sides.append(side)


async def _revoked_for(side: LanSide) -> set[str]:
    """The devices that an admitted one has revoked, as far as a side knows."""
    registry = await side.app.log.database.read(read_registry)
    return {name for name, device in registry.devices.items() if device.revoked_at is not None}
