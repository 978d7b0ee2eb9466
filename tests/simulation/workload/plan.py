"""The plan of a run: devices, users, faults and their rates, and the steps in order. A seed determines the plan.

Each step has a random generator of its own, so shrinking can remove steps without changing others. `BESIDES` are more
actions (search, daily records, erasure, concurrent edits …) in a share of the plans; without them a plan is unchanged.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

# kind of fault: its highest rate (probability, or seconds for `delay`), as `docs/faults.md` promises
RATES: Final[Mapping[str, float]] = {
    "loss": 0.3,
    "duplicates": 0.5,
    "delay": 3.0,
    "file": 0.1,
    "database": 0.05,
    "crash": 0.05,
}
# kinds of fault that are actions of their own: action and its weight among the others
ACTS: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "partition": (("cut", 2), ("mend", 2)),
    "outage": (("server down", 1), ("server up", 2)),
    "power": (("power loss", 2),),
    "clock": (("clock", 2),),
    "expire": (("expire", 1), ("end sessions", 1)),
    "switch": (("switch", 3),),
    "logout": (("log out", 1),),
    "revoke": (("revoke", 1),),
    "clone": (("clone", 1),),
    "rollback": (("back up", 2), ("roll back", 1)),
    "restore": (("restore", 1), ("replace", 1)),
    "poison": (("poison", 1),),
    "trouble": (("empty", 1), ("delete", 1), ("cut off", 2)),
    "stale": (("stale", 4),),
    "torn": (("torn", 3),),
    "helper": (("helper", 1),),
    "full": (("full", 1),),
}
KINDS: Final = (*RATES, *ACTS)
ASKING: Final = "asking"
ASKED: Final[tuple[tuple[str, int], ...]] = (
    ("search", 5),
    ("remember", 5),
    ("edit page", 3),
    ("mark", 1),
    ("put away", 1),
    ("forget", 4),
    ("archive", 3),
)
TOGETHER: Final = "together"
RETURNING: Final = "returning"
SLOW: Final = "slow"
PAUSING: Final = "pausing"
ERASED: Final = "erased"
TEACHING: Final = "teaching"
STATING: Final = "stating"
LAN: Final = "lan"
AWAY: Final = "away"
PAIRING: Final = "pairing"
PROGRAMS: Final = "programs"
IMPORTING: Final = "importing"
FORGING: Final = "forging"
BESIDES: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    ASKING: ASKED,
    TOGETHER: (("same line", 1),),
    RETURNING: (("come back", 1),),
    SLOW: (),
    PAUSING: (("pause", 1),),
    ERASED: (("stale after forget", 1),),
    TEACHING: (("teach", 5), ("correct", 3), ("forget lesson", 2)),
    STATING: (
        ("state fact", 8),
        ("propose fact", 1),
        ("amend fact", 2),
        ("take back fact", 2),
        ("bring back fact", 1),
    ),
    LAN: (("meet", 1),),
    AWAY: (("cloud away", 1),),
    PAIRING: (("pair", 1),),
    PROGRAMS: (("append line", 1),),
    IMPORTING: (("import", 1),),
    FORGING: (("forge", 1),),
}
ORDINARY: Final[tuple[tuple[str, int], ...]] = (
    ("say", 11),
    ("edit", 6),
    ("load", 2),
    ("look", 4),
    ("sync", 7),
    ("wait", 2),
    ("note", 1),
    ("again", 1),
    ("app save", 1),
)
ON: Final = 0.35  # probability of each kind of fault; five or six at once find more than all
FEWEST, MOST = 50, 200
ASKS: Final = 0.25  # probability that users also search, record, erase and archive
FEW_ASKED, MOST_ASKED = 5, 10  # steps
ASKED_FROM: Final = 1_000  # the number of the first of them
MEETS: Final = 0.4  # probability of edits of the same line, if the plan may have them
FEW_MET, MOST_MET = 2, 6  # steps
MET_FROM: Final = 2_000
LOGGED_OUT: Final = frozenset({"expire", "logout"})  # kinds after which users have to log in again
RETURNS: Final = 0.5  # probability that they do so before the quiet tail
FEW_RETURNS, MOST_RETURNS = 2, 6
RETURNED_FROM: Final = 3_000
IS_SLOW: Final = 0.2  # probability of slow commits
SLOWEST: Final = 0.5  # seconds, at most
PAUSES: Final = 0.15  # probability of a program that writes the memory file in pieces
FEW_PAUSES, MOST_PAUSES = 1, 3
PAUSED_FROM: Final = 4_000
ERASES: Final = 0.15  # probability of an editor that saves erased text
FEW_ERASED, MOST_ERASED = 1, 3
ERASED_FROM: Final = 5_000
TEACHES: Final = 0.2  # probability of users who teach, correct and forget lessons
FEW_TAUGHT, MOST_TAUGHT = 4, 10
TAUGHT_FROM: Final = 6_000
STATES: Final = 0.2  # probability of users who state, change and retract facts
FEW_STATED, MOST_STATED = 6, 14
STATED_FROM: Final = 7_000
MEETS_DIRECTLY: Final = 0.25  # probability of devices that meet on the local network
FEW_DIRECT, MOST_DIRECT = 4, 12  # steps
DIRECT_FROM: Final = 8_000
GOES_AWAY: Final = 0.3  # probability that the cloud is then away until the quiet tail
AWAY_FROM: Final = 9_000
PAIRS: Final = 0.15  # probability of devices that are paired by code, and forgotten
FEW_PAIRED, MOST_PAIRED = 2, 6  # steps
PAIRED_FROM: Final = 10_000
APPENDS: Final = 0.15  # probability of programs that append lines
FEW_APPENDED, MOST_APPENDED = 2, 6  # steps
APPENDED_FROM: Final = 11_000
IMPORTS: Final = 0.15  # probability of imports from another device of the account
FEW_IMPORTED, MOST_IMPORTED = 2, 6  # steps
IMPORTED_FROM: Final = 12_000
FORGES: Final = 0.15  # probability of a hostile device of the account
FEW_FORGED, MOST_FORGED = 2, 5  # steps
FORGED_FROM: Final = 13_000
ASKED_DIES: Final = 3.0  # factor for the crash probability of these few steps


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One action on one device. `fuse`: its program dies so many points later; `power`: with a power loss."""

    number: int
    action: str
    device: int
    gap: float  # seconds until the next step
    fuse: int | None = None


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    seed: int
    rates: Mapping[str, float]
    kinds: frozenset[str]
    devices: int
    users: int
    meets: bool  # whether two surfaces may change the same line
    living: bool  # whether the program's background loops run
    page: int
    steps: tuple[PlanStep, ...]

    def rate(self, kind: str) -> float:
        return self.rates.get(kind, 0.0)

    def without(self, kinds: Iterable[str]) -> "SimulationPlan":
        """The same plan without some kinds of fault."""
        gone = frozenset(kinds)
        actions = {action for kind in gone for action, _ in BESIDES.get(kind, ACTS.get(kind, ()))}
        steps = tuple(
            replace(step, fuse=None) if "crash" in gone else step for step in self.steps if step.action not in actions
        )
        rates = {kind: rate for kind, rate in self.rates.items() if kind not in gone}
        return replace(self, rates=rates, kinds=self.kinds - gone, steps=steps)

    def besides(self, *kinds: str) -> "SimulationPlan":
        """The same plan with only these kinds of `BESIDES`."""
        return self.without(BESIDES.keys() - set(kinds))

    def only(self, numbers: Iterable[int]) -> "SimulationPlan":
        """The same plan with only these steps."""
        kept_numbers = frozenset(numbers)
        return replace(self, steps=tuple(step for step in self.steps if step.number in kept_numbers))


