"""One run: the steps of a plan on real devices, then the quiet tail, then the invariants.

Steps start one after the other; their effects may overlap (a response in transit, a save in two parts). The trace has
every action with its simulated time.
"""

import asyncio
import hashlib
import random
import secrets
import shutil
import tempfile
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sync.errors import XiaobaiError
from tests.simulation.checks import client_invariants, invariants
from tests.simulation.checks.expected_errors import QuietTail, is_explained
from tests.simulation.checks.expected_state import ExpectedState
from tests.simulation.host.device import SimulatedDevice, SimulationContext
from tests.simulation.host.network import NetworkLine, SimulatedServer
from tests.simulation.host.simulated_host import DeviceClock, ProcessDied, SimulatedHost
from tests.simulation.workload import (
    actions,
    client_actions,
    fact_actions,
    forging_actions,
    import_actions,
    lan_actions,
    program_actions,
)
from tests.simulation.workload.editor import digest_of
from tests.simulation.workload.plan import ASKED_FROM, ASKING, SLOW, PlanStep, SimulationPlan, make_plan
from tests.support import VirtualTimeLoop

ROUNDS: Final = 4  # after the last fault all devices of a user are equal within so many rounds
LIVE: Final = 700.0  # seconds until a silent replica loses its device to another
TURNS: Final = 3  # copies of one home, at most
PATIENCE: Final = 900.0  # simulated seconds that one action of the tail may take
IN_ORDER: Final = 4  # one of so many plain runs ends its programs orderly
MEMORY: Final = Path("/dev/shm")
ACTS: Final = {
    **actions.ACTS,
    **lan_actions.ACTS,
    **client_actions.ACTS,
    **program_actions.ACTS,
    **import_actions.ACTS,
    **forging_actions.ACTS,
}


@dataclass(frozen=True, slots=True)
class SimulationOutcome:
    """The result of a run. `defects` is empty if every invariant holds."""

    seed: int
    defects: tuple[str, ...]
    digest: str  # of the trace
    trace: tuple[str, ...]
    facts: int  # things that had to survive
    events: int


