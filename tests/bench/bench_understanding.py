"""What is read in labelled messages: `python -m tests.bench.bench_understanding FOLDER [--verbose]`.

FOLDER, or each folder in it, holds `*.jsonl` of one of these forms: messages with `expect` or `spans` (the project's
own sets); messages with neither (neutral: they state nothing); sequences with `messages` and what must be active
(`active`, `stay`), ended or questioned (`inactive`, `end`) or never active (`never`); messages with their `band`.
Prints the figures of each folder and language with standard errors, of each certain form what it read rightly and
wrongly, and what the scorer was fitted on; `--verbose` the failing rows too.
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

from sync.understanding.importance import estimate_importance
from sync.understanding.model import Fact, FactOrigin, FactSection, FactStatus, Level, RecordedStatement, Statement
from sync.understanding.reading.certain_forms import find_forms
from sync.understanding.reading.reader import extract_statements
from sync.understanding.reading.segments import read_sentences
from sync.understanding.reading.sentence_features import language_of
from sync.understanding.reading.weights import FOLDER, LANGUAGES
from sync.understanding.reconcile import FactTimeline

SAME: Final = 0.7  # of the shorter text's letters in one common piece
SECTIONS: Final = {
    FactSection.WORK_HABITS: "工作习惯",
    FactSection.COMMUNICATION_STYLE: "沟通风格",
    FactSection.TECHNICAL_PREFERENCES: "技术偏好",
    FactSection.PERSONAL: "个人情况",
}
HIGH, LOW = 0.6, 0.3  # importance: a high one is above, a low one below, a middle one between
STATING: Final = 0.05  # of natural messages state something
LOWER_BOUND: Final = 1.2816  # standard normal: of ten such figures one is below
NAMES: Final = (
    ("recall of active and candidates", "expected"),
    ("recall of active", "expected active"),
    ("precision of active", "extracted"),
    ("precision of candidates", "candidate"),
    ("messages without a fact left alone", "quiet"),
    ("poison left alone", "poison"),
    ("kind", "kind"),
    ("section", "section"),
    ("changes right", "update"),
    ("importance", "importance"),
)

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
        """Return the share of right ones, with its standard error, its lower 90 % bound (Wilson), and the counts."""
        right, count = self.counts[f"{name} right"], self.counts[name]
        if not count:
            return "-"
        share, square = right / count, LOWER_BOUND**2
        error = (share * (1 - share) / count) ** 0.5
        middle, width = share + square / (2 * count), LOWER_BOUND * (error**2 + square / (4 * count**2)) ** 0.5
        return f"{share:.3f} ± {error:.3f}, at least {(middle - width) / (1 + square / count):.3f} ({right} of {count})"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench_understanding", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verbose", action="store_true", help="print the rows that fail")
    options = parser.parse_args(arguments)
    tallies: dict[str, Tally] = {}
    for path in sorted(options.folder.rglob("*.jsonl")):
        for row in _rows(path) if _is_labelled(path) else ():
            messages = row.get("messages") or [row["message"]]
            name = f"{path.parent.name}, {language_of(chr(10).join(messages))}"
            judge_row(row, tallies.setdefault(name, Tally()))
    if not tallies:
        print(f"no data: {options.folder} holds no labelled .jsonl file")
        return 2
    for language in LANGUAGES:
        header = FOLDER.joinpath(f"weights-{language}.bin").read_bytes().partition(b"\n")[0]
        print(f"fitted on: {json.loads(header)['fitted_on']}")
    for name, tally in tallies.items():
        _report(name, tally)
        if options.verbose:
            print("\n".join(tally.failures))
    return 0


def _rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _is_labelled(path: Path) -> bool:
    """Whether the rows of a file are messages, sequences in which something changes, or messages by importance."""
    first = next(iter(_rows(path)), {})
    return "message" in first or {"active", "stay"} & set(first) != set()


def measure_file(path: Path, tally: Tally | None = None) -> Tally:
    """Judge every row of a file."""
    tally = Tally() if tally is None else tally
    for row in _rows(path):
        judge_row(row, tally)
    return tally


def judge_row(row: Row, tally: Tally) -> None:
    """Judge a row by its form."""
    if "messages" in row:
        _judge_update(row, tally)
    elif "band" in row:
        _judge_importance(row["message"], row["band"], _name(row), tally)
    else:
        _judge_message(row, tally)
        if "spans" in row:
            _judge_importance(row["message"], row["importance"], _name(row), tally)


def _name(row: Row) -> str:
    return row.get("id") or row.get("family") or ""


def _report(name: str, tally: Tally) -> None:
    print(f"== {name}")
    for label, key in NAMES:
        if tally.counts[key]:
            print(f"  {label}: {tally.share(key)}")
    if neutral := tally.counts["neutral"]:
        active, candidates = (1000 * tally.counts[f"neutral {level}"] / neutral for level in Level)
        print(f"  wrong in 1,000 of {neutral} neutral messages: {active:.1f} active, {candidates:.1f} candidates")
    if tally.counts["stating"] and tally.counts["silent"]:
        print(f"  precision of active, if {STATING:.0%} of messages state something: {_reweighted(tally.counts):.3f}")
    for key in sorted(key for key in tally.counts if ":" in key and not key.endswith(" right")):
        print(f"    {key}: {tally.share(key)}")
    if len(tally.milliseconds) > 1:
        cuts = statistics.quantiles(tally.milliseconds, n=20)
        print(f"  ms a message: median {statistics.median(tally.milliseconds):.2f}, p95 {cuts[18]:.2f}")


def _reweighted(counts: Counter[str]) -> float:
    """The precision of active lines if few messages state something."""
    right = STATING * counts["stating right lines"] / counts["stating"]
    wrong = STATING * counts["stating wrong lines"] / counts["stating"]
    wrong += (1 - STATING) * counts["silent wrong lines"] / counts["silent"]
    return right / (right + wrong) if right else 0.0


def _judge_message(row: Row, tally: Tally) -> None:
    began = time.process_time()
    read = extract_statements(row["message"], row.get("previous") or "")
    tally.milliseconds.append((time.process_time() - began) * 1e3)
    found = [one for one in read if not one.is_tentative]  # the others count only if they question a known fact
    active = [one for one in found if one.level is Level.CERTAIN]
    expected = _expected(row)
    group = (row.get("class") or row.get("variant") or "").partition("/")[0]
    if not expected:
        tally.note("poison" if group == "poison" else "quiet", not active, f"{_name(row)} {group}")
    if "expect" not in row and "spans" not in row:
        tally.counts["neutral"] += 1
        tally.counts.update({f"neutral {level}": any(one.level is level for one in found) for level in Level})
    for wanted in expected:
        _judge_expected(row, wanted, found, tally)
    side = "stating" if expected else "silent"
    tally.counts[side] += 1
    for one in found:
        right = any(is_same_text(one.text, wanted["statement"]) for wanted in expected)
        failure = f"{_name(row)} WRONG {one.level} {one.text} [{one.kind}, {one.slot}] <- {row['message']}"
        tally.note("extracted" if one.level is Level.CERTAIN else "candidate", right, failure)
        tally.counts[f"{side} {'right' if right else 'wrong'} lines"] += one.level is Level.CERTAIN
    _judge_forms(row["message"], expected, tally)


def _expected(row: Row) -> list[Row]:
    """What a row states."""
    if "spans" not in row:
        return list(row.get("expect", ()))
    own = [span for span in row["spans"] if span["owner"] == "user" and span["lasting"]]
    return [{"statement": span["text"], "kind": span["kind"]} for span in own]


def _judge_expected(row: Row, wanted: Row, found: Sequence[Statement], tally: Tally) -> None:
    same = [one for one in found if is_same_text(one.text, wanted["statement"])]
    is_active = any(one.level is Level.CERTAIN for one in same)
    tally.note("expected", bool(same), f"{_name(row)} MISSED {wanted['statement']} <- {row['message']}")
    tally.note("expected active", is_active, f"{_name(row)} NOT ACTIVE {wanted['statement']}")
    said = f"{_name(row)} {wanted['statement']}"
    if same and "kind" in wanted:
        kinds = {one.kind.value for one in same}
        tally.note("kind", wanted["kind"] in kinds, f"{said} KIND {kinds} not {wanted['kind']}")
    if same and "section" in wanted:
        sections = {SECTIONS[one.section] for one in same}
        tally.note("section", wanted["section"] in sections, f"{said} SECTION {sections} not {wanted['section']}")


def _judge_forms(message: str, expected: Sequence[Row], tally: Tally) -> None:
    """Count of each certain form the sentences of the sender that it reads, and those that state something."""
    sentences = read_sentences(message)
    for one in find_forms(message, sentences):
        sentence = sentences[one.sentence]
        if sentence.foreign is None and not one.is_doubtful:
            right = any(is_same_text(sentence.text, wanted["statement"]) for wanted in expected)
            tally.note(f"form: {one.form.id}", right, f"FORM {one.form.id} {sentence.text} <- {message}")


def _judge_update(row: Row, tally: Tally) -> None:
    facts = FactTimeline(list(_recorded(row["messages"]))).book.facts()
    active = [fact.statement for fact in facts if fact.status is FactStatus.ACTIVE]
    standing = [fact.statement for fact in facts if _stands(fact)]
    missing = [
        line for line in row.get("active") or row.get("stay") or () if not any(_holds(one, line) for one in active)
    ]
    false = [line for line in row.get("inactive") or row.get("end") or () if any(_holds(one, line) for one in standing)]
    false += [line for line in row.get("never") or () if any(_holds(one, line) for one in active)]
    group = row.get("class") or row.get("kind") or "sequence"
    if group == "repeat" and len(active) != 1:
        missing.append(f"{len(active)} active instead of one")
    said = "; ".join(f"{fact.statement}[{fact.slot},{fact.status}]" for fact in facts)
    failure = f"{_name(row)} {group} MISSING {missing} FALSE {false} <- {row['messages']} -> {said}"
    tally.note("update", not missing and not false, failure)
    tally.note(f"update: {group}", not missing and not false, "")


def _stands(fact: Fact) -> bool:
    """Whether a fact is active and no newer sentence questions it."""
    return fact.status is FactStatus.ACTIVE and fact.questioned_by is None


def _recorded(messages: Iterable[str]) -> Iterator[RecordedStatement]:
    for at, message in enumerate(messages):
        for number, one in enumerate(extract_statements(message)):
            yield RecordedStatement(
                one, f"{at}.{number}", str(at), f"{at:03}", f"2026-11-{at + 1:02}", "here", FactOrigin.USER_STATED
            )


def _judge_importance(message: str, wanted: str, name: str, tally: Tally) -> None:
    value = estimate_importance(message)
    band = "high" if value > HIGH else "low" if value < LOW else "middle"
    tally.note("importance", band == wanted, f"{name} {wanted} IMPORTANCE {value} <- {message}")
    tally.note(f"importance: {wanted}", band == wanted, "")


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
