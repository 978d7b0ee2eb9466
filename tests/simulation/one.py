"""One seed, lived by this program and by the original algorithm; in a module that a worker process can import."""

import logging
from dataclasses import dataclass

from tests.simulation import original
from tests.simulation.history import planned
from tests.simulation.world import run


@dataclass(frozen=True, slots=True)
class Result:
    """One seed: what was broken, what had to survive, and what the original algorithm lost in the same history."""

    seed: int
    defects: tuple[str, ...]
    facts: int
    events: int
    kinds: tuple[str, ...]
    original_lost: int
    original_said: int


def one(seed: int) -> Result:
    logging.disable(logging.CRITICAL)  # what the program says of its faults is no news here
    plan = planned(seed)
    outcome = run(plan)
    theirs = original.run(plan)
    return Result(
        seed, outcome.defects, outcome.facts, outcome.events, tuple(plan.kinds), theirs.lost, theirs.remembered
    )