class Simulator:
    """Devices, users, a server, and the expected state."""

    def __init__(self, plan: SimulationPlan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder
        self.expected = ExpectedState()
        self.host = SimulatedHost(plan.seed)
        self.host.overwriting = self._overwriting
        self.trace: list[str] = []
        self.defects: list[str] = []
        self.server_clock = DeviceClock(f"server {plan.seed}")
        chance = random.Random(f"server work {plan.seed}")
        self.server = SimulatedServer(self.server_clock, chance, work=min(plan.rate("delay"), 0.5), page=plan.page)
        self.users: list[str] = []
        self.around = SimulationContext(
            folder=folder,
            host=self.host,
            server=self.server,
            expected_state=self.expected,
            on_trace=self.trace_event,
            defect=self.add_defect,
            living=plan.living,
            push_events=chance.choice([2, 20, 200]),
        )
        self.devices: list[SimulatedDevice] = []
        self.is_asking = ASKING in plan.kinds
        self.at = 0  # the number of the last step
        self.calm = QuietTail.NOT_YET
        self.unanswered: set[str] = set()  # devices on which changes of others wait
        self.copied = False  # whether two devices may share one session
        self.renumbered = False  # whether events that a peer has may have got other numbers
        self.cloud_away = False  # until the quiet tail
        self.forgotten_pairings: set[tuple[str, str]] = set()  # a device, and the one that it has forgotten
        self.unheard: set[str] = set()  # events of an erasure request that the server refuses
        self._last_states: dict[str, list[object]] = {}  # state of each device after its last round
        self._under_way: set[asyncio.Task[None]] = set()

    def trace_event(self, what: str) -> None:
        self.trace.append(f"{asyncio.get_running_loop().time():.3f} {what}")

    def add_defect(self, defect: str) -> None:
        self.trace_event(f"DEFECT {defect}")
        self.defects.append(defect)

    def email(self, user: int) -> str:
        return f"user{user}@example.com"

    def add_device(self, name: str) -> SimulatedDevice:
        plan, seed = self.plan, f"{self.plan.seed} {name}"
        line = NetworkLine(
            random.Random(f"line {seed}"),
            loss=plan.rate("loss"),
            duplicates=plan.rate("duplicates"),
            delay=plan.rate("delay"),
        )
        device = SimulatedDevice(name, self.around, seed, line)
        device.file_errors, device.database_errors = plan.rate("file"), plan.rate("database")
        device.slowest = plan.rate(SLOW)
        self.devices.append(device)
        return device

    # --- the steps -------------------------------------------------------------------------------------------

    async def run_plan(self) -> None:
        asyncio.get_running_loop().set_exception_handler(self._unhandled)
        for user in range(self.plan.users):
            self.users.append(self.server.add_user(self.email(user), "a long password"))
        chance = random.Random(f"beginning {self.plan.seed}")
        for number in range(self.plan.devices):
            device = self.add_device("abcde"[number])
            if chance.random() < 0.75:
                await self.run_action(device, actions.log_in(self, device, number % self.plan.users), PATIENCE)
        for step in self.plan.steps:
            await self._step(step)
        await self._quiet_tail()

    async def _step(self, step: PlanStep) -> None:
        device = self.devices[step.device]
        chance = random.Random(f"{self.plan.seed} step {step.number}")
        if step.number < ASKED_FROM:  # inserted steps belong to the step before them
            self.at = step.number
        self.trace_event(f"step {step.number} {step.action} on {device.name}")
        if step.fuse is not None and device.life is not None:
            device.life.process.fuse = step.fuse
        patience = chance.choice([0.0, 1.0, 10.0, 30.0])
        perform = ACTS[step.action]
        await self.run_action(device, perform(self, device, step, chance), patience)
        await asyncio.sleep(step.gap)

    async def run_action(self, device: SimulatedDevice, action: Coroutine[Any, Any, object], patience: float) -> None:
        """Start an action and wait for it; it continues if it takes longer."""
        task = asyncio.get_running_loop().create_task(self._guarded(device, action))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        await asyncio.wait({task}, timeout=patience)

    async def _guarded(self, device: SimulatedDevice, action: Coroutine[Any, Any, object]) -> None:
        try:
            await action
        except Exception:  # noqa: BLE001 - the invariants report it with its place
            self.add_defect(f"{device.name}: an action of the simulation failed: {traceback.format_exc()}")

    async def run_on_device(self, device: SimulatedDevice, what: str, work: Callable[[], Awaitable[object]]) -> bool:
        """Run work on the device's program; return whether it succeeded.

        An error that a fault explains is a result; any other error is a defect.
        """
        done = False

        async def doing() -> None:
            nonlocal done
            try:
                await work()
            except XiaobaiError as error:
                self.trace_event(f"{device.name} {what}: {error.kind}")
                if life is not None and life.process.alive and not self._explains(device, what, error):
                    self.add_defect(f"{device.name} {what} failed without a reason: {error.kind} ({error})")
            except (ProcessDied, asyncio.CancelledError):
                return
            except Exception:  # noqa: BLE001 - any other exception is a defect
                self.add_defect(f"{device.name} {what} raised: {traceback.format_exc()}")
            else:
                done = life is not None and life.process.alive
                self.trace_event(f"{device.name} {what}")

        life = device.life
        task = device.spawn(doing())
        await asyncio.wait({task})
        if life is not None and not life.process.alive:
            await device.wait_until_dead()
        return done

    def _explains(self, device: SimulatedDevice, what: str, error: XiaobaiError) -> bool:
        return is_explained(what, error.kind, self.plan.kinds, calm=self.calm, is_guest=device.owner is None)

    def pass_time(self, seconds: float) -> None:
        """Advance all clocks while every program sleeps; cheaper than simulating the time."""
        for clock in (self.server_clock, *(device.clock for device in self.devices)):
            clock.skew += seconds

    def round_state(self, device: SimulatedDevice) -> list[object]:
        """The state that a round of a device reads or changes."""
        heads: list[object] = [memory.head for memory in self.server.user_logs.values()]
        return [*heads, *device.progress()]

    # --- the quiet tail --------------------------------------------------------------------------------------

    async def _quiet_tail(self) -> None:
        """Without faults: log in everywhere, repeat unanswered requests, and sync."""
        self.trace_event("quiet")
        self.server.down = self.cloud_away
        for device in self.devices:
            device.line.loss = device.line.duplicates = device.line.delay = 0.0
            device.line.down = False
            device.file_errors = device.database_errors = 0.0
            if device.life is not None:
                device.life.process.fuse = None
                device.life.process.file_errors = device.life.process.database_errors = 0.0
        while self._under_way:
            await asyncio.wait(set(self._under_way))
        await self.server.settled()
        if self.cloud_away:
            await lan_actions.meet_all(self)
        self.server.down = self.cloud_away = False
        self.calm = QuietTail.BEGUN
        for number in range(TURNS if self.copied else 1):  # in each profile
            self.pass_time(LIVE)
            for device in self._alternate_clones(number):
                await self._finish_action(device, actions.restart_and_log_in(self, device))
        self.calm = QuietTail.COMPLETE
        for number in range(ROUNDS):
            self.trace_event(f"round {number + 1}")
            self.pass_time(LIVE if number == 0 or self.copied else 0.0)
            if not await self._round(number):
                break  # nothing changed, so nothing will
        await self._check_invariants()

    async def _round(self, number: int) -> bool:
        """Run one round; return whether something changed. Later rounds skip devices without changes.

        Copies of a home take turns.
        """
        moved = False
        for device in self._alternate_clones(number):
            before = self.round_state(device)
            if number == 0 or self.copied or before != self._last_states.get(device.name) or device.has_unsent():
                await self._finish_action(device, actions.sync_round(self, device))
                moved = moved or self._last_states[device.name] != before
        return moved

    async def _finish_action(self, device: SimulatedDevice, action: Coroutine[Any, Any, object]) -> None:
        await self.run_action(device, action, PATIENCE)
        self._last_states[device.name] = self.round_state(device)

    async def _check_invariants(self) -> None:
        """Read what every program shows, end them all, and check what is on disk."""
        views = {device.name: await actions.views_of_others(self, device) for device in self.devices}
        facts = {device.name: await fact_actions.read_facts(self, device) for device in self.devices}
        pages = {device.name: await client_actions.pages(self, device) for device in self.devices if self.is_asking}
        for device in self.devices if self.is_asking else ():
            await self.run_action(device, client_actions.final_searches(self, device), PATIENCE)
        for device in self.devices:
            if self.is_asking or (device is self.devices[0] and self.plan.seed % IN_ORDER == 0):
                await device.shut_down()
            else:  # it ends as at each switch, and its files are complete
                device.kill("the history is over")
                await device.wait_until_dead()
        held = invariants.read_profiles(self)
        for profile in held:
            self.trace_event(f"{profile.name} shows {digest_of(profile.documents.encode())}")
        self.defects += invariants.find_defects(self, views, held)
        self.defects += fact_actions.find_fact_defects(self, facts, held)
        self.defects += client_invariants.find_client_defects(self, held, pages) if self.is_asking else []

    def _alternate_clones(self, number: int) -> list[SimulatedDevice]:
        """Copies of a home take turns as one device, a different one first each time, after the others."""
        first = self.devices[-(number % TURNS) if self.copied else 0]
        return [first, *(device for device in self.devices if device is not first)]

    def _overwriting(self, name: str, path: Path) -> None:
        next(device for device in self.devices if device.name == name).on_overwrite(path)

    def _unhandled(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None and not isinstance(error, ProcessDied):
            shown = "".join(traceback.format_exception(error))
            self.add_defect(f"nobody handled {context.get('message')}: {shown}")

    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()


def run(plan: SimulationPlan) -> SimulationOutcome:
    """Run one plan in a folder of its own."""
    with _folder() as folder:
        world = Simulator(plan, folder)
        with world.host.running(), asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            try:
                runner.run(_simulate(world))
            except RuntimeError as error:  # the virtual-time loop has nothing left to wait for
                world.defects.append(f"everything stands still: {error}")
            finally:
                for device in world.devices:
                    device.close()
        events = sum(memory.head for memory in world.server.user_logs.values())
        facts = sum(1 for _ in world.expected.required_facts())
        return SimulationOutcome(plan.seed, tuple(world.defects), world.digest(), tuple(world.trace), facts, events)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder whose name contains no word of the expected state; the program stores its path."""
    place = MEMORY if MEMORY.is_dir() else Path(tempfile.gettempdir())
    folder = place / f"xiaobai-sim-{secrets.token_hex(8)}"
    folder.mkdir(0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


async def _simulate(world: Simulator) -> None:
    try:
        await world.run_plan()
    except Exception:  # noqa: BLE001 - a failing simulator is a finding too
        world.add_defect(f"the simulation failed: {traceback.format_exc()}")


def simulate_seed(seed: int) -> SimulationOutcome:
    """Run a seed."""
    return run(make_plan(seed))
