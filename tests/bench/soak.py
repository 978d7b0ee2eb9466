"""A long run of one device with a cloud: five updates a second, an edit of the file each ten seconds.

`python -m tests.bench.soak --minutes 20` prints one line a minute, and at the end whether anything was lost. Not part
of `make bench`, which would take so much longer.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.bench import process_client
from tests.bench.cases.with_cloud import home_of, new_user
from tests.bench.process_client import measure_ms
from tests.cloud.fixtures import running_cloud
from tests.sidecar import Home, Sidecar, TimedSidecar, wait_until

UPDATES_PER_SECOND: Final = 5
SECONDS_PER_EDIT: Final = 10
REPORT_SECONDS: Final = 60
MAX_GROWTH_MB: Final = 10.0  # of the RSS, from the first report on
MAX_LOAD_MS: Final = 50.0  # p95 of `load` with waitMs 0, on a quiet machine
HABITS: Final = "### 工作习惯\n"


@dataclass
class Minute:
    """What one report holds; times in ms, sizes in MB."""

    updates: list[float] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    rss: float = 0.0
    database: float = 0.0
    machine_load: float = 0.0

    @property
    def line(self) -> str:
        update, load = _p95(self.updates), _p95(self.loads)
        return (
            f"{len(self.updates) / REPORT_SECONDS:5.2f} updates/s, p95 {update:6.1f} ms; load p95 {load:6.1f} ms; "
            f"RSS {self.rss:6.1f} MB; database {self.database:6.1f} MB; load average {self.machine_load:.1f}"
        )


def run(home: Home, sidecar: Sidecar, minutes: int) -> Iterator[Minute]:
    """Load the sidecar; one report a minute. Raises AssertionError if an update or a typed line is lost."""
    events, typed = {sidecar.update("今天的安排", "好的")["eventId"]}, 0
    wait_until(home.file.exists)
    began = time.monotonic()
    for minute in range(minutes):
        report = Minute()
        while (passed := time.monotonic() - began) < (minute + 1) * REPORT_SECONDS:
            if passed > typed * SECONDS_PER_EDIT:
                type_line(home, typed)
                typed += 1
            number = len(events)
            said = (f"第 {number} 个问题是什么", f"第 {number} 个回答")
            before = time.perf_counter()
            events.add(sidecar.update(*said)["eventId"])
            report.updates.append((time.perf_counter() - before) * 1000)
            if number % UPDATES_PER_SECOND == 0:
                report.loads.append(measure_ms(lambda: sidecar.load(waitMs=0)))
            time.sleep(max(0.0, began + len(events) / UPDATES_PER_SECOND - time.monotonic()))
        report.rss = process_client.rss_mb(sidecar.process.pid)
        report.database = sum(part.stat().st_size for part in home.database.parent.glob("memory.db*")) / 2**20
        report.machine_load = os.getloadavg()[0]
        yield report
    wait_until(lambda: all(f"- 手写第 {number} 行\n" in sidecar.load()["document"] for number in range(typed)))
    wait_until(lambda: sidecar.call("sync/status")["pending"] == 0)
    assert recorded(sidecar) == events, "an acknowledged update is missing, or there twice"


def type_line(home: Home, number: int) -> None:
    """Type one line, as an editor that has just read the file."""
    if home.file.exists():
        text = home.file.read_text("utf-8")
        home.file.write_text(text.replace(HABITS, f"{HABITS}- 手写第 {number} 行\n", 1), "utf-8")


def recorded(sidecar: Sidecar) -> set[str]:
    """The ids of the exchanges in the log."""
    found, after = list[str](), 0
    while (page := sidecar.call("events/read", types=["exchange_recorded"], after=after, limit=1000))["events"]:
        found += [event["event_id"] for event in page["events"]]
        after = page["nextOffset"]
    assert len(found) == len(set(found))
    return set(found)


def _p95(values: list[float]) -> float:
    """The 95th percentile; a starved machine may have made one call in a minute, or none."""
    return statistics.quantiles(values, n=20)[-1] if len(values) > 1 else sum(values)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.bench.soak")
    parser.add_argument("--minutes", type=int, default=20)
    options = parser.parse_args()
    minutes = list[Minute]()
    with tempfile.TemporaryDirectory(prefix="xiaobai-soak-") as folder, running_cloud() as cloud:
        user, home = new_user(cloud), home_of(Path(folder), cloud)
        with TimedSidecar(home) as sidecar:
            sidecar.log_in(user.email, user.password)
            for minute in run(home, sidecar, options.minutes):
                minutes.append(minute)
                print(f"{len(minutes):3} min  {minute.line}", file=sys.stderr, flush=True)
    growth = minutes[-1].rss - minutes[0].rss
    load = _p95([value for minute in minutes for value in minute.loads])
    print(f"RSS grew by {growth:.1f} MB (<= {MAX_GROWTH_MB:.0f}); load p95 {load:.1f} ms (<= {MAX_LOAD_MS:.0f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