def make_plan(seed: int) -> SimulationPlan:
    chance = random.Random(f"plan {seed}")
    kinds = frozenset(kind for kind in KINDS if chance.random() < ON)
    if "restore" in kinds:  # nobody can send again what only a lost device had sent (see `network.py`)
        kinds -= {"rollback", "revoke"}
    rates = {kind: chance.uniform(0.0, most) for kind, most in RATES.items() if kind in kinds}
    devices = chance.choice([3, 3, 3, 4, 5])
    count = FEWEST + int((MOST - FEWEST) * chance.random() ** 6)  # mostly short: many seeds find more than long ones
    weighted = [*ORDINARY, *(action for kind, actions in ACTS.items() if kind in kinds for action in actions)]
    actions = chance.choices([name for name, _ in weighted], [weight for _, weight in weighted], k=count)
    steps = tuple(
        PlanStep(
            number,
            action,
            chance.randrange(devices),
            chance.choice([0.0, 0.1, chance.uniform(0.0, 3.0)]),
            chance.choice([1, 2, 3, 5, 8, 13, 21]) if chance.random() < rates.get("crash", 0.0) else None,
        )
        for number, action in enumerate(actions)
    )
    plan = SimulationPlan(
        seed=seed,
        rates=rates,
        kinds=kinds,
        devices=devices,
        users=2 if "switch" in kinds else chance.choice([1, 1, 2]),
        meets=chance.choice([False, True]),
        living=chance.random() < 0.2,
        page=chance.choice([3, 10, 1_000]),
        steps=steps,
    )
    for extend in _EXTENSIONS:
        plan = extend(plan)
    return plan


