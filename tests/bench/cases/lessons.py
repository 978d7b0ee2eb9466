"""How long a match takes beside many lessons: the whole call of a running sidecar, and that of a hook without one."""

import json
import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from sync.lessons.quick_match import match_in
from tests.bench.cases.one_device import serve
from tests.bench.measurement import Measurement
from tests.bench.process_client import measure_ms, request, run_program
from tests.sidecar import Home

LESSONS: Final = 10_000
AT_ONCE: Final = 1_000  # imported by one command
CALLS: Final = 100
MOST_MS: Final = 15.0
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
        slowest = max(statistics.median(measure_ms(ask) for _ in range(CALLS)) for ask in asks)
    yield _row(f"match, {LESSONS:,} lessons", slowest)
    data = home.database.parents[2]
    quick: list[Any] = [partial(match_in, data, failure) for failure in failures]
    yield _row("the same in a hook", max(statistics.median(measure_ms(ask) for _ in range(CALLS)) for ask in quick))


def _row(name: str, value: float) -> Measurement:
    return Measurement(name, value, "ms", None, f"<= {MOST_MS:g} ms", met=value <= MOST_MS)


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
