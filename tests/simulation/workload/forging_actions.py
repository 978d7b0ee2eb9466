"""Actions of an admitted device of the account that is hostile: it is no part of the simulation, its events are."""

import random
from base64 import b64encode
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from sync.clock import format_hlc, timestamp, to_unix_ms
from sync.log.event_types import (
    DEVICE_ADMITTED,
    DEVICE_REGISTERED,
    EXCHANGE_RECORDED,
    PAYLOAD_FORGOTTEN,
    PAYLOAD_REDACTED,
)
from tests.fake_cloud.server import _append_events, _erase_payloads
from tests.simulation.host.device import SimulatedDevice
from tests.simulation.workload import actions, client_actions
from tests.simulation.workload.plan import PlanStep
from tests.support import event

if TYPE_CHECKING:
    from tests.simulation.simulator import Simulator

Act = Callable[["Simulator", SimulatedDevice, PlanStep, random.Random], Coroutine[Any, Any, None]]

HOSTILE: Final = "device-x"
# kinds of fault after which a device may lack the text that a correction replaces, so that it cannot judge it
LACKING: Final = frozenset({"switch", "logout", "rollback", "restore"})


async def forge_correction(world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    """A correction that puts other words into an event that all devices hold, and the erasure that follows one."""
    owner = device.owner
    if owner is None or world.plan.kinds & LACKING:
        return
    memory = world.server.user_logs[owner]
    for one in world.devices:  # the first of the account's devices is an honest one
        await actions.sync(world, one, step, chance)
    if not any(one.device_id == HOSTILE for one in memory.events):
        if not any(one.type == DEVICE_REGISTERED for one in memory.events):
            return
        key = f"ed25519:{b64encode(bytes(32)).decode()}"
        _push(world, owner, DEVICE_REGISTERED, {"name": "x", "public_key": key})
    for one in (*world.devices, *world.devices):
        await actions.sync(world, one, step, chance)
        if (app := one.app) is not None and one.owner == owner:
            await world.run_on_device(one, "admit", partial(actions.admit_devices, world, one, app))
            await actions.sync(world, one, step, chance)
    admissions = (one for one in memory.events if one.type == DEVICE_ADMITTED)
    if not any(HOSTILE in one.payload["device_ids"] for one in admissions):
        return
    rows = _held_everywhere(world, owner)
    asked = {name for one in memory.events for name in one.payload.get("event_ids", ())}
    whole = [one for one in memory.events if one.event_id in rows and one.payload and one.event_id not in asked]
    if not whole:
        return
    victim = chance.choice(whole)
    forged = world.expected.new_word()
    world.expected.forged.add(forged)
    client_actions.expect_erasures(world, rows, {victim.event_id})
    payload = {**victim.payload, "question": forged}
    world.expected.restate(str(payload))  # what it has read, it can say again
    _push(world, owner, PAYLOAD_REDACTED, {"event_id": victim.event_id, "payload": payload})
    _push(world, owner, PAYLOAD_FORGOTTEN, {"event_ids": [victim.event_id]})


def _held_everywhere(world: "Simulator", owner: str) -> dict[str, Any]:
    """The exchanges that all devices hold whole that are of the account, or will be."""
    at = world.users.index(owner)
    of_owner = [one for number, one in enumerate(world.devices) if number % len(world.users) == at]
    held = [
        {name: row for path, whose in one.profiles() if whose == owner for name, row in one.events_of(path).items()}
        for one in {*of_owner, *(one for one in world.devices if owner in dict(one.profiles()).values())}
    ]
    first = held[0] if held else {}
    return {
        name: row
        for name, row in first.items()
        if row.type == EXCHANGE_RECORDED and all(rows.get(name) and rows[name].payload != "{}" for rows in held)
    }


def _push(world: "Simulator", owner: str, kind: str, payload: Mapping[str, Any]) -> None:
    memory, now = world.server.user_logs[owner], world.server_clock.now()
    number = 1 + sum(one.device_id == HOSTILE for one in memory.events)
    name, hlc = f"evt_hostile_{world.users.index(owner)}_{number}", format_hlc(to_unix_ms(now))
    changes = {"event_id": name, "type": kind, "payload": payload, "hlc": hlc, "origin": "tool", "ts": timestamp(now)}
    pushed: Any = SimpleNamespace(events=(event(number, replica="rep_x", device=HOSTILE, **changes),))
    _append_events(memory, pushed, timestamp(now))
    _erase_payloads(memory, pushed)


ACTS: Final[Mapping[str, Act]] = {"forge": forge_correction}
