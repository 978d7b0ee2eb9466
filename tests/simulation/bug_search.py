"""`make sim-bugs`: simulate from seed 0 until each planted bug is detected, and report after how many runs."""

import argparse
import logging
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from statistics import median
from typing import Final

from rich.progress import track

from tests.simulation.planted_bugs import BUGS
from tests.simulation.simulator import run

WORKERS: Final = 2


@dataclass(frozen=True, slots=True)
class BugDetection:
    """The first run that detected a bug, and its defect; None if none did."""

    bug: int
    seed: int | None
    defect: str


def first_detection(bug: int, most: int) -> BugDetection:
    logging.disable(logging.CRITICAL)
    for seed in range(most):
        plan = BUGS[bug].plan(seed)
        if BUGS[bug].extra_action_set not in {None, *plan.kinds}:
            continue
        defects = BUGS[bug].find_defects(seed)
        if defects and not run(plan).defects:  # a run that fails without the bug shows another one
            return BugDetection(bug, seed, defects[0].splitlines()[0][:120])
    return BugDetection(bug, None, "")


def detect_bug(bug: int) -> tuple[int, int | None]:
    """The run that the table names for a bug; None if it no longer detects it."""
    logging.disable(logging.CRITICAL)
    return bug, BUGS[bug].seed if BUGS[bug].find_defects(BUGS[bug].seed) else None


def detect_all(most: int) -> list[BugDetection]:
    """Detect every bug, in the order of the table."""
    with ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = as_completed([pool.submit(first_detection, bug, most) for bug in range(len(BUGS))])
        done = [job.result() for job in track(jobs, "planted bugs", total=len(BUGS))]
    return sorted(done, key=lambda one: one.bug)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sim-bugs")
    parser.add_argument("--most", type=int, default=3_000, help="histories at most for each")
    found = detect_all(parser.parse_args().most)
    for one in found:
        bug = BUGS[one.bug]
        moved = "" if one.seed == bug.seed else f" (the table says {bug.seed})"
        print(f"{'✓' if one.seed is not None else '✗'} {bug.name}: seed {one.seed}{moved}: {one.defect}")
    seeds = [one.seed + 1 for one in found if one.seed is not None]
    print(f"{len(seeds)} of {len(BUGS)} found, half of them within {median(seeds):.0f} histories")
    return 0 if len(seeds) == len(BUGS) else 1


if __name__ == "__main__":
    sys.exit(main())
