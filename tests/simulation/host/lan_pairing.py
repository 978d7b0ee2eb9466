"""Two devices are paired by a code: the real messages, and what each program stores of it, without TLS."""

from functools import partial
from typing import TYPE_CHECKING

from sync.app import App
from sync.lan.discovery.pairing_search import PairingSearch
from sync.lan.pairing.code import new_code
from sync.lan.pairing.protocol import (
    DeviceCard,
    EnteringSide,
    OwnDevice,
    PairedDevice,
    PairingRefused,
    ShowingSide,
    ShownCode,
)
from sync.lan.pairing.service import PairingService
from sync.lan.transport.channel import Deadlines
from sync.lan.transport.refusals import Refusals
from tests.simulation.host.device import SimulatedDevice
from tests.simulation.host.lan_link import LanSide, add_side

if TYPE_CHECKING:
    from tests.simulation.simulator import Simulator


async def pair(world: "Simulator", showing: SimulatedDevice, entering: SimulatedDevice) -> bool:
    """Pair two devices; return whether both have stored it."""
    sides: list[LanSide] = []
    own: list[OwnDevice] = []

    async def read_own(device: SimulatedDevice, app: App) -> None:
        await add_side(sides, device, app)
        own.append(await _service_of(sides[-1])._own_device())

    for device in (showing, entering):
        app = await device.started()
        if app is None or not await world.run_on_device(device, "lan card", partial(read_own, device, app)):
            return False
    try:
        paired = _exchange_messages(showing, entering, own)
    except PairingRefused as error:
        world.trace_event(f"lan {showing.name} and {entering.name} are not paired: {error.cause}")
        return False
    return await _stores(world, sides[0], paired[0].card) and await _stores(world, sides[1], paired[1].card)


async def forget(world: "Simulator", device: SimulatedDevice, other: SimulatedDevice) -> None:
    """End the pairing on one device."""
    app, other_id = await device.started(), str(other.settings.device_id)
    if app is not None and await world.run_on_device(device, "lan forget", lambda: app.devices.paired.forget(other_id)):
        world.forgotten_pairings.add((device.name, other.name))


def _exchange_messages(
    showing: SimulatedDevice, entering: SimulatedDevice, own: list[OwnDevice]
) -> tuple[PairedDevice, PairedDevice]:
    """What each side learns of the other. Raises PairingRefused."""
    shown = ShownCode(new_code(showing.clock.random_bytes), 0.0)
    shows = ShowingSide(shown, own[0], showing.clock.random_bytes)
    certificate = own[0].certificate_of(own[0].card.public_key)
    enters = EnteringSide(shown.code, certificate, own[1], entering.clock.random_bytes)
    (answer,), _ = shows.on_message(enters.start()[0], 1.0)
    (card,), _ = enters.on_message(answer)
    (card,), left = shows.on_message(card, 1.0)
    _, right = enters.on_message(card)
    assert left is not None
    assert right is not None
    return left, right


async def _stores(world: "Simulator", side: LanSide, card: DeviceCard) -> bool:
    """Whether a device stores the pairing; its memory may become an account's with it."""
    is_stored = False

    async def store() -> None:
        nonlocal is_stored
        try:
            await _service_of(side)._store(card)
        except PairingRefused as error:
            world.trace_event(f"lan {side.device.name} refuses the pairing: {error.cause}")
        else:
            is_stored = True

    if side.device.app is side.app:
        await world.run_on_device(side.device, "lan pair", store)
        await side.device.refresh_owner()
    return is_stored


def _service_of(side: LanSide) -> PairingService:
    clock = side.device.clock
    return PairingService(side.service._device, PairingSearch(), Refusals(clock), clock, Deadlines())
