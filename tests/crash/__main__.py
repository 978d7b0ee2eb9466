"""python -m tests.crash: every crash point, torn log and damaged database; a summary that goes into RESULTS.md.

`--jobs` processes at once; `--points`, `--wal`, `--damaged` bound a part (0 leaves it out); `--only` one scenario.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from typing import Final
from uuid import uuid4

from rich.progress import Progress

from tests.cloud.fixtures import Cloud, User, running_cloud
from tests.crash import damage, wal
from tests.crash.points import End, Passages, Point, first_points, later_points, passages_of, run
from tests.crash.scenarios import BY_NAME, SCENARIOS

TELL_EVERY: Final = 50  # trials, where no bar can be shown
LONGEST_COMPLAINT: Final = 400  # characters
Outcome = tuple[str, str]  # what became of one trial; the complaint where something was wrong


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--wal", type=int, default=wal.FULL_RUN)
    parser.add_argument("--damaged", type=int, default=1_000)
    parser.add_argument("--only", action="append", choices=sorted(BY_NAME))
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> int:
    told = arguments()
    with ProcessPoolExecutor(told.jobs) as pool:
        failed = sum(
            (
                _crash_points(pool, told) if told.points else 0,
                _trials(pool, "torn logs", wal.trial, range(told.seed, told.seed + told.wal)),
                _trials(pool, "damaged databases", damage.trial, range(told.seed, told.seed + told.damaged)),
            )
        )
    return min(failed, 1)


# --- crash points ------------------------------------------------------------------------------------------


def _crash_points(pool: ProcessPoolExecutor, told: argparse.Namespace) -> int:
    names = told.only or [scenario.name for scenario in SCENARIOS]
    with _cloud(names) as cloud:
        counting = {pool.submit(_passages, name, cloud): name for name in names}
        with Progress() as progress:
            ended = progress.track(as_completed(counting), total=len(counting), description="passages")
            passages = {counting[done]: done.result() for done in ended}
        _check_promises(passages)
        points = _chosen(passages, told.points, told.seed)
        return _trials(pool, "crash points", partial(_point, cloud=cloud), points)


def _check_promises(passages: dict[str, Passages]) -> None:
    for name, found in passages.items():
        missing = [step for step in BY_NAME[name].steps if not found[step, "before"]]
        if missing:
            sys.exit(f"{name} promises steps that it does not pass: {missing}")


def _chosen(passages: dict[str, Passages], most: int, seed: int) -> list[Point]:
    """All first passages, then as many later ones as are wanted."""
    first = [point for point in first_points() if point.scenario in passages]
    later = [point for name, found in passages.items() for point in later_points(BY_NAME[name], found)]
    random.Random(seed).shuffle(later)
    return [*first, *later][:most]


@contextmanager
def _cloud(names: Sequence[str]) -> Iterator[Cloud | None]:
    if any(BY_NAME[name].cloudy for name in names):
        with running_cloud() as cloud:
            yield cloud
    else:
        yield None


def _new_user(cloud: Cloud) -> User:
    email, password = f"{uuid4().hex}@example.com", uuid4().hex
    return User(email, password, cloud.sign_up(email, password))


def _passages(name: str, cloud: Cloud | None) -> Passages:
    return passages_of(BY_NAME[name], cloud, None if cloud is None else partial(_new_user, cloud))


def _point(point: Point, cloud: Cloud | None) -> Outcome:
    try:
        end = run(point, cloud, None if cloud is None else partial(_new_user, cloud))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what became of this point
        return "failed", f"{point}: {type(error).__name__}: {' '.join(str(error).split())[:LONGEST_COMPLAINT]}"
    return (f"killed {end.value}" if end is End.AT_THE_POINT else f"{end.value}: killed or left at the end"), ""


# --- trials ------------------------------------------------------------------------------------------------


def _trials(pool: ProcessPoolExecutor, name: str, trial: Callable[..., Outcome], given: Iterable[object]) -> int:
    """Run them all, with a bar; print what became of them; how many failed."""
    begun = time.monotonic()
    running = [pool.submit(trial, one) for one in given]
    outcomes: Counter[str] = Counter()
    with Progress() as progress:
        for done in progress.track(as_completed(running), total=len(running), description=name):
            outcome, complaint = done.result()
            outcomes[outcome] += 1
            if outcomes.total() % TELL_EVERY == 0 and not progress.console.is_terminal:
                print(f"{name}: {outcomes.total()} of {len(running)}", file=sys.stderr, flush=True)
            if complaint:
                print(complaint, file=sys.stderr, flush=True)
    if running:
        bound = "" if outcomes["failed"] else f"; none failed of {len(running)}: at most 3/N = {3 / len(running):.2%}"
        print(f"{name}: {dict(outcomes)} in {time.monotonic() - begun:.0f} s{bound}", flush=True)
    return outcomes["failed"]


if __name__ == "__main__":
    sys.exit(main())
