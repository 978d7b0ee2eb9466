"""Shrink a failing run: remove steps and kinds of fault as long as it still fails."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from tests.simulation.workload.plan import PlanStep, SimulationPlan

MOST_RUNS: Final = 250  # a limit on time, not on what could still be removed


def sort_of(defect: str) -> str:
    """A defect without names and numbers, which a shorter run has to show too."""
    return re.sub(r"\[.*?\]|\(.*?\)|\S*[\d:/]\S*|\b[a-e]\b", "", defect)[:60]


def shrink_plan(plan: SimulationPlan, fails: Callable[[SimulationPlan], bool]) -> SimulationPlan:
    """A smaller plan that fails too; the plan itself if nothing can be removed."""
    runs = 0

    def still_fails(candidate: SimulationPlan) -> bool:
        nonlocal runs
        runs += 1
        return runs <= MOST_RUNS and fails(candidate)

    for kind in sorted(plan.kinds):
        if still_fails(without := plan.without([kind])):
            plan = without
    size = max(1, len(plan.steps) // 2)
    while size:
        plan = _without_steps(plan, size, still_fails)
        size //= 2
    for step in plan.steps:
        calmer = replace(plan, steps=tuple(replace(one, fuse=None) if one is step else one for one in plan.steps))
        if step.fuse is not None and still_fails(calmer):
            plan = calmer
    return plan


def _without_steps(plan: SimulationPlan, size: int, fails: Callable[[SimulationPlan], bool]) -> SimulationPlan:
    """Remove as many groups of `size` steps as possible, the last ones first."""
    at = len(plan.steps)
    while at > 0:
        shorter = replace(plan, steps=plan.steps[: max(0, at - size)] + plan.steps[at:])
        if fails(shorter):
            plan = shorter
        at -= size
    return plan


def command(plan: SimulationPlan) -> str:
    """The command that repeats this run."""
    parts = [f"make sim SEED={plan.seed}", f"STEPS={','.join(_ranges(plan.steps))}"]
    parts.append(f"KINDS={','.join(sorted(plan.kinds)) or 'none'}")
    fuses = ",".join(str(step.number) for step in plan.steps if step.fuse is not None)
    return " ".join([*parts, f"FUSES={fuses or 'none'}"])


def _ranges(steps: Sequence[PlanStep]) -> Iterator[str]:
    """`3-7`, `9`: the numbers of steps, short."""
    numbers = [step.number for step in steps]
    if not numbers:
        yield "none"
    while numbers:
        first = last = numbers.pop(0)
        while numbers and numbers[0] == last + 1:
            last = numbers.pop(0)
        yield str(first) if first == last else f"{first}-{last}"


def replay_plan(plan: SimulationPlan, *, steps: str | None, kinds: str | None, fuses: str | None) -> SimulationPlan:
    """The plan that `command` named: of the seed's own plan, these kinds, steps and deaths alone."""
    if kinds is not None:
        plan = plan.without(plan.kinds - set(kinds.split(",")))
    if steps is not None:
        plan = plan.only(_numbers(steps))
    if fuses is not None:
        kept_fuses = _numbers(fuses)
        plan = replace(
            plan, steps=tuple(step if step.number in kept_fuses else replace(step, fuse=None) for step in plan.steps)
        )
    return plan


def _numbers(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        if part != "none":
            first, _, last = part.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    return found
