"""`make sim`: many runs on all cores, or one seed again, shrunk."""

import argparse
import json
import logging
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import count, islice
from typing import Any, Final, TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tests.simulation.bug_search import detect_bug
from tests.simulation.planted_bugs import BUGS
from tests.simulation.report import AGAIN, SimulationReport
from tests.simulation.seed_run import SeedResult, digest, run_seed, tune_worker_gc
from tests.simulation.shrink import command, replay_plan, shrink_plan, sort_of
from tests.simulation.simulator import run
from tests.simulation.workload.plan import BESIDES, KINDS, SimulationPlan, make_plan

T = TypeVar("T")

WORKERS: Final = 2
SHOWN: Final = 5  # failing seeds that are shrunk and shown; each takes a minute


def main() -> int:
    arguments = _arguments()
    logging.disable(logging.CRITICAL)
    if arguments.seed is not None:
        plan = replay_plan(
            make_plan(arguments.seed), steps=arguments.steps, kinds=arguments.kinds, fuses=arguments.fuses
        )
        return _replay(plan, trace=arguments.trace, shrink=arguments.shrink)
    began = time.monotonic()
    seeds = _seeds_with(arguments.of, arguments.first, arguments.seeds)
    results = list(_many(seeds, quiet=arguments.json))
    seconds = time.monotonic() - began
    if arguments.record:
        _record(results, seconds, quiet=arguments.json)
    return _report(results, seconds, as_json=arguments.json)


def _record(results: list[SeedResult], seconds: float, *, quiet: bool) -> None:
    seeds = sorted(result.seed for result in results)[:AGAIN]
    again = dict(_each(digest, seeds, "the same again", quiet=quiet))
    bugs = dict(_each(detect_bug, range(len(BUGS)), "planted bugs", quiet=quiet))
    SimulationReport.of(results, again, list(bugs.values()), seconds=seconds).write()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make sim")
    parser.add_argument("--seeds", type=int, default=500, help="how many histories")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--of", default="", help="only seeds with these kinds of fault or action: lan,away")
    parser.add_argument("--seed", type=int, help="live this one again")
    parser.add_argument("--steps", help="of it these steps alone: 3-7,9")
    parser.add_argument("--kinds", help="of it these kinds of fault alone")
    parser.add_argument("--fuses", help="of it these deaths alone, by step")
    parser.add_argument("--trace", action="store_true", help="say everything that happened")
    parser.add_argument("--shrink", action="store_true", help="find a shorter history that fails as well")
    parser.add_argument("--record", action="store_true", help="write results.json, RESULTS.md, docs/guarantees.md")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return parser.parse_args()


def _seeds_with(kinds: str, first: int, seeds: int) -> list[int]:
    """So many seeds from the first on, whose plans have all these kinds."""
    wanted = frozenset(filter(None, kinds.split(",")))
    if unknown := wanted - {*KINDS, *BESIDES}:
        raise SystemExit(f"there is no kind {min(unknown)}")
    return list(islice((seed for seed in count(first) if wanted <= make_plan(seed).kinds), seeds))


def _replay(plan: SimulationPlan, *, trace: bool, shrink: bool) -> int:
    if shrink:
        plan = _smallest(plan)
        print(command(plan))
    outcome = run(plan)
    if trace:
        print("\n".join(outcome.trace))
    for defect in outcome.defects:
        print(f"✗ {defect}")
    print(f"seed {plan.seed}: {len(plan.steps)} steps, {len(outcome.defects)} broken promises, trace {outcome.digest}")
    return 1 if outcome.defects else 0


def _smallest(plan: SimulationPlan) -> SimulationPlan:
    """The shortest run with the same kind of defect."""
    found = run(plan).defects
    if not found:
        return plan
    wanted = sort_of(found[0])
    return shrink_plan(plan, lambda candidate: any(sort_of(defect) == wanted for defect in run(candidate).defects))


def _many(seeds: Sequence[int], *, quiet: bool) -> Iterator[SeedResult]:
    def failed(result: SeedResult) -> str:
        return f"seed {result.seed}: {result.defects[0].splitlines()[0]}" if result.defects else ""

    return _each(run_seed, seeds, "histories", quiet=quiet, failed=failed)


def _each(
    work: Callable[[int], T],
    seeds: Sequence[int],
    what: str,
    *,
    quiet: bool,
    failed: Callable[[T], str] = lambda _: "",
) -> Iterator[T]:
    """Run the seeds in worker processes, in order of completion."""
    context = multiprocessing.get_context("spawn")
    with _bar(quiet=quiet) as bar, ProcessPoolExecutor(WORKERS, mp_context=context, initializer=tune_worker_gc) as pool:
        task = bar.add_task(what, total=len(seeds), lost=0)
        failures = 0
        for done in as_completed([pool.submit(work, seed) for seed in seeds]):
            result = done.result()
            if told := failed(result):
                failures += 1
                bar.console.print(told, highlight=False)  # a long run may be cut off
            bar.update(task, advance=1, lost=failures)
            yield result


@contextmanager
def _bar(*, quiet: bool) -> Iterator[Progress]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[lost]} failed"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, disable=quiet) as bar:
        yield bar


def _report(results: list[SeedResult], seconds: float, *, as_json: bool) -> int:
    failed = sorted(result.seed for result in results if result.defects)
    kinds = Counter(kind for result in results for kind in result.kinds)
    summary = {
        "histories": len(results),
        "seconds": round(seconds, 1),
        "failed_seeds": failed,
        "bound": 3 / len(results) if not failed else None,
        "facts": sum(result.facts for result in results),
        "server_events": sum(result.events for result in results),
        "original_remembered": sum(result.original[0] for result in results),
        "original_lost": sum(result.original[1] for result in results),
        "original_histories_with_losses": sum(1 for result in results if result.original[1]),
        "faults": {kind: kinds[kind] for kind in (*KINDS, *BESIDES)},
    }
    print(json.dumps(summary, ensure_ascii=False) if as_json else _table(summary))
    for result in sorted(results, key=lambda result: result.seed):
        if result.defects and result.seed in failed[:SHOWN]:
            plan = _smallest(make_plan(result.seed))
            print(f"✗ seed {result.seed}: {result.defects[0]}\n  {command(plan)}", file=sys.stderr)
    return 1 if failed else 0


def _table(said: dict[str, Any]) -> str:
    rate = 100 * said["original_lost"] / max(1, said["original_remembered"])
    words = f"{said['original_lost']} of {said['original_remembered']} words lost ({rate:.1f} %)"
    bound = f"below {said['bound']:.5f} a history (3/N, 95 %)" if said["bound"] else "-"
    return "\n".join(
        [
            f"{said['histories']} histories in {said['seconds']} s, {said['facts']} facts that had to survive",
            f"  this program            {len(said['failed_seeds'])} histories with a broken promise",
            f"  the original algorithm  {words}, in {said['original_histories_with_losses']} histories",
            f"  chance of a failure     {bound}",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
