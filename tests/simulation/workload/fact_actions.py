"""Actions of people who state, change, take back and bring back facts about themselves; agents propose some.

The statements come from a short list, so that devices say the same, contradict and replace each other.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bridge.methods.memory import facts as fact_methods
from sync.app import App
from sync.document.capture.exchange_events import ExchangeInput
from sync.log.event_types import PAYLOAD_EXPIRED
from sync.understanding.model import Fact, FactStatus
from tests.simulation.checks.expected_state import ExpectedFact, words_of
from tests.simulation.checks.invariants import ProfileState, revoked, unsendable_events
from tests.simulation.host.device import SimulatedDevice
from tests.simulation.workload import client_actions
from tests.simulation.workload.plan import PlanStep

if TYPE_CHECKING:
    from tests.simulation.simulator import Simulator

Act = Callable[["Simulator", SimulatedDevice, PlanStep, random.Random], Coroutine[Any, Any, None]]

STATEMENTS: Final = (
    *("我住在天津", "我现在住在宁波", "我对花生过敏", "我叫王小明", "我养了一只猫", "我每天早上跑步"),
    *("我用 Vim 写代码", "我现在用 VS Code 写代码，不用 Vim 了", "我喜欢深色主题", "我不喜欢深色主题"),
    *("以后回答都用中文", "以后回答都用英文"),
)


async def state(world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    """A user states a fact in an exchange."""
    app = await device.started()
    if app is None:
        return
    answer = world.expected.new_sentence(1)
    owner = client_actions.owner_of(device, app)
    fact = ExpectedFact(tuple(words_of(answer)), device.name, owner, step.number, shown=False, must=False)
    world.expected.add(fact)
    exchange = ExchangeInput(chance.choice(STATEMENTS), answer, idempotency_key=f"fact-{step.number}")

    async def updating() -> None:
        fact.event_id = (await app.memory_service.update(exchange)).event_id

    fact.must = await world.run_on_device(device, "state", updating)
    fact.step = world.at


async def propose(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    """An agent proposes a fact."""
    app = await device.started()
    if app is not None:
        value = {"type": "memory_fact", "payload": {"content": chance.choice(STATEMENTS)}}
        await world.run_on_device(device, "propose", lambda: app.log.append([app.draft_builder.build_appended(value)]))


async def amend(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    """A user gives a fact another text."""
    text = chance.choice(STATEMENTS)
    await _answer(world, device, chance, FactStatus.ACTIVE, lambda app, name: app.facts().edit(name, text))


async def take_back(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    """A user retracts a fact."""
    await _answer(world, device, chance, FactStatus.ACTIVE, lambda app, name: app.facts().retract(name))


async def bring_back(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    """A user confirms a retracted fact, or a candidate."""
    status = chance.choice([FactStatus.RETRACTED, FactStatus.CANDIDATE])
    await _answer(world, device, chance, status, lambda app, name: app.facts().confirm(name))


async def _answer(
    world: "Simulator",
    device: SimulatedDevice,
    chance: random.Random,
    status: FactStatus,
    work: Callable[[App, str], Coroutine[Any, Any, object]],
) -> None:
    app = await device.started()
    if app is None:
        return
    named = [fact.fact_id for fact in await _all_facts(world, device, app) if fact.status is status]
    if named and device.app is app:
        name = chance.choice(named)
        await world.run_on_device(device, f"answer {name}", lambda: work(app, name))


async def _all_facts(world: "Simulator", device: SimulatedDevice, app: App) -> Sequence[Fact]:
    found: list[Fact] = []

    async def reading() -> None:
        found.extend((await app.facts().current()).facts)

    await world.run_on_device(device, "facts", reading)
    return found


async def check_unadmitted(world: "Simulator", device: SimulatedDevice, app: App, waiting: Collection[str]) -> None:
    """What devices state that wait to be admitted has replaced no fact of this one."""
    facts = await app.facts().current()
    for fact in facts.facts:
        by = facts.by_id.get(fact.superseded_by or "")
        said_by = {one.device_id for one in facts.statements_of(by)} if by is not None else set()
        is_own = app.log.device_id in {one.device_id for one in facts.statements_of(fact)}
        if is_own and said_by and said_by <= set(waiting):
            world.add_defect(f"{device.name}: {min(said_by)} is not admitted and has replaced {fact.statement}")


async def read_facts(world: "Simulator", device: SimulatedDevice) -> Sequence[Fact]:
    """The facts of a device after the run; those that its methods give are the same."""
    app = device.app
    if app is None:
        return ()
    found = await _all_facts(world, device, app)

    async def listing() -> None:
        if any(change.waits for change in (await app.facts().current()).changes):
            world.unanswered.add(device.name)
        listed = await fact_methods.list_facts(app, fact_methods.FactFilter(status="all"))
        if {one["factId"] for one in listed["facts"]} != {fact.fact_id for fact in found}:
            world.add_defect(f"{device.name}: understanding/facts differs from the facts of its log")

    await world.run_on_device(device, "list facts", listing)
    return found


def find_fact_defects(
    world: "Simulator", facts: Mapping[str, Sequence[Fact]], held: Sequence[ProfileState]
) -> Iterator[str]:
    """The same facts on every device of a user, and one active fact for each slot."""
    apart = {profile.device.name for profile in held if unsendable_events(world, profile)}
    apart |= world.unanswered
    apart |= {profile.device.name for profile in held if profile.named(PAYLOAD_EXPIRED)}
    by_owner: defaultdict[str, dict[str, Sequence[Fact]]] = defaultdict(dict)
    for device in world.devices:
        owner = device.last_owner
        if owner is not None and device.name not in apart and not revoked(world, owner, device):
            by_owner[owner][device.name] = facts[device.name]
    for owner, seen in by_owner.items():
        if len({tuple(one) for one in seen.values()}) > 1:
            yield f"{owner} has other facts on one device than on another, of {sorted(seen)}"
        for name, one in seen.items():
            slots = [(fact.subject, fact.slot) for fact in one if fact.status is FactStatus.ACTIVE and fact.slot]
            if len(slots) != len(set(slots)):
                yield f"{name}: two active facts have one slot"


ACTS: Final[Mapping[str, Act]] = {
    "state fact": state,
    "propose fact": propose,
    "amend fact": amend,
    "take back fact": take_back,
    "bring back fact": bring_back,
}
