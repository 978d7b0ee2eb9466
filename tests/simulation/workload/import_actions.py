"""Actions of people who import an archive of another of their devices, with an account or before the first login."""

import random
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from bridge.methods.log import archive
from sync.archive.container import ArchiveReader
from tests.simulation.checks.expected_state import words_of
from tests.simulation.host.device import SimulatedDevice
from tests.simulation.workload import client_actions
from tests.simulation.workload.plan import PlanStep

if TYPE_CHECKING:
    from tests.simulation.simulator import Simulator

Act = Callable[["Simulator", SimulatedDevice, PlanStep, random.Random], Coroutine[Any, Any, None]]


async def import_archive(world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    """A device imports what another one of the account exports; a guest says that it is their own memory."""
    if await device.started() is None:
        return
    is_guest = device.owner is None and len(world.users) == 1
    others = [one for one in world.devices if one is not device and one.app and one.owner]
    others = [one for one in others if is_guest or one.owner == device.owner]
    if not others:
        return
    source = chance.choice(others)
    owner, path = source.owner, world.folder / f"{source.name}-{step.number}.xbm"
    exporting, exported = source.app, archive.ArchiveExport(path=str(path))
    assert exporting is not None
    context = client_actions.method_context(exporting)
    if not await world.run_on_device(source, "export", lambda: archive.export_archive(context, exported)):
        return
    text = "".join(data.decode() for _, data in ArchiveReader.open_verified(path, None).read_parts())
    app = await device.started()
    if app is None or client_actions.owner_of(device, app) != (None if is_guest else owner):
        return
    params = archive.ArchiveImport(path=str(path), mine=is_guest and not app.account.is_logged_in)
    world.expected.imported[device.name].update(words_of(text))
    world.expected.claimed[device.name].update(words_of(text) if params.mine else ())
    _expect_again(world, text)
    context = client_actions.method_context(app)
    await world.run_on_device(device, f"import from {source.name}", lambda: archive.import_archive(context, params))


def _expect_again(world: "Simulator", text: str) -> None:
    """What nothing proves is recorded again: as an event of its own, or as a line of a document."""
    for line in text.replace("\\n", "\n").splitlines():
        world.expected.restate(line)
        world.expected.loose.update(words_of(line))


ACTS: Final[Mapping[str, Act]] = {"import": import_archive}
