"""The record of `make sim SEEDS=5000 RECORD=1`.

The figures are kept in `results.json`; RESULTS.md and a part of docs/guarantees.md come from them alone.
"""

import json
import os
import platform
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final, Self

from tests.run_report import REPOSITORY, commit
from tests.simulation.seed_run import LOOP, NO_FAULT, OTHERWISE, SORTS, SeedResult
from tests.simulation.workload.plan import (
    ACTS,
    ASKED,
    ASKING,
    ASKS,
    AWAY,
    BESIDES,
    ERASED,
    ERASES,
    FEW_ASKED,
    FEW_DIRECT,
    FEW_MET,
    FEW_RETURNS,
    FEW_STATED,
    FEW_TAUGHT,
    FEWEST,
    GOES_AWAY,
    IS_SLOW,
    KINDS,
    LAN,
    LOGGED_OUT,
    MEETS,
    MEETS_DIRECTLY,
    MOST,
    MOST_ASKED,
    MOST_DIRECT,
    MOST_MET,
    MOST_PAIRED,
    MOST_PAUSES,
    MOST_RETURNS,
    MOST_STATED,
    MOST_TAUGHT,
    PAIRING,
    PAIRS,
    PAUSES,
    PAUSING,
    RATES,
    RETURNING,
    RETURNS,
    SLOW,
    SLOWEST,
    STATES,
    STATING,
    TEACHES,
    TEACHING,
    TOGETHER,
)

FIGURES: Final = Path(__file__).with_name("results.json")
RESULTS: Final = Path(__file__).with_name("RESULTS.md")
CHAPTER: Final = REPOSITORY / "docs/guarantees.md"
BEGIN: Final = "<!-- make sim RECORD=1 writes from here -->"
END: Final = "<!-- make sim RECORD=1 writes to here -->"
PROMISED: Final = 5_000  # histories; a shorter run says that it is one
AGAIN: Final = 200  # seeds that also run in a second process
UNITS: Final = {"delay": "s"}  # of RATES; the others are probabilities
DONE: Final[Mapping[str, str]] = {  # what users do besides, by action
    "search": "a word that must be found is searched",
    "remember": "a conversation is kept as a daily record",
    "edit page": "a line is added to a day's page, or a session removed from it",
    "mark": "a daily record is marked as important",
    "put away": "a daily record is put away",
    "forget": "an event, or all events with a certain word, are erased",
    "archive": "retention archives old events, but none that a follower has not read",
}


@dataclass(frozen=True)
class FaultKindResult:
    """One kind of fault. `with_losses`: histories with it, others beside, in which this program lost a word."""

    kind: str
    histories: int
    with_losses: int
    original_remembered: int
    original_lost: int

    @property
    def original_share(self) -> float:
        return self.original_lost / max(1, self.original_remembered)


@dataclass(frozen=True)
class BugDetections:
    """`histories`: after how many the first half of those found was found."""

    planted: int
    found: int
    histories: float


@dataclass(frozen=True)
class SimulationReport:
    """One run. `broken`: histories by kind of defect; `unlike`: seeds whose two traces differ.

    `asking`: histories in which people also search, keep daily records, forget and archive. `machine`: what it took
    its `seconds` on; `floor`: the median seconds of a bare loop there, 0 if none was timed.
    """

    date: str
    commit: str
    seconds: float
    first: int
    histories: int
    events: int
    facts: int
    broken: Mapping[str, int]
    failed: Sequence[int]
    again: int
    unlike: Sequence[int]
    bugs: BugDetections
    original_remembered: int
    original_lost: int
    original_histories: int
    faults: Sequence[FaultKindResult]
    asking: int = 0
    machine: str = ""
    floor: float = 0.0

    @classmethod
    def of(
        cls,
        results: Sequence[SeedResult],
        again: Mapping[int, str],
        bugs: Sequence[int | None],
        *,
        seconds: float,
    ) -> Self:
        """`again`: trace hashes of another process; `bugs`: the first seed that showed each, None if none did."""
        broken = Counter(sort for result in results for sort in result.sorts)
        found = [seed + 1 for seed in bugs if seed is not None]
        return cls(
            date=datetime.now(UTC).date().isoformat(),
            commit=commit(),
            seconds=round(seconds),
            first=min(result.seed for result in results),
            histories=len(results),
            events=sum(result.events for result in results),
            facts=sum(result.facts for result in results),
            broken={sort: broken[sort] for sort in (*SORTS, OTHERWISE)},
            failed=sorted(result.seed for result in results if result.defects),
            again=len(again),
            unlike=sorted(one.seed for one in results if again.get(one.seed, one.digest) != one.digest),
            bugs=BugDetections(len(bugs), len(found), median(found) if found else 0),
            original_remembered=sum(result.original[0] for result in results),
            original_lost=sum(result.original[1] for result in results),
            original_histories=sum(1 for result in results if result.original[1]),
            faults=[_fault(kind, results) for kind in (NO_FAULT, *KINDS, *BESIDES)],
            asking=sum(ASKING in result.kinds for result in results),
            machine=_machine(),
            floor=round(median([result.floor for result in results if result.floor is not None] or [0.0]), 6),
        )

    @classmethod
    def read(cls, path: Path = FIGURES) -> Self:
        found = json.loads(path.read_text("utf-8"))
        bugs, faults = BugDetections(**found.pop("bugs")), [FaultKindResult(**fault) for fault in found.pop("faults")]
        return cls(**found, bugs=bugs, faults=faults)

    @property
    def bound(self) -> float | None:
        """95 % sure that not more of such histories fail (3/N); None if one did."""
        return None if self.failed else 3 / self.histories

    def write(self) -> None:
        """The figures, and what is made of them."""
        FIGURES.write_text(json.dumps(asdict(self), indent=1) + "\n", "utf-8")
        RESULTS.write_text(page(self), "utf-8")
        CHAPTER.write_text(with_part(CHAPTER.read_text("utf-8"), part(self)), "utf-8")