def _with_client_actions(plan: SimulationPlan) -> SimulationPlan:
    chance = random.Random(f"asking {plan.seed}")
    if chance.random() >= ASKS:
        return plan
    # a restored server can only learn that an archived event existed
    acts = [(name, weight) for name, weight in ASKED if name != "archive" or "restore" not in plan.kinds]
    count = chance.randint(FEW_ASKED, MOST_ASKED)
    actions = chance.choices([name for name, _ in acts], [weight for _, weight in acts], k=count)
    return _with_steps(plan, ASKING, actions, ASKED_FROM, chance)


def _with_meetings(plan: SimulationPlan) -> SimulationPlan:
    chance = random.Random(f"together {plan.seed}")
    if not plan.meets or chance.random() >= MEETS:
        return plan
    actions = chance.choices([name for name, _ in BESIDES[TOGETHER]], k=chance.randint(FEW_MET, MOST_MET))
    return _with_steps(plan, TOGETHER, actions, MET_FROM, chance)


def _with_returns(plan: SimulationPlan) -> SimulationPlan:
    chance = random.Random(f"returning {plan.seed}")
    if plan.kinds.isdisjoint(LOGGED_OUT) or chance.random() >= RETURNS:
        return plan
    actions = chance.choices([name for name, _ in BESIDES[RETURNING]], k=chance.randint(FEW_RETURNS, MOST_RETURNS))
    return _with_steps(plan, RETURNING, actions, RETURNED_FROM, chance)


def _with_slow_commits(plan: SimulationPlan) -> SimulationPlan:
    chance = random.Random(f"slow {plan.seed}")
    if chance.random() >= IS_SLOW:
        return plan
    return replace(plan, kinds=plan.kinds | {SLOW}, rates={**plan.rates, SLOW: chance.uniform(0.0, SLOWEST)})


def _with_pauses(plan: SimulationPlan) -> SimulationPlan:
    chance = random.Random(f"pausing {plan.seed}")
    if chance.random() >= PAUSES:
        return plan
    actions = chance.choices([name for name, _ in BESIDES[PAUSING]], k=chance.randint(FEW_PAUSES, MOST_PAUSES))
    return _with_steps(plan, PAUSING, actions, PAUSED_FROM, chance)


