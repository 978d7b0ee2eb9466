"""What the rules read in labelled messages: `python -m tests.bench.bench_understanding FOLDER [--verbose]`.

FOLDER, or each folder in it, holds messages (`*.jsonl` with id, message, answer, expect, class), and may hold
`updates.jsonl` (id, messages, active, inactive, class) and `importance.jsonl` (id, message, band). Prints recall,
precision, poison, updates right, importance and the time of a message; `--verbose` the failing rows too.
"""

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final

from sync.understanding.extractor import extract_statements
from sync.understanding.importance import estimate_importance
from sync.understanding.model import TENTATIVE, FactOrigin, FactSection, FactStatus, RecordedStatement
from sync.understanding.reconcile import reconcile

SAME: Final = 0.7  # of the shorter text's letters in one common piece
SECTIONS: Final = {
    FactSection.WORK_HABITS: "工作习惯",
    FactSection.COMMUNICATION_STYLE: "沟通风格",
    FactSection.TECHNICAL_PREFERENCES: "技术偏好",
    FactSection.PERSONAL: "个人情况",
}
HIGH, LOW = 0.6, 0.3  # importance: a high one is above, a low one below, a middle one between

Row = dict[str, Any]


@dataclass(slots=True)
class Tally:
    """Counts of one folder."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)

    def note(self, name: str, right: bool, failure: str) -> None:
        """Count one judged thing."""
        self.counts[name] += 1
        self.counts[f"{name} right"] += right
        if not right:
            self.failures.append(failure)

    def ratio(self, name: str) -> float:
        """Return the share of right ones, 1 if there is none to judge."""
        return self.counts[f"{name} right"] / self.counts[name] if self.counts[name] else 1.0

    def share(self, name: str) -> str:
        """Return the share of right ones, with the counts."""
        right, all_of_them = self.counts[f"{name} right"], self.counts[name]
        return f"{self.ratio(name):.3f} ({right} of {all_of_them})" if all_of_them else "-"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench_understanding", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verbose", action="store_true", help="print the rows that fail")
    options = parser.parse_args(arguments)
    tallies: dict[Path, Tally] = {}
    for path in sorted(options.folder.rglob("*.jsonl")):
        if _is_labelled(path):
            measure_file(path, tallies.setdefault(path.parent, Tally()))
    if not tallies:
        print(f"no data: {options.folder} holds no labelled .jsonl file")
        return 2
    for folder, tally in tallies.items():
        _report(folder.name, tally)
        if options.verbose:
            print("\n".join(tally.failures))
    return 0


def _is_labelled(path: Path) -> bool:
    """Whether the rows of a file are messages with the facts to find in them, changes, or messages by importance."""
    with path.open("rb") as rows:
        first = json.loads(next(rows, b"{}"))
    return not {"expect", "active", "band"}.isdisjoint(first)


def measure_file(path: Path, tally: Tally | None = None) -> Tally:
    """Judge every row of a file."""
    tally = Tally() if tally is None else tally
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        if "messages" in row:
            _judge_update(row, tally)
        elif "band" in row:
            _judge_importance(row, tally)
        else:
            _judge_message(row, tally)
    return tally


def _report(name: str, tally: Tally) -> None:
    print(f"== {name}")
    for label, key in (
        ("recall", "expected"),
        ("precision", "extracted"),
        ("messages without a fact left alone", "quiet"),
        ("poison left alone", "poison"),
        ("kind", "kind"),
        ("section", "section"),
        ("updates right", "update"),
        ("importance", "importance"),
    ):
        if tally.counts[key]:
            print(f"  {label}: {tally.share(key)}")
    for key in sorted(key for key in tally.counts if ":" in key and not key.endswith(" right")):
        print(f"    {key}: {tally.share(key)}")
    if len(tally.milliseconds) > 1:
        cuts = statistics.quantiles(tally.milliseconds, n=20)
        print(f"  ms a message: median {statistics.median(tally.milliseconds):.2f}, p95 {cuts[18]:.2f}")


def _judge_message(row: Row, tally: Tally) -> None:
    began = time.process_time()
    read = extract_statements(row["message"])
    tally.milliseconds.append((time.process_time() - began) * 1e3)
    found = [one for one in read if one.confidence >= TENTATIVE]  # the others count only if they change a known fact
    group = row["class"].partition("/")[0]
    expected = row["expect"]
    if not expected:
        tally.note("poison" if group == "poison" else "quiet", not found, f"{row['id']} {row['class']}")
    for wanted in expected:
        same = [one for one in found if is_same_text(one.text, wanted["statement"])]
        tally.note("expected", bool(same), f"{row['id']} MISSED {wanted['statement']} <- {row['message']}")
        if same and "kind" in wanted:
            kinds, sections = {one.kind.value for one in same}, {SECTIONS[one.section] for one in same}
            said = f"{row['id']} {wanted['statement']}"
            tally.note("kind", wanted["kind"] in kinds, f"{said} KIND {kinds} not {wanted['kind']}")
            tally.note("section", wanted["section"] in sections, f"{said} SECTION {sections} not {wanted['section']}")
    for one in found:
        right = any(is_same_text(one.text, wanted["statement"]) for wanted in expected)
        tally.note("extracted", right, f"{row['id']} WRONG {one.text} [{one.kind}, {one.slot}] <- {row['message']}")


def _judge_update(row: Row, tally: Tally) -> None:
    statements = list(_recorded(row["messages"]))
    facts = reconcile(statements)
    active = [fact.statement for fact in facts if fact.status is FactStatus.ACTIVE]
    certain = [fact.statement for fact in facts if fact.status is FactStatus.ACTIVE and fact.questioned_by is None]
    asked = [fact.statement for fact in facts if any(one.questioned_by == fact.fact_id for one in facts)]
    missing = [line for line in row["active"] if not any(_holds(one, line) for one in [*active, *asked])]
    false = [line for line in row["inactive"] if any(_holds(one, line) for one in certain)]
    if row["class"] == "repeat" and len(active) != 1:
        missing.append(f"{len(active)} active instead of one")
    said = "; ".join(f"{fact.statement}[{fact.slot},{fact.status}]" for fact in facts)
    failure = f"{row['id']} {row['class']} MISSING {missing} FALSE {false} <- {row['messages']} -> {said}"
    tally.note("update", not missing and not false, failure)
    tally.note(f"update: {row['class']}", not missing and not false, "")


def _recorded(messages: Iterable[str]) -> Iterator[RecordedStatement]:
    for at, message in enumerate(messages):
        for number, one in enumerate(extract_statements(message)):
            yield RecordedStatement(
                one, f"{at}.{number}", str(at), f"{at:03}", f"2026-11-{at + 1:02}", "here", FactOrigin.USER_STATED
            )


def _judge_importance(row: Row, tally: Tally) -> None:
    value = estimate_importance(row["message"])
    band = "high" if value > HIGH else "low" if value < LOW else "middle"
    failure = f"{row['id']} {row['band']} IMPORTANCE {value} <- {row['message']}"
    tally.note("importance", band == row["band"], failure)
    tally.note(f"importance: {row['band']}", band == row["band"], "")


def is_same_text(one: str, other: str) -> bool:
    """Whether one text contains the other, or they share one long piece; spaces and punctuation do not count."""
    left, right = _letters(one), _letters(other)
    if not left or not right:
        return False
    if left in right or right in left:
        return True
    match = SequenceMatcher(None, left, right, autojunk=False).find_longest_match()
    return match.size >= SAME * min(len(left), len(right))


def _holds(statement: str, line: str) -> bool:
    """Whether an active statement says a line: it contains it, or is most of it."""
    whole, part = _letters(statement), _letters(line)
    return part in whole or (whole in part and len(whole) >= SAME * len(part))


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
