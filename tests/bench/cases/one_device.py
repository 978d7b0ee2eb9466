"""What is measured on one device: each function returns rows, with floors of the same run and the design's targets."""

import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench import process_client, rpc_peers
from tests.bench.measurement import Measurement
from tests.bench.process_client import IN_FLIGHT, Program, ProgramClient, measure_ms, request, run_program
from tests.sidecar import COMMAND, Home, Sidecar, TimedSidecar, wait_until

STARTS: Final = 9
ENTRIES: Final = 30
UPDATES: Final = 200
EDITS: Final = 40
BATCH: Final = 500
BATCHES: Final = 40
IDLE_SECONDS: Final = 10.0


def serve(home: Home) -> Program:
    """Our sidecar, asked for a `load` from what is here."""
    return Program([*COMMAND, "serve"], request("memory/load", waitMs=0), environment=home.environment)


def calls(folder: Path) -> Iterator[Measurement]:
    """`memory/load` with a memory that exists, against an echo of the same bytes, and others that echo them."""
    home = Home(folder / "calls")
    with TimedSidecar(home) as sidecar:
        for number in range(ENTRIES):
            sidecar.update(f"问题 {number}", "回答" * 20)
        wait_until(lambda: home.file.exists() and f"问题 {ENTRIES - 1}" in home.file.read_text("utf-8"))
        result = sidecar.load(waitMs=0)
    ours, echo, peers = serve(home), rpc_peers.echo(result), rpc_peers.peers(result)
    starts = {name: process_client.first_answer_ms(peer, STARTS) for name, peer in peers.items()}
    value, floor = process_client.first_answer_ms(ours, STARTS), process_client.first_answer_ms(echo, STARTS)
    yield Measurement("cold start to first load", value, "ms", floor, "<= 300 ms (goal 150)", value <= 300, starts)
    warm, bare = _warm(replace(ours, opening=[request("sync/status")])), _warm(echo)  # asked: all is imported and open
    others = {name: _warm(peer) for name, peer in peers.items()}

    def row(name: str, unit: str, which: Callable[[_WarmMeasurement], float], target: str, *, met: bool) -> Measurement:
        return Measurement(
            name, which(warm), unit, which(bare), target, met, {name: which(one) for name, one in others.items()}
        )

    half = warm.sequential >= bare.sequential / 2
    yield row("load, one after another", "calls/s", lambda one: one.sequential, ">= 0.5 x echo", met=half)
    yield row(f"load, {IN_FLIGHT} in flight", "calls/s", lambda one: one.in_flight, "reported", met=True)
    yield row("RSS after these calls", "MB", lambda one: one.rss, "reported", met=True)


class _WarmMeasurement(NamedTuple):
    """What a program does once everything is imported: calls a second, and the memory it holds then."""

    sequential: float
    in_flight: float
    rss: float


def _warm(program: Program) -> _WarmMeasurement:
    with run_program(program) as asked:
        return _WarmMeasurement(
            asked.calls_per_second(), asked.calls_per_second_in_flight(), process_client.rss_mb(asked.pid)
        )


def update_latency(folder: Path) -> Iterator[Measurement]:
    """`memory/update` against a raw SQLite commit with synchronous=FULL on the same disk."""
    with run_program(serve(Home(folder / "update"))) as sidecar:
        sidecar.ask(request("sync/status"))
        times = updates_ms(sidecar, UPDATES)
    ours, floor = statistics.median(times), _raw_commit_ms(folder / "raw.db")
    met = ours <= 1.5 * floor or ours <= floor + 2.0
    yield Measurement("update p50", ours, "ms", floor, "<= 1.5 x raw commit, or 2 ms above", met)
    yield Measurement("update p95", statistics.quantiles(times, n=20)[18], "ms", floor, "reported", met=True)


def updates_ms(sidecar: ProgramClient, count: int) -> list[float]:
    """How long each of so many updates took, after some to warm up."""
    requests = [
        request("memory/update", userMessage=f"第 {number} 个问题", aiResponse="回答" * 30) for number in range(count)
    ]
    return [measure_ms(partial(sidecar.ask, asked)) for asked in requests][process_client.WARM :]


