"""Run one seed with this program and with the original algorithm; importable by worker processes."""

import gc
import logging
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.simulation.simulator import run, simulate_seed
from tests.simulation.workload import original_app
from tests.simulation.workload.plan import BESIDES, SimulationPlan, make_plan

NO_FAULT: Final = "no fault"
RARELY: Final = 10_000  # objects between two garbage collections
OTHERWISE: Final = "otherwise broken"
LOOP: Final = 100_000  # additions: the floor for a run's seconds, because machines differ
BESIDE: Final = 20  # one of so many seeds measures it
# the kind of a defect, by the words of its description; the first that matches
SORTS: Final[Mapping[str, re.Pattern[str]]] = {
    "leaked": re.compile(r"the secret|must stay on|holds \S+ of |belongs to nobody|was forgotten|to be forgotten"),
    "doubled": re.compile(r"twice"),
    "lost": re.compile(
        r"is in no log|never reached|is not in the|was written over|has no delivery"
        r"|does not find|does not tell|in no archive|before a follower|was kept and is not|was emptied"
    ),
    "diverged": re.compile(r"lacks|differ|look the same|cursor is at|has number|still wait|and is back|is not the one"),
}


@dataclass(frozen=True, slots=True)
class SeedResult:
    """One seed: what was broken, what had to survive, and what the original algorithm lost in the same history.

    `original` and `alone` are words (remembered, lost): in the whole history, and with one kind of fault at a time.
    `floor`: seconds of a bare loop, in some.
    """

    seed: int
    digest: str
    defects: tuple[str, ...]
    facts: int
    events: int
    kinds: tuple[str, ...]
    original: tuple[int, int]
    alone: Mapping[str, tuple[int, int]]
    floor: float | None = None

    @property
    def sorts(self) -> set[str]:
        return {sort_of_defect(defect) for defect in self.defects}


def tune_worker_gc() -> None:
    """Freeze the imported modules and collect rarely: a run leaves little garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(RARELY)


def run_seed(seed: int) -> SeedResult:
    logging.disable(logging.CRITICAL)  # the program's own log of faults is not needed here
    plan = make_plan(seed)
    outcome = run(plan)
    originals = {kind: _original(plan, {kind}) for kind in plan.kinds - BESIDES.keys()}
    alone = originals | {NO_FAULT: _original(plan, ())}
    kinds = tuple(sorted(plan.kinds))
    whole = _original(plan, plan.kinds)
    floor = _machine_floor() if seed % BESIDE == 0 else None
    return SeedResult(seed, outcome.digest, outcome.defects, outcome.facts, outcome.events, kinds, whole, alone, floor)


def _machine_floor() -> float:
    began = time.perf_counter()
    total = 0
    for number in range(LOOP):
        total += number
    return time.perf_counter() - began


def _original(plan: SimulationPlan, kinds: Iterable[str]) -> tuple[int, int]:
    losses = original_app.run(plan.without(plan.kinds - set(kinds)))
    return losses.remembered, losses.lost


def digest(seed: int) -> tuple[int, str]:
    """The trace hash of a run, to compare with another process's."""
    logging.disable(logging.CRITICAL)
    return seed, simulate_seed(seed).digest


def sort_of_defect(defect: str) -> str:
    return next((sort for sort, words in SORTS.items() if words.search(defect)), OTHERWISE)
