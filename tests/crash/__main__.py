"""python -m tests.crash: every crash point, torn log, damaged database and failing disk, recorded in RESULTS.md.

`--only` selects parts by a word of their name, `--resume` skips those that passed with this commit, `--jobs` sets the
number of processes. `--most` limits the trials of a part; then nothing is recorded.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4
from xml.etree import ElementTree as ET

from rich.console import Console
from rich.progress import Progress

from tests.cloud.fixtures import Cloud, User, running_cloud
from tests.crash.crash_points import CrashPoint, ExitReason, later_points, passages_of, points_of, run_point
from tests.crash.faults import corrupt_databases, recovery_cases, torn_wal
from tests.crash.scenarios.scenario import BY_NAME
from tests.run_report import REPOSITORY, PartResult, RunReport

TELL_EVERY: Final = 50  # trials between messages without a progress bar
LONGEST_COMPLAINT: Final = 400  # characters
FAILED: Final = "failed"
DAMAGED: Final = 1_000  # databases

Outcome = tuple[str, str]  # the result of one trial, and the complaint if it failed

KILLED: Final = {f"killed: {name}": name for name in BY_NAME}
LATER: Final = {f"killed later: {name}": name for name in BY_NAME}  # at second and last passages
TRIALS: Final[Mapping[str, tuple[Callable[[int], Outcome], int]]] = {
    "torn logs": (torn_wal.trial, torn_wal.FULL_RUN),
    "damaged databases": (corrupt_databases.trial, DAMAGED),
    "memories that lost their database": (recovery_cases.trial, recovery_cases.FULL_RUN),
}
# Parts that are ordinary tests; the numbers are for these only.
TESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "killed at random": ("tests/acceptance/reliability/test_random_kills.py",),
    "states of the document after a power cut": ("tests/crash/test_power_cut_states.py",),
    "EIO, full disk": ("tests/crash/faults/test_failing_disk.py",),
    "read-only": ("tests/acceptance/reliability/test_read_only.py",),
}
MORE: Final = {"KILL_ROUNDS": "60"}
PARTS: Final = (*KILLED, *TRIALS, *TESTS, *LATER)
RECORD: Final = RunReport(Path(__file__).with_name("RESULTS.md"), "The last full run of `make crash`", PARTS)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", help="a word of the parts' names")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--most", type=int, help="trials of a part")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> int:
    options = arguments()
    done = RECORD.finished_parts() if options.resume else set()
    chosen = [
        part for part in PARTS if part not in done and (not options.only or any(word in part for word in options.only))
    ]
    if not chosen:
        print("nothing to do" if done else f"there is no such part; there are: {'; '.join(PARTS)}")
        return 0 if done else 2
    with _cloud(chosen) as cloud, ProcessPoolExecutor(options.jobs) as pool:
        failed = [part for part in chosen if not _run_part(part, _trials(part, pool, cloud, options), options)]
    if failed:
        print(f"failed: {'; '.join(failed)}", flush=True)
    return min(len(failed), 1)


def _trials(
    part: str, pool: ProcessPoolExecutor, cloud: Cloud | None, on_progress: argparse.Namespace
) -> Iterator[Outcome]:
    if part in TESTS:
        return _run_pytest(TESTS[part], on_progress.jobs)
    if part in TRIALS:
        trial, count = TRIALS[part]
        return _all(part, pool, trial, range(on_progress.seed, on_progress.seed + (on_progress.most or count)))
    if part in KILLED:
        points = points_of(BY_NAME[KILLED[part]])
    else:
        try:
            points = pool.submit(_later_points, LATER[part], cloud).result()
        except Exception as error:  # noqa: BLE001 - it failed without a kill
            return iter([(FAILED, f"{part}, without a kill: {_describe_error(error)}")])
    return _all(part, pool, partial(_point, cloud=cloud), points[: on_progress.most])


def _run_part(part: str, trials: Iterator[Outcome], on_progress: argparse.Namespace) -> bool:
    """Run all trials of a part, print the results, and record them if the part is complete."""
    begun = time.monotonic()
    outcomes: Counter[str] = Counter()
    complaints = []
    for outcome, complaint in trials:
        outcomes[outcome] += 1
        if complaint:
            complaints.append(complaint)
            print(complaint, file=sys.stderr, flush=True)
    seconds = time.monotonic() - begun
    print(f"{part}: {dict(outcomes)} in {seconds:.0f} s", flush=True)
    if on_progress.most is None:
        RECORD.write(
            PartResult.of(part, outcomes, complaints, seed=on_progress.seed, seconds=seconds, when=datetime.now(UTC))
        )
    return not outcomes[FAILED]


# --- crash points ------------------------------------------------------------------------------------------


@contextmanager
def _cloud(parts: Sequence[str]) -> Iterator[Cloud | None]:
    points = KILLED | LATER
    if any(part in points and BY_NAME[points[part]].needs_cloud for part in parts):
        with running_cloud() as cloud:
            yield cloud
    else:
        yield None


def _new_user(cloud: Cloud) -> User:
    email, password = f"{uuid4().hex}@example.com", uuid4().hex
    return User(email, password, cloud.sign_up(email, password))


def _later_points(name: str, cloud: Cloud | None) -> list[CrashPoint]:
    found = passages_of(BY_NAME[name], cloud, None if cloud is None else partial(_new_user, cloud))
    return list(later_points(BY_NAME[name], found))


def _point(point: CrashPoint, cloud: Cloud | None) -> Outcome:
    try:
        end = run_point(point, cloud, None if cloud is None else partial(_new_user, cloud))
    except Exception as error:  # noqa: BLE001 - any exception is the result of this point
        return FAILED, f"{point}: {_describe_error(error)}"
    return (
        "killed at the point" if end is ExitReason.AT_THE_POINT else "left or killed at the end, point not reached"
    ), ""


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:LONGEST_COMPLAINT]}"


# --- trials and tests --------------------------------------------------------------------------------------


def _all(
    name: str, pool: ProcessPoolExecutor, trial: Callable[..., Outcome], given: Iterable[object]
) -> Iterator[Outcome]:
    """Run all trials, with a progress bar."""
    running = [pool.submit(trial, one) for one in given]
    try:
        with Progress(console=Console(stderr=True)) as progress:
            ended = progress.track(as_completed(running), total=len(running), description=name)
            for number, done in enumerate(ended, start=1):
                if number % TELL_EVERY == 0 and not progress.console.is_terminal:
                    print(f"{name}: {number} of {len(running)}", file=sys.stderr, flush=True)
                yield done.result()
    finally:  # interrupted
        for one in running:
            one.cancel()


def _run_pytest(files: Sequence[str], jobs: int) -> Iterator[Outcome]:
    """The tests of these files, by the report that pytest writes."""
    with tempfile.TemporaryDirectory(prefix="xiaobai-crash-") as folder:
        report = Path(folder) / "report.xml"
        command = (sys.executable, "-m", "pytest", "-n", str(jobs), f"--junitxml={report}", *files)
        subprocess.run(command, cwd=REPOSITORY, env={**MORE, **os.environ}, stdout=sys.stderr, check=False)
        if not report.exists():
            yield FAILED, f"{' '.join(files)}: pytest did not get as far as a report"
            return
        for case in ET.parse(report).iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            unlucky = next((found for found in case if found.tag in {"failure", "error"}), None)
            if unlucky is not None:
                yield FAILED, f"{name}: {' '.join((unlucky.get('message') or '').split())[:LONGEST_COMPLAINT]}"
            else:
                yield ("passed" if case.find("skipped") is None else "skipped"), ""


if __name__ == "__main__":
    sys.exit(main())
