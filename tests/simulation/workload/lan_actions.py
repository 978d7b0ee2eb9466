"""Actions of devices that meet on the local network, also while the cloud is away for the whole history."""

import random
from collections.abc import Callable, Coroutine, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.host.device import SimulatedDevice
from tests.simulation.host.lan_link import LanLink, connect
from tests.simulation.host.lan_pairing import forget, pair
from tests.simulation.workload import actions, client_actions
from tests.simulation.workload.plan import PlanStep

if TYPE_CHECKING:
    from tests.simulation.simulator import Simulator

Act = Callable[["Simulator", SimulatedDevice, PlanStep, random.Random], Coroutine[Any, Any, None]]

MOST_FRAMES: Final = 12  # until a connection breaks, or something else happens
SAME_ACCOUNT: Final = 0.9  # probability that it looks for devices of its account only
BREAKS: Final = 0.3  # probability
FORGETS: Final = 0.5  # probability, after a pairing
FORGES: Final = 0.3  # probability that a peer is hostile
HAPPENS: Final = 0.5
LOOKS: Final = 20  # at the log, until nothing is new; only a defect needs more


async def meet(world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    """A device connects to one or two others, or twice to one; connections may break, and the logs change meanwhile."""
    others = [one for one in world.devices if one is not device]
    if chance.random() < SAME_ACCOUNT:
        others = [one for one in others if one.owner == device.owner] or others
    met = chance.sample(others, min(len(others), chance.choice([1, 1, 2])))
    links = [await connect(world, device, one) for one in (*met, *(met if chance.random() < 0.2 else ()))]
    until = chance.randint(1, MOST_FRAMES) if chance.random() < BREAKS else None
    happens = chance.randint(1, MOST_FRAMES) if chance.random() < HAPPENS else None

    hostile = random.Random(f"{world.plan.seed} hostile {step.number}")
    for link in filter(None, links):
        link.forging = hostile if hostile.random() < FORGES else None

    async def something() -> None:
        who = chance.choice([device, *met])
        await chance.choice(MEANWHILE)(world, who, step, chance)

    await _carry([link for link in links if link is not None], chance, until, {happens: something})


async def pair_by_code(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    """A device pairs with one of an account, exchanges with it, and may be forgotten by one of the two.

    Two guests do not pair: whose their words are is decided by later logins (docs/decisions/035-pairing.md).
    """
    others = [one for one in world.devices if one is not device and one.owner is not None]
    if not others:
        return
    pairs = [device, chance.choice(others)]
    chance.shuffle(pairs)
    left, right = pairs
    both_ways = {(left.name, right.name), (right.name, left.name)}
    world.forgotten_pairings -= both_ways
    if not await pair(world, left, right):
        return
    world.forgotten_pairings -= both_ways  # an earlier step may have forgotten it before it was stored again
    await _meet_two(world, left, right, chance)
    if chance.random() < FORGETS:
        await forget(world, left, right)
        await _meet_two(world, left, right, chance)


async def _meet_two(world: "Simulator", left: SimulatedDevice, right: SimulatedDevice, chance: random.Random) -> None:
    if (link := await connect(world, left, right)) is not None:
        await _carry([link], chance)


async def _carry(
    links: list[LanLink],
    chance: random.Random,
    until: int | None = None,
    events: Mapping[int | None, Callable[[], Coroutine[Any, Any, None]]] | None = None,
) -> None:
    """Carry frames, in order on each connection, until all is said; `until`: break after so many."""
    for link in links:
        await link.start()
    carried = 0
    for _ in range(LOOKS):
        while waiting := [link for link in links if link.has_waiting]:
            link = chance.choice(waiting)
            await link.deliver_one(chance.choice([number for number in (0, 1) if link.sides[number].waiting]))
            carried += 1
            if events and carried in events:
                await events[carried]()
            if carried == until:
                return
        for link in links:
            await link.note_changes()
        if not any(link.has_waiting for link in links):
            break
    for link in links:
        if not link.is_over:
            link.check_level()


async def become_new_replica(
    world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random
) -> None:
    """The server says that the device's replica goes on elsewhere; its unsent events get new numbers."""
    world.server.forked.add(str(device.settings.device_id))
    world.renumbered = True
    await actions.sync(world, device, step, chance)
    took = str(device.settings.device_id) not in world.server.forked
    world.trace_event(f"{device.name} {'is a new replica' if took else 'has heard nothing of its replica'}")


async def cloud_away(world: "Simulator", _: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    """The devices have synced; then the cloud is away until the quiet tail."""
    for device in (*world.devices, *world.devices):
        await actions.sync(world, device, step, chance)
    world.server.down = world.cloud_away = True


async def meet_all(world: "Simulator") -> None:
    """Each device meets each other one, twice; then all of an account that trust each other are level."""
    chance = random.Random(f"{world.plan.seed} all meet")
    for _ in range(2):
        for left, right in combinations(world.devices, 2):
            await _meet_two(world, left, right, chance)


MEANWHILE: Final[tuple[Act, ...]] = (actions.update_memory, actions.sync, become_new_replica, client_actions.forget)
ACTS: Final[Mapping[str, Act]] = {"meet": meet, "cloud away": cloud_away, "pair": pair_by_code}