def _with_erasures(plan: SimulationPlan) -> SimulationPlan:
    chance = random.Random(f"erased {plan.seed}")
    if chance.random() >= ERASES:
        return plan
    actions = chance.choices([name for name, _ in BESIDES[ERASED]], k=chance.randint(FEW_ERASED, MOST_ERASED))
    return _with_steps(plan, ERASED, actions, ERASED_FROM, chance)


def _with_lessons(plan: SimulationPlan) -> SimulationPlan:
    chance = random.Random(f"teaching {plan.seed}")
    if chance.random() >= TEACHES:
        return plan
    acts = BESIDES[TEACHING]
    count = chance.randint(FEW_TAUGHT, MOST_TAUGHT)
    actions = chance.choices([name for name, _ in acts], [weight for _, weight in acts], k=count)
    return _with_steps(plan, TEACHING, actions, TAUGHT_FROM, chance)


def _with_facts(plan: SimulationPlan) -> SimulationPlan:
    chance = random.Random(f"stating {plan.seed}")
    if chance.random() >= STATES:
        return plan
    acts = BESIDES[STATING]
    count = chance.randint(FEW_STATED, MOST_STATED)
    actions = chance.choices([name for name, _ in acts], [weight for _, weight in acts], k=count)
    return _with_steps(plan, STATING, actions, STATED_FROM, chance)


def _with_lan(plan: SimulationPlan) -> SimulationPlan:
    chance = random.Random(f"lan {plan.seed}")
    if chance.random() >= MEETS_DIRECTLY:
        return plan
    plan = _with_steps(plan, LAN, ["meet"] * chance.randint(FEW_DIRECT, MOST_DIRECT), DIRECT_FROM, chance)
    if chance.random() >= GOES_AWAY:
        return plan
    away = PlanStep(AWAY_FROM, "cloud away", 0, 0.0)
    return replace(plan, kinds=plan.kinds | {AWAY}, steps=(away, *plan.steps))


_SINGLE_ACTIONS: Final = (  # kind, its action, the share of histories, the fewest and most steps, the first number
    (PAIRING, "pair", PAIRS, (FEW_PAIRED, MOST_PAIRED), PAIRED_FROM),
    (PROGRAMS, "append line", APPENDS, (FEW_APPENDED, MOST_APPENDED), APPENDED_FROM),
    (IMPORTING, "import", IMPORTS, (FEW_IMPORTED, MOST_IMPORTED), IMPORTED_FROM),
    (FORGING, "forge", FORGES, (FEW_FORGED, MOST_FORGED), FORGED_FROM),
)


def _with_single_actions(plan: SimulationPlan) -> SimulationPlan:
    for kind, action, share, counts, first in _SINGLE_ACTIONS:
        chance = random.Random(f"{kind} {plan.seed}")
        if chance.random() < share:
            plan = _with_steps(plan, kind, [action] * chance.randint(*counts), first, chance)
    return plan


def _with_steps(
    plan: SimulationPlan, kind: str, actions: Sequence[str], first: int, chance: random.Random
) -> SimulationPlan:
    """Insert these steps after the first quarter, when there is data for them."""
    steps = list(plan.steps)
    for number, action in enumerate(actions, first):
        dies = chance.random() < ASKED_DIES * plan.rate("crash")
        fuse = chance.choice([1, 2, 3, 5, 8, 13]) if dies else None
        step = PlanStep(number, action, chance.randrange(plan.devices), chance.choice([0.0, 0.1, 1.0]), fuse)
        steps.insert(chance.randint(len(plan.steps) // 4, len(steps)), step)
    return replace(plan, kinds=plan.kinds | {kind}, steps=tuple(steps))


_EXTENSIONS: Final = (
    _with_client_actions,
    _with_meetings,
    _with_returns,
    _with_slow_commits,
    _with_pauses,
    _with_erasures,
    _with_lessons,
    _with_facts,
    _with_lan,
    _with_single_actions,
)
