"""What a long run leaves behind: RESULTS.md, a table with one row for each of its parts.

The row is written as soon as its part has ended, so that an interruption costs one part and `--resume` goes on there.
Rows of other parts stay, and so does everything from the first `##` on: notes on what was found.
"""

import os
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Self

REPOSITORY: Final = Path(__file__).parents[1]
COLUMNS: Final = ("part", "trials", "failed", "became of them", "seed", "seconds", "when (UTC)", "commit", "load")
RULE: Final = "|---|--:|--:|---|--:|--:|---|---|---|"
SHOWN: Final = 5  # complaints of a part
CHANGED: Final = "+"  # behind a commit: what ran was not only that


@dataclass(frozen=True, slots=True)
class PartResult:
    """One part of a run, as it is written. `load`: processes that wanted a core, of how many cores."""

    part: str
    trials: str
    failed: str
    became: str
    seed: str
    seconds: str
    when: str
    commit: str
    load: str

    @classmethod
    def of(
        cls,
        part: str,
        outcomes: Mapping[str, int],
        complaints: Sequence[str],
        *,
        seed: int,
        seconds: float,
        when: datetime,
    ) -> Self:
        """`outcomes`: how many trials ended how, "failed" among them; `complaints`: of those."""
        ended = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        became = "; ".join((ended, *complaints[:SHOWN])).replace("|", "/").replace("\n", " ")
        moment, load = f"{when:%Y-%m-%d %H:%M}", f"{os.getloadavg()[0]:.1f} of {os.cpu_count()}"
        trials, failed = str(sum(outcomes.values())), str(outcomes.get("failed", 0))
        return cls(part, trials, failed, became, str(seed), f"{seconds:.0f}", moment, commit(), load)

    @property
    def passed(self) -> bool:
        return self.failed == "0"


class RunReport:
    """`parts`: all parts in order; rows of others are dropped."""

    def __init__(self, path: Path, title: str, parts: Sequence[str]) -> None:
        self._path = path
        self._title = title
        self._parts = parts

    def finished_parts(self) -> set[str]:
        """The parts that went well with what is here now."""
        now = commit()
        return {row.part for row in self._rows().values() if row.passed and row.commit == now and CHANGED not in now}

    def write(self, row: PartResult) -> None:
        """Insert the row and compute the totals again."""
        rows = self._rows() | {row.part: row}
        listed_rows = [rows[part] for part in self._parts if part in rows]
        lines = [f"| {' | '.join(cells)} |" for cells in (COLUMNS, *map(astuple, listed_rows))]
        table = "\n".join([lines[0], RULE, *lines[1:]])
        beside = self._path.with_suffix(".tmp")
        beside.write_text(f"# {self._title}\n\n{self._totals(listed_rows)}\n\n{table}\n{self._manual_text()}", "utf-8")
        beside.replace(self._path)

    def _totals(self, rows: Sequence[PartResult]) -> str:
        """A line for each kind of part, the text before the colon in its name."""
        kinds = dict.fromkeys(_group_of(row.part) for row in rows)
        lines = [_total_row(kind, [row for row in rows if _group_of(row.part) == kind]) for kind in kinds]
        missing = Counter(_group_of(part) for part in self._parts if part not in {row.part for row in rows})
        lacking = "; ".join(f"{kind} ({count} of its parts)" for kind, count in missing.items())
        left = [f"- not yet run in full: {lacking}"] if missing else []
        return "\n".join(["Written by the run itself, a row as each part ended.\n", *lines, *left])

    def _rows(self) -> dict[str, PartResult]:
        cells = [line.strip("| ").split(" | ") for line in self._text().splitlines() if line.startswith("| ")]
        return {found[0]: PartResult(*found) for found in cells[1:] if len(found) == len(COLUMNS)}

    def _manual_text(self) -> str:
        _, heading, rest = self._text().partition("\n## ")
        return heading + rest

    def _text(self) -> str:
        return self._path.read_text("utf-8") if self._path.exists() else ""


def _group_of(part: str) -> str:
    return part.partition(":")[0]


def _total_row(kind: str, rows: Sequence[PartResult]) -> str:
    """Where nothing failed, with the bound of the rule of three: 95% sure that not more of such trials fail."""
    trials, failed = sum(int(row.trials) for row in rows), sum(int(row.failed) for row in rows)
    bound = f", at most 3/N = {3 / trials:.2%}" if trials and not failed else ""
    return f"- {kind}: {trials} trials, {failed} failed{bound}"


def commit() -> str:
    """What the repository is at; with a mark where files differ from it (results themselves are no difference)."""
    try:
        head = _git("rev-parse", "--short=10", "HEAD")
        changed = _git("status", "--porcelain", "--", ".", ":(exclude)*RESULTS.md")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + (CHANGED if changed else "")


def _git(*command: str) -> str:
    done = subprocess.run(["git", *command], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return done.stdout.strip()
