"""Actions of people who teach, correct and forget lessons. No word of a lesson leaves its device.

The words of an error have their event. A cure is a fact without one: a correction replaces it, and the log keeps it.
"""

import random
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from bridge.methods.memory import lessons
from sync.app import App
from sync.log.event_types import LESSON_EDITED, LESSON_LEARNED, PAYLOAD_FORGOTTEN
from tests.simulation.checks.expected_state import ExpectedFact, words_of
from tests.simulation.host.device import SimulatedDevice
from tests.simulation.workload import client_actions
from tests.simulation.workload.plan import PlanStep

if TYPE_CHECKING:
    from tests.simulation.simulator import Simulator

Act = Callable[["Simulator", SimulatedDevice, PlanStep, random.Random], Coroutine[Any, Any, None]]


async def teach(world: "Simulator", device: SimulatedDevice, _: PlanStep, __: random.Random) -> None:
    """A user records an error with its cure."""
    app = await device.started()
    if app is None:
        return
    error = _expect(world, device, app, words := world.expected.new_sentence(2))
    cure = _expect(world, device, app, solution := world.expected.new_sentence(2))
    record = {"language": "python", "error": {"message": words}, "solution": {"description": solution}}
    params = lessons.LearnParams(kind="error", record=record)
    done = await world.run_on_device(device, "teach", lambda: lessons.learn(app, params))
    rows = device.events_of(app.log.database.path)
    error.event_id = next((name for name, row in rows.items() if row.words >= set(error.words)), None)
    error.must = cure.must = done and error.event_id is not None
    error.step = cure.step = world.at


async def correct(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    """A user writes another cure."""
    app = await device.started()
    if app is None or (lesson_id := _any_lesson(device, app, chance)) is None:
        return
    cure = _expect(world, device, app, words := world.expected.new_sentence(1))
    cure.lesson_id = lesson_id
    change = lessons.LessonEdit(id=lesson_id, changes={"solution": {"description": words}})
    cure.must = await world.run_on_device(device, "correct", lambda: lessons.edit(app, change))
    cure.step = world.at


async def forget_lesson(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    """A user removes a lesson for good, with all its versions."""
    app = await device.started()
    if app is None or (lesson_id := _any_lesson(device, app, chance)) is None:
        return
    before = device.events_of(app.log.database.path)
    named = {name for name, row in before.items() if _is_text_of(row.type, row.names, lesson_id)}
    client_actions.expect_erasures(world, before, named)
    removal = lessons.LessonRemoval(ids=(lesson_id,), confirm=True)
    await world.run_on_device(device, "forget lesson", lambda: lessons.clean(app, removal))
    for fact in world.expected.facts:  # also a correction that was acknowledged during the call
        if fact.device == device.name and fact.lesson_id == lesson_id:
            fact.must = False


def _expect(world: "Simulator", device: SimulatedDevice, app: App, text: str) -> ExpectedFact:
    owner = client_actions.owner_of(device, app)
    fact = ExpectedFact(tuple(words_of(text)), device.name, owner, world.at, stays_here=True, shown=False, must=False)
    return world.expected.add(fact)


def _any_lesson(device: SimulatedDevice, app: App, chance: random.Random) -> str | None:
    """A lesson whose text is in the log, and whose erasure was not requested."""
    rows = device.events_of(app.log.database.path)
    requests = (row for row in rows.values() if row.type == PAYLOAD_FORGOTTEN)
    erased = {name for request in requests for name in request.names["event_ids"]}
    learned = (row.names for name, row in rows.items() if row.type == LESSON_LEARNED and name not in erased)
    known = {str(names["lesson_id"]) for names in learned if "lesson_id" in names}
    return chance.choice(sorted(known)) if known else None


def _is_text_of(event_type: str, payload: Mapping[str, Any], lesson_id: str) -> bool:
    return event_type in {LESSON_LEARNED, LESSON_EDITED} and payload.get("lesson_id") == lesson_id


ACTS: Final[Mapping[str, Act]] = {"teach": teach, "correct": correct, "forget lesson": forget_lesson}
