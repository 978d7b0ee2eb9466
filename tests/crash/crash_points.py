"""Crash points: enumerate them and run one."""

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from signal import SIGKILL

from tests.cloud.fixtures import Cloud, User
from tests.crash.crash_steps import When
from tests.crash.environment import CrashEnvironment, SidecarDied
from tests.crash.scenarios.scenario import BY_NAME, SCENARIOS, Scenario

Passages = Counter[tuple[str, When]]
SIDES: tuple[When, When] = ("before", "after")


@dataclass(frozen=True, order=True)
class CrashPoint:
    """Die at the `number`-th passage of this side of a step."""

    scenario: str
    step: str
    when: When
    number: int = 1

    def __str__(self) -> str:
        return f"{self.scenario}: {self.when} {self.step} ({self.number})"


class ExitReason(Enum):
    """How the process of a point ended."""

    AT_THE_POINT = "at the point"
    NOT_REACHED = "not reached"  # a later passage that only another run had


def points_of(scenario: Scenario) -> list[CrashPoint]:
    """Both sides of every promised step, at the first passage."""
    return [CrashPoint(scenario.name, step, when) for step in scenario.steps for when in SIDES]


def sample(count: int, seed: int) -> list[CrashPoint]:
    """A sample of first passages, equally many of each scenario."""
    chance = random.Random(seed)
    shuffled = [chance.sample(points, len(points)) for points in map(points_of, SCENARIOS)]
    turns = [points[turn] for turn in range(count) for points in shuffled if turn < len(points)]
    return turns[:count]


def later_points(scenario: Scenario, passages: Passages) -> Iterator[CrashPoint]:
    """The second and last passages, if a run has them, and the steps that it passes without promising to."""
    for (step, when), count in sorted(passages.items()):
        numbers = {2, count} - {1} if step in scenario.steps else {1, count}
        yield from (CrashPoint(scenario.name, step, when, number) for number in sorted(numbers) if number <= count)


def passages_of(scenario: Scenario, cloud: Cloud | None, new_user: Callable[[], User] | None) -> Passages:
    """The passages of an undisturbed run, which is checked like the others."""
    with tempfile.TemporaryDirectory(prefix="xiaobai-crash-") as folder:
        noted = Path(folder) / "passages"
        world = _prepare_environment(scenario, Path(folder), cloud, new_user)
        with world.crashing_sidecar("--note", str(noted)) as sidecar:
            scenario.act(world, sidecar)
        assert sidecar.process.returncode == 0
        _check(scenario, world)
        found: Passages = Counter()
        for line in noted.read_text().splitlines():
            step, _, when = line.rpartition(":")
            found[step, "before" if when == "before" else "after"] += 1
    return found


def run_point(point: CrashPoint, cloud: Cloud | None, new_user: Callable[[], User] | None) -> ExitReason:
    """Run until the point, die there, start again. AssertionError if a check fails then."""
    scenario = BY_NAME[point.scenario]
    with tempfile.TemporaryDirectory(prefix="xiaobai-crash-") as folder:
        world = _prepare_environment(scenario, Path(folder), cloud, new_user)
        end = crash_at_step(scenario, world, f"{point.step}:{point.when}:{point.number}")
        if end is ExitReason.NOT_REACHED and point.number == 1 and point.step in scenario.steps:
            raise AssertionError(f"{point}: never passed")
        _check(scenario, world)
    return end


def crash_at_step(scenario: Scenario, world: CrashEnvironment, at: str) -> ExitReason:
    sidecar = world.crashing_sidecar("--at", at)
    try:
        scenario.act(world, sidecar)
    except SidecarDied:
        sidecar.process.wait(10)  # its pipes close a moment before it can be waited for
    finally:
        if sidecar.process.poll() is None and not sidecar._reader.is_alive():
            sidecar.process.wait(10)
        reached = sidecar.process.poll() == -SIGKILL
        if sidecar.process.poll() is None:
            sidecar.kill()
    assert reached or sidecar.process.returncode == 0, f"ended by itself: {sidecar.process.returncode}"
    return ExitReason.AT_THE_POINT if reached else ExitReason.NOT_REACHED


def _prepare_environment(
    scenario: Scenario, folder: Path, cloud: Cloud | None, new_user: Callable[[], User] | None
) -> CrashEnvironment:
    world = CrashEnvironment(
        folder, cloud if scenario.needs_cloud else None, new_user, scenario.newer_schema, dict(scenario.settings)
    )
    scenario.prepare(world)
    return world


def _check(scenario: Scenario, world: CrashEnvironment) -> None:
    world.age_temporary_files()
    with world.sidecar() as sidecar:
        scenario.check(world, sidecar)
    world.check_closed()
