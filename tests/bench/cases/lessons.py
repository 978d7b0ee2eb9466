"""Processor time beside many lessons: of a running sidecar for a whole call, and of a match in a hook without one."""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from sync.lessons.quick_match import match_in
from tests.bench.cases.one_device import serve
from tests.bench.measurement import Measurement
from tests.bench.process_client import cpu_seconds, request, run_program
from tests.sidecar import Home

LESSONS: Final = 10_000
AT_ONCE: Final = 1_000  # imported by one command
CALLS: Final = 100
MOST_MS: Final = 15.0
MOST_SHOW_MS: Final = 50.0  # it reads the files of the lessons; to render them would take 300 ms
IDLE_SECONDS: Final = 3.0  # longer than the files wait for another change
WORDS: Final = (
    "queue",
    "worker",
    "broker",
    "cache",
    "index",
    "batch",
    "token",
    "schema",
    "队列",
    "缓存",
    "连接",
    "超时",
)


def rows(folder: Path) -> Iterator[Measurement]:
    """An error that is known, one that is similar to many, and one that is new; the slowest counts."""
    home = Home(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, LESSONS, AT_ONCE):
        records = [_record(number) for number in range(first, first + AT_ONCE)]
        (folder / "lessons.json").write_text(json.dumps({"errors": records}), "utf-8")
        home.run("lessons", "import", str(folder / "lessons.json"))
    failures = [
        {"tool": "Bash", "error": _message(LESSONS // 2), "exitCode": 1},
        {"tool": "Bash", "error": f"{_message(7)} again and again", "exitCode": 1},
        {"tool": "Bash", "error": "ValueError: nothing like this has happened before here", "exitCode": 1},
    ]
    with run_program(serve(home)) as program:
        asks = [partial(program.ask, request("lessons/match", **failure)) for failure in failures]
        used = partial(cpu_seconds, program.process.pid)
        _wait_until_idle(used)
        slowest = max(_cpu_ms(used, ask) for ask in asks)
        show = _cpu_ms(used, partial(program.ask, request("lessons/show", id=_record(7)["id"])))
    yield _row(f"match, {LESSONS:,} lessons", slowest, MOST_MS)
    data = home.database.parents[2]
    quick: list[Any] = [partial(match_in, data, failure) for failure in failures]
    yield _row("the same in a hook", max(_cpu_ms(time.process_time, ask) for ask in quick), MOST_MS)
    yield _row(f"show, {LESSONS:,} lessons", show, MOST_SHOW_MS)


def _cpu_ms(used: Callable[[], float], ask: Callable[[], object]) -> float:
    """Milliseconds of processor time of one call, of `CALLS` after a first one that imports what they need."""
    ask()
    before = used()
    for _ in range(CALLS):
        ask()
    return (used() - before) / CALLS * 1000


def _wait_until_idle(used: Callable[[], float]) -> None:
    """Until the sidecar has indexed the lessons and written their files."""
    before = -1.0
    while (now := used()) - before > IDLE_SECONDS * 0.05:
        before = now
        time.sleep(IDLE_SECONDS)


def _row(name: str, value: float, most: float) -> Measurement:
    return Measurement(name, value, "ms CPU", None, f"<= {most:g} ms", met=value <= most)


def _message(number: int) -> str:
    words = [WORDS[(number >> shift) % len(WORDS)] for shift in (0, 3, 6, 9)]
    return f"RuntimeError: the {' '.join(words)} of service{number} is 'stuck{number % 50}'"


def _record(number: int) -> dict[str, Any]:
    error = {"type": "RuntimeError", "message": _message(number).partition(": ")[2]}
    return {
        "id": f"err-20260225-{number:05}",
        "language": "python",
        "error": error,
        "solution": {"description": f"restart service{number}"},
        "occurrences": 1,
    }
