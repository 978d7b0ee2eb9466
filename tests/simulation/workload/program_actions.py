"""Actions of other programs, which append lines under ids of their own: each device's programs count from 1."""

import random
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from sync.document.markdown.template import WORK_HABITS
from tests.simulation.checks.expected_state import ExpectedFact, words_of
from tests.simulation.host.device import SimulatedDevice
from tests.simulation.workload import client_actions
from tests.simulation.workload.plan import PlanStep

if TYPE_CHECKING:
    from tests.simulation.simulator import Simulator

Act = Callable[["Simulator", SimulatedDevice, PlanStep, random.Random], Coroutine[Any, Any, None]]


async def append_line(world: "Simulator", device: SimulatedDevice, step: PlanStep, _: random.Random) -> None:
    """A program appends a line to the document."""
    app = await device.started()
    if app is None:
        return
    words, owner = world.expected.new_sentence(2), client_actions.owner_of(device, app)
    before = sum(fact.by_program and fact.device == device.name for fact in world.expected.facts)
    fact = ExpectedFact(tuple(words_of(words)), device.name, owner, world.at, shown=False, must=False, by_program=True)
    world.expected.add(fact)
    line = {"entry_id": f"{device.name}-{step.number}", "section": list(WORK_HABITS), "after": "", "text": f"- {words}"}

    async def appending() -> None:
        value = {"type": "entry_added", "event_id": f"line-{before + 1}", "payload": line}
        (recorded,) = await app.log.append([app.draft_builder.build_appended(value)])
        fact.event_id = recorded.event.event_id

    fact.must = await world.run_on_device(device, "append line", appending)
    fact.step = world.at


ACTS: Final[Mapping[str, Act]] = {"append line": append_line}