def _machine() -> str:
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.python_compiler()}"


def _fault(kind: str, results: Collection[SeedResult]) -> FaultKindResult:
    alone = [result.alone[kind] for result in results if kind in result.alone]
    met = [result for result in results if kind in result.kinds] if kind != NO_FAULT else []
    lost = sum(1 for result in met if "lost" in result.sorts)
    return FaultKindResult(kind, len(met), lost, sum(one for one, _ in alone), sum(two for _, two in alone))


def page(record: SimulationReport) -> str:
    """RESULTS.md."""
    return "\n".join(
        [
            "# The last run of `make sim`",
            "",
            "Written by the run itself (`make sim SEEDS=5000 RECORD=1`), from `results.json`. Seeds of any run",
            "that failed are in `test_simulator.py` (`FOUND`), fixed.",
            "",
            *_run(record),
            "",
            *_counts(record),
            "",
            "## Beside the original algorithm",
            "",
            (f"In the same histories, with all faults, the original algorithm loses {_describe_losses(record)},"),
            f"in {record.original_histories:,} histories. It is written from its description (`original_app.py`)",
            "and does not react to every fault. Below, each fault alone: the same histories, all others switched",
            "off for the original. This program had them all together.",
            "",
            *_table(record.faults),
            "",
            "## The faults",
            "",
            *_ranges([fault.kind for fault in record.faults]),
            "",
        ]
    )


def _run(record: SimulationReport) -> Iterable[str]:
    last = record.first + record.histories - 1
    took = f"{record.seconds:,.0f} s{' on ' + record.machine if record.machine else ''}"
    yield f"- {record.date}, commit {record.commit}, seeds {record.first:,} to {last:,}, {took}"
    if record.floor:
        yield f"- beside them a bare loop of {LOOP:,} additions took {record.floor * 1000:.1f} ms there (median)"
    if record.histories < PROMISED:
        yield f"- **a short run**: the promise is {PROMISED:,} histories"
    yield f"- {record.histories:,} histories, {record.events:,} events on the server, {record.facts:,} facts to keep"
    if record.asking:
        yield f"- in {record.asking:,} of them people also search, keep daily records, forget and archive"
    same = f"{record.again - len(record.unlike)} of {record.again}"
    unlike = _format_seeds(record.unlike)
    yield f"- {same} histories had the same trace hash when another process ran them again{unlike}"
    bugs = record.bugs
    yield (
        f"- {bugs.found} of {bugs.planted} planted bugs found, half of those within {bugs.histories:g} histories "
        "(`make sim-bugs`)"
    )


def _counts(record: SimulationReport) -> Iterable[str]:
    yield f"| histories in which something was … | {' | '.join(record.broken)} |"
    yield f"|---|{'--:|' * len(record.broken)}"
    yield f"| this program | {' | '.join(f'{count:,}' for count in record.broken.values())} |"
    yield ""
    if record.bound is None:
        yield f"{len(record.failed):,} histories broke a promise{_format_seeds(record.failed)}."
    else:
        yield f"None broke a promise: with 95 % certainty at most {record.bound:.2%} of such histories do (3/N)."
        yield "Seeds that once did are among them and were fixed; of other seeds, more may."


def _format_seeds(seeds: Sequence[int]) -> str:
    return f": {', '.join(map(str, seeds))}" if seeds else ""


