"""The processor time of a command, which is a process: without a sidecar and with one that carries it out."""

import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.bench.measurement import Measurement
from tests.sidecar import COMMAND, Home, TimedSidecar

RUNS: Final = 9
FLOOR: Final = (sys.executable, "-c", "import asyncio, sqlite3, json")
COMMANDS: Final = {
    "events append": ("events", "append", '{"type": "weather", "payload": {"text": "晴"}}'),
    "load": ("load",),
    "status": ("status",),
    "search": ("search", "晴"),
}
ALONE, WITH_SIDECAR = 7.0, 2.5  # times the floor (decision 025)


def commands(folder: Path) -> Iterator[Measurement]:
    """The median of the runs. Compiled modules are written first, as an installer does."""
    home = Home(folder / "commands")
    environment = {k: v for k, v in home.environment.items() if k != "PYTHONDONTWRITEBYTECODE"}
    yield from _rows("without a sidecar", environment, ALONE)
    with TimedSidecar(home) as sidecar:
        sidecar.call("sync/status")
        yield from _rows("with a sidecar", environment, WITH_SIDECAR)


def _rows(where: str, environment: Mapping[str, str], most: float) -> Iterator[Measurement]:
    asked = [(*COMMAND, "--json", *arguments) for arguments in COMMANDS.values()]
    for command in asked:
        _cpu_ms(command, environment)
    rounds = [[_cpu_ms(command, environment) for command in (FLOOR, *asked)] for _ in range(RUNS)]
    floor, *values = (statistics.median(times) for times in zip(*rounds, strict=True))
    for name, value in zip(COMMANDS, values, strict=True):
        target = f"<= {most} x import asyncio, sqlite3, json"
        yield Measurement(f"{name} {where}, CPU", value, "ms", floor, target, value <= most * floor)


def _cpu_ms(command: Sequence[str], environment: Mapping[str, str]) -> float:
    before = _children_seconds()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return (_children_seconds() - before) * 1000


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
