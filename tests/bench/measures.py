"""What is measured: each function returns rows of a number, its floor in the same run, and the target of the design."""

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.sidecar import COMMAND, REPOSITORY, Home, Sidecar, eventually

STARTS: Final = 9
CALLS: Final = 600
UPDATES: Final = 200
EDITS: Final = 40
IDLE_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Row:
    """One number. `ratio` is value / floor; `target` says what the design asks, `met` whether it is."""

    name: str
    value: float
    unit: str
    floor: float | None
    target: str
    met: bool

    @property
    def ratio(self) -> float | None:
        return None if not self.floor else self.value / self.floor


def cold_start(folder: Path) -> Iterator[Row]:
    """Spawn to the first `load`, with a memory that exists, against a bare asyncio echo's start."""
    home = Home(folder / "cold")
    home.run("update", "你好", "好的")
    ours, floor = (
        statistics.median(_first_answer_ms(command, home.environment) for _ in range(STARTS))
        for command in ([*COMMAND, "serve"], [sys.executable, "-m", "tests.bench.echo"])
    )
    yield Row("cold start to first load", ours, "ms", floor, "<= 400 ms (goal 150)", ours <= 400)


def warm_load(folder: Path) -> Iterator[Row]:
    """`memory/load` with waitMs 0, one after another, against an echo of the same bytes."""
    home = Home(folder / "warm")
    with Sidecar(home) as sidecar:
        for number in range(30):
            sidecar.update(f"问题 {number}", "回答" * 20)
        eventually(lambda: home.file.exists() and "问题 29" in home.file.read_text("utf-8"))
        answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": sidecar.load(waitMs=0)}, ensure_ascii=False)
    with _child([*COMMAND, "serve"], home.environment) as child:
        _ask(child, _request("sync/status", {}))  # warm: everything is imported and open
        ours = _calls_per_second(child, _request("memory/load", {"waitMs": 0}))
    with _child([sys.executable, "-m", "tests.bench.echo", answer], home.environment) as echo:
        floor = _calls_per_second(echo, _request("memory/load", {"waitMs": 0}))
    yield Row("warm load, sequential", ours, "calls/s", floor, ">= 0.5 x echo", ours >= 0.5 * floor)


def update_latency(folder: Path) -> Iterator[Row]:
    """`memory/update` against a raw SQLite commit with synchronous=FULL on the same disk."""
    home = Home(folder / "update")
    with _child([*COMMAND, "serve"], home.environment) as child:
        _ask(child, _request("sync/status", {}))
        requests = [
            _request("memory/update", {"userMessage": f"第 {number} 个问题", "aiResponse": "回答" * 30})
            for number in range(UPDATES)
        ]
        times = [_timed_ms(partial(_ask, child, request)) for request in requests]
    ours, floor = statistics.median(times[20:]), _raw_commit_ms(folder / "raw.db")
    met = ours <= 1.5 * floor or ours <= floor + 2.0
    yield Row("update p50", ours, "ms", floor, "<= 1.5 x raw commit, or 2 ms above", met)
    yield Row("update p95", statistics.quantiles(times[20:], n=20)[18], "ms", floor, "reported", met=True)


def edit_to_event(folder: Path) -> Iterator[Row]:
    """A line saved in the file until its event can be read; the floor is the wait for a second equal look."""
    home = Home(folder / "edit")
    with Sidecar(home) as sidecar:
        sidecar.update("开始", "好的")
        eventually(home.file.exists)
        times = [_edit_ms(home, sidecar, number) for number in range(EDITS)]
        before = sidecar.call("events/tail", limit=1)["nextOffset"]
        sidecar.update("我们自己写的", "不是编辑")
        eventually(lambda: "我们自己写的" in home.file.read_text("utf-8"))
        time.sleep(1.0)  # long enough for an echo to show itself, if there were one
        echoes = sidecar.call("events/tail", limit=1)["nextOffset"] - before - 1
    p95 = statistics.quantiles(times, n=20)[18]
    yield Row("edit on disk to durable event, p95", p95, "ms", 50.0, "<= 300 ms", p95 <= 300)
    yield Row("events made by our own writes", echoes, "events", None, "0", echoes == 0)


def idle(folder: Path) -> Iterator[Row]:
    """Memory and processor of a sidecar that nobody asks anything."""
    with Sidecar(Home(folder / "idle")) as sidecar:
        yield from at_rest(sidecar, "without cloud", most_mb=60)


def at_rest(sidecar: Sidecar, where: str, *, most_mb: float) -> Iterator[Row]:
    """What a running sidecar holds and spends while it waits."""
    sidecar.call("sync/status")
    time.sleep(2.0)  # let it finish starting
    before = _cpu_seconds(sidecar.process.pid)
    time.sleep(IDLE_SECONDS)
    percent = (_cpu_seconds(sidecar.process.pid) - before) / IDLE_SECONDS * 100
    rss = _rss_mb(sidecar.process.pid)
    yield Row(f"idle RSS {where}", rss, "MB", None, f"<= {most_mb} MB", rss <= most_mb)
    yield Row(f"idle CPU {where}", percent, "%", None, "< 0.5 %", percent < 0.5)


def _edit_ms(home: Home, sidecar: Sidecar, number: int) -> float:
    text = home.file.read_text("utf-8")
    home.file.write_text(text.replace("### 工作习惯\n", f"### 工作习惯\n- 习惯 {number}\n", 1), "utf-8")
    began = time.perf_counter()
    sidecar.until("events/tail", lambda answer: f"习惯 {number}" in str(answer["events"]), limit=1)
    return (time.perf_counter() - began) * 1000


def _raw_commit_ms(path: Path) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("create table t (a integer primary key, b text)")

    def commit() -> None:
        connection.execute("begin immediate")
        connection.execute("insert into t (b) values (?)", ("x" * 800,))
        connection.execute("commit")

    times = [_timed_ms(commit) for _ in range(UPDATES)]
    connection.close()
    return statistics.median(times[20:])


def _first_answer_ms(command: list[str], environment: dict[str, str]) -> float:
    """From the spawn to the first answer; the child's leaving is not counted."""
    began = time.perf_counter()
    with _child(command, environment) as child:
        _ask(child, _request("memory/load", {}))
        return (time.perf_counter() - began) * 1000


@contextmanager
def _child(command: list[str], environment: dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    child = subprocess.Popen(
        command,
        env=environment,
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield child
    finally:
        assert child.stdin is not None
        child.stdin.close()
        child.wait(10)


def _request(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"


def _calls_per_second(child: "subprocess.Popen[bytes]", request: bytes) -> float:
    """Sequential calls by a client that does nothing else."""
    began = time.perf_counter()
    for _ in range(CALLS):
        _ask(child, request)
    return CALLS / (time.perf_counter() - began)


def _ask(child: "subprocess.Popen[bytes]", request: bytes) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(request)
    child.stdin.flush()
    assert child.stdout.readline()


def _timed_ms(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the process has no VmRSS")