def _table(faults: Iterable[FaultKindResult]) -> Iterable[str]:
    yield "| fault | the original lost, of its words | histories | of them with a loss, this program |"
    yield "|---|--:|--:|--:|"
    for fault in faults:
        words = f"{fault.original_lost:,} of {fault.original_remembered:,} ({fault.original_share:.1%})"
        words = "cannot be asked" if fault.kind in BESIDES else words
        met = ("", "") if fault.kind == NO_FAULT else (f"{fault.histories:,}", f"{fault.with_losses:,}")
        yield f"| {fault.kind} | {words} | {' | '.join(met)} |"


def _ranges(recorded: Collection[str]) -> Iterable[str]:
    yield f"Each is on or off per seed; {FEWEST} to {MOST} steps on 3 to 5 devices of 1 or 2 users."
    yield ""
    for kind, most in RATES.items():
        yield f"- {kind}: 0 to {most:g} s" if UNITS.get(kind) == "s" else f"- {kind}: 0 to {most:.0%}"
    for kind, actions in ACTS.items():
        yield f"- {kind}: {', '.join(name for name, _ in actions)}, as actions among the others"
    yield ""
    yield f"No fault, but in {ASKS:.0%} of the histories (`{ASKING}`), {FEW_ASKED} to {MOST_ASKED} actions more:"
    yield ""
    for name, _ in ASKED:
        yield f"- {name}: {DONE[name]}"
    yield ""
    yield f"And in {MEETS / 2:.0%} (`{TOGETHER}`), {FEW_MET} to {MOST_MET} times the app's page and an editor change"
    yield "the same line, or one removes it, before either shows the other's change."
    out = " or ".join(f"`{kind}`" for kind in sorted(LOGGED_OUT))
    yield f"In {RETURNS:.0%} of those with {out} (`{RETURNING}`), a logged-out user logs in again,"
    yield f"{FEW_RETURNS} to {MOST_RETURNS} times. In {IS_SLOW:.0%} of all (`{SLOW}`), commits wait for the disk, up to"
    yield f"{SLOWEST:g} s each, and other writers share them meanwhile."
    yield f"In {PAUSES:.0%} (`{PAUSING}`) a program empties the memory file and writes it in pieces, with pauses, up to"
    yield f"{MOST_PAUSES} times; in {ERASES:.0%} (`{ERASED}`) an editor saves text that was erased after it was loaded."
    if TEACHING in recorded:
        times = f"{FEW_TAUGHT} to {MOST_TAUGHT} times"
        yield f"In {TEACHES:.0%} (`{TEACHING}`) people teach, correct and forget lessons, {times}."
    if STATING in recorded:
        times = f"{FEW_STATED} to {MOST_STATED} times"
        yield f"In {STATES:.0%} (`{STATING}`) people state, change and retract facts, {times}."
    if LAN in recorded:
        times = f"{FEW_DIRECT} to {MOST_DIRECT} times"
        yield f"In {MEETS_DIRECTLY:.0%} (`{LAN}`) devices meet on the local network, {times};"
        yield f"in {GOES_AWAY:.0%} of those (`{AWAY}`) the cloud is away until all faults have stopped."
    if PAIRING in recorded:
        yield f"In {PAIRS:.0%} (`{PAIRING}`) devices pair by code, and forget each other, up to {MOST_PAIRED} times."


def part(record: SimulationReport) -> str:
    """The part of docs/guarantees.md: the counts, and the faults that cost the original twice what it loses without."""
    calm = record.faults[0]
    costly = [fault for fault in record.faults[1:] if fault.original_share > 2 * calm.original_share]
    worst = sorted(costly, key=lambda fault: -fault.original_share)
    broken = ", ".join(f"{count} {sort}" for sort, count in record.broken.items())
    bound = "" if record.bound is None else f" (at most {record.bound:.2%} of such histories, 3/N)"
    short = "" if record.histories >= PROMISED else f" **A short run**: the promise is {PROMISED:,}."
    return "\n".join(
        [
            f"{record.date}, {record.histories:,} histories, {record.facts:,} facts to keep.{short}",
            f"Histories of this program with something {broken}{bound}.",
            f"The original algorithm lost {_describe_losses(record)}; with one fault at a time:",
            "",
            *_table([calm, *worst]),
            "",
        ]
    )


def _describe_losses(record: SimulationReport) -> str:
    share = record.original_lost / max(1, record.original_remembered)
    return f"{record.original_lost:,} of {record.original_remembered:,} words ({share:.1%})"


def with_part(chapter: str, made: str) -> str:
    """The chapter with the generated part between its two marks."""
    before, begin, rest = chapter.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the chapter has no place for what was simulated")
    return f"{before}{BEGIN}\n{made}{END}{after}"