def append_rate(folder: Path) -> Iterator[Measurement]:
    """`events/appendBatch` of 500 events each; the floor inserts the same texts into a table of one column."""
    batches = [
        [
            {"type": "memory_fact", "payload": {"content": f"第 {number} 批第 {at} 件事，step {at * 7}"}}
            for at in range(BATCH)
        ]
        for number in range(BATCHES)
    ]
    with TimedSidecar(Home(folder / "append")) as sidecar:
        sidecar.call("sync/status")
        began = time.perf_counter()
        for batch in batches:
            sidecar.call("events/appendBatch", events=batch)
        rate = BATCH * BATCHES / (time.perf_counter() - began)
    with closing(_raw_database(folder / "raw-append.db")) as connection:
        began = time.perf_counter()
        for batch in batches:
            connection.execute("begin immediate")
            connection.executemany("insert into t (b) values (?)", [(str(event),) for event in batch])
            connection.execute("commit")
        floor = BATCH * BATCHES / (time.perf_counter() - began)
    yield Measurement(f"append in batches of {BATCH}", rate, "events/s", floor, ">= 5000", rate >= 5000)


def edit_to_event(folder: Path) -> Iterator[Measurement]:
    """A line saved in the file until its event can be read; the floor is the wait for a second equal look."""
    home = Home(folder / "edit")
    with TimedSidecar(home) as sidecar:
        sidecar.update("开始", "好的")
        wait_until(home.file.exists)
        times = [_edit_ms(home, sidecar, number) for number in range(EDITS)]
        before = sidecar.call("events/tail", limit=1)["nextOffset"]
        sidecar.update("今天几点开会", "下午三点")  # a question: it states no fact, which would be an event of its own
        wait_until(lambda: "今天几点开会" in home.file.read_text("utf-8"))
        time.sleep(1.0)  # long enough for an echo to show itself, if there were one
        echoes = sidecar.call("events/tail", limit=1)["nextOffset"] - before - 1
    p95 = statistics.quantiles(times, n=20)[18]
    yield Measurement("edit on disk to durable event, p95", p95, "ms", 50.0, "<= 300 ms", p95 <= 300)
    yield Measurement("events made by our own writes", echoes, "events", None, "0", echoes == 0)


def idle(folder: Path) -> Iterator[Measurement]:
    """Memory and processor time of an idle sidecar."""
    with TimedSidecar(Home(folder / "idle")) as sidecar:
        yield from at_rest(sidecar, "without cloud", most_mb=70)


def at_rest(sidecar: Sidecar, where: str, *, most_mb: float) -> Iterator[Measurement]:
    """What a running sidecar holds and spends while it waits."""
    sidecar.call("sync/status")
    time.sleep(2.0)  # let it finish starting
    before = process_client.cpu_seconds(sidecar.process.pid)
    time.sleep(IDLE_SECONDS)
    percent = (process_client.cpu_seconds(sidecar.process.pid) - before) / IDLE_SECONDS * 100
    rss = process_client.rss_mb(sidecar.process.pid)
    yield Measurement(f"idle RSS {where}", rss, "MB", None, f"<= {most_mb:.0f} MB", rss <= most_mb)
    yield Measurement(f"idle CPU {where}", percent, "%", None, "< 0.5 %", percent < 0.5)


def _edit_ms(home: Home, sidecar: Sidecar, number: int) -> float:
    text = home.file.read_text("utf-8")
    home.file.write_text(text.replace("### 工作习惯\n", f"### 工作习惯\n- 习惯 {number}\n", 1), "utf-8")
    began = time.perf_counter()
    sidecar.call_until("events/tail", lambda answer: f"习惯 {number}" in str(answer["events"]), limit=1)
    return (time.perf_counter() - began) * 1000


def _raw_database(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("create table t (a integer primary key, b text)")
    return connection


def _raw_commit_ms(path: Path) -> float:
    connection = _raw_database(path)

    def commit() -> None:
        connection.execute("begin immediate")
        connection.execute("insert into t (b) values (?)", ("x" * 800,))
        connection.execute("commit")

    times = [measure_ms(commit) for _ in range(UPDATES)]
    connection.close()
    return statistics.median(times[process_client.WARM :])
