"""The record of one run: what was measured and on what machine; the tables of docs/speed.md come from it alone.

No host name, user or path is in it. Written by `make bench RECORD=1`, on a machine that does nothing else.
"""

import json
import os
import platform
import sqlite3
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from tests.bench.cases.basic_memory import PeerMeasurement
from tests.bench.cases.log_growth import GrowthPoint
from tests.bench.measurement import Measurement, figure
from tests.bench.plot import GROWTH, growth_svg
from tests.cloud.database import postgres
from tests.sidecar import REPOSITORY

RECORD: Final = REPOSITORY / "docs/bench/latest.json"
PLOT: Final = REPOSITORY / "docs/bench/growth.svg"
CHAPTER: Final = REPOSITORY / "docs/speed.md"
BEGIN: Final = "<!-- make bench RECORD=1 writes from here -->"
END: Final = "<!-- to here -->"
QUIET: Final = 0.5  # load average for each processor above which another program was measured as well


@dataclass(frozen=True)
class MachineInfo:
    """What the numbers depend on. `load`: the load average of the last minute before the run."""

    cores: int
    memory_gb: float
    kernel: str
    python: str
    sqlite: str
    postgresql: str
    node: str
    load: float

    @classmethod
    def here(cls) -> Self:
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return cls(
            cores=os.cpu_count() or 1,
            memory_gb=round(pages / 2**30, 1),
            kernel=f"{platform.system()} {platform.release().partition('-')[0]}",
            python=platform.python_version(),
            sqlite=sqlite3.sqlite_version,
            postgresql=postgres.find_installation().version,
            node=_output_of(["node", "--version"]).removeprefix("v"),
            load=round(os.getloadavg()[0], 2),
        )

    @property
    def quiet(self) -> bool:
        return self.load <= QUIET * self.cores


@dataclass(frozen=True)
class BenchmarkReport:
    """One run."""

    date: str
    machine: MachineInfo
    rows: Sequence[Measurement]
    growth: Sequence[GrowthPoint]
    notes: Sequence[PeerMeasurement]

    @classmethod
    def begin(cls) -> Self:
        return cls(datetime.now(UTC).date().isoformat(), MachineInfo.here(), [], [], [])

    @classmethod
    def read(cls, path: Path = RECORD) -> Self:
        found = json.loads(path.read_text("utf-8"))
        return cls(
            date=found["date"],
            machine=MachineInfo(**found["machine"]),
            rows=[Measurement(**row) for row in found["rows"]],
            growth=[GrowthPoint(**point) for point in found["growth"]],
            notes=[PeerMeasurement(**peer) for peer in found["notes"]],
        )

    def write(self) -> None:
        """Write the record, its plot and the tables of docs/speed.md."""
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_text(json.dumps(_rounded(asdict(self)), indent=1, ensure_ascii=False) + "\n", "utf-8")
        BenchmarkReport.read().publish()

    def publish(self) -> None:
        """Write the plot and the chapter from the stored figures."""
        PLOT.write_text(growth_svg(self.growth), "utf-8")
        CHAPTER.write_text(with_page(CHAPTER.read_text("utf-8"), page(self)), "utf-8")


def with_page(chapter: str, made: str) -> str:
    """The chapter with the generated part between its two marks."""
    before, begin, rest = chapter.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the chapter has no place for the results")
    return f"{before}{BEGIN}\n{made}{END}{after}"


def page(record: BenchmarkReport) -> str:
    """The tables of a run, in Markdown."""
    return "\n".join(
        [*_machine(record), "", *_rows(record.rows), "", *_growth(record.growth), *_notes(record.notes), ""]
    )


def _machine(record: BenchmarkReport) -> Iterable[str]:
    machine = record.machine
    yield (
        f"Measured on {record.date}: {machine.cores} cores, {machine.memory_gb:g} GB, {machine.kernel}, "
        f"Python {machine.python}, SQLite {machine.sqlite}, PostgreSQL {machine.postgresql}, Node {machine.node}; "
        f"load average before the run {machine.load:g}."
    )
    if not machine.quiet:
        yield ""
        yield "**Provisional**: the machine had other work to do, which no ratio takes out."


def _rows(rows: Sequence[Measurement]) -> Iterable[str]:
    yield "| | measured | floor | ratio | others | asked | |"
    yield "|---|--:|--:|--:|---|---|---|"
    for row in rows:
        floor = "" if row.floor is None else f"{figure(row.floor)} {row.unit}"
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        others = " · ".join(f"{name} {figure(value)}" for name, value in row.peers.items())
        verdict = "✓" if row.met else "missed"
        if row.target == "reported":
            verdict = ""
        measured = f"{figure(row.value)} {row.unit}"
        yield f"| {row.name} | {measured} | {floor} | {ratio} | {others} | {row.target} | {verdict} |"


def _growth(points: Sequence[GrowthPoint]) -> Iterable[str]:
    if not points:
        return
    yield "| events in the log | " + " | ".join(f"{point.events:,}" for point in points) + " | last / first |"
    yield "|---|" + "--:|" * (len(points) + 1)
    for name, label, unit in GROWTH:
        values = [float(getattr(point, name)) for point in points]
        cells = " | ".join(f"{figure(value)} {unit}" for value in values)
        yield f"| {label} | {cells} | {values[-1] / values[0]:.2f} |"
    yield ""
    yield f"![growth of load, update, start, pull and memory with the log]({PLOT.relative_to(CHAPTER.parent)})"


def _notes(peers: Sequence[PeerMeasurement]) -> Iterable[str]:
    if not peers:
        return
    yield ""
    yield f"The same {peers[0].notes:,} notes in a program that does part of the job (`make bench PEERS=1`):"
    yield ""
    yield "| | start to first answer | write one note | read the newest | RSS |"
    yield "|---|--:|--:|--:|--:|"
    for peer in peers:
        times = " | ".join(f"{figure(value)} ms" for value in (peer.start_ms, peer.write_ms, peer.read_ms))
        yield f"| {peer.name} | {times} | {figure(peer.rss_mb)} MB |"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(inner) for inner in value]
    return value


def _output_of(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
