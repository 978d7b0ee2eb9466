"""Whether facts stay true: `python -m tests.bench.understanding.changes FILE... [--half 1|2] [--gold]`.

A row has `messages`, said one after another. Each text of `stay` must be in an active fact at the end, each of `end` in
none that is not questioned, each of `never` in no active fact. `--gold` states the labelled sentences themselves, so
that what is kept is measured without what is read. `--half`: the first or the second half of the families.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from sync.understanding.changes.verbs import find_change, unread_change
from sync.understanding.model import (
    Fact,
    FactKind,
    FactOrigin,
    FactSection,
    FactStatus,
    Level,
    RecordedStatement,
    Statement,
)
from sync.understanding.reading.bearers import clause_bearers
from sync.understanding.reading.reader import extract_statements
from sync.understanding.reading.segments import read_sentences
from sync.understanding.reconcile import FactTimeline

Row = dict[str, Any]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="changes", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--half", type=int, choices=(1, 2))
    parser.add_argument("--gold", action="store_true", help="state the labelled sentences")
    parser.add_argument("--verbose", action="store_true", help="print the rows that fail")
    options = parser.parse_args(arguments)
    for path in options.files:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        middle = len(rows) // 2
        rows = rows if options.half is None else rows[:middle] if options.half == 1 else rows[middle:]
        counts, failures = measure(rows, gold_statements if options.gold else read_statements)
        print(f"{path.name}: " + ", ".join(f"{name} {counts[name + ' right']} of {counts[name]}" for name in FIGURES))
        if options.verbose:
            print("\n".join(failures))
    return 0


FIGURES: Final = ("stay", "stay, also as candidate", "end", "end of active", "never", "row", "stay without a question")


def measure(rows: Sequence[Row], reader: Callable[[Row, str], list[Statement]]) -> tuple[Counter[str], list[str]]:
    """Count what is right in these rows; also the failures, one line each."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    for row in rows:
        all_facts = FactTimeline(_recorded(row, reader)).book.facts()
        facts = [fact for fact in all_facts if fact.status is FactStatus.ACTIVE]
        certain = [fact for fact in facts if fact.questioned_by is None]
        checks = [("stay", text, _is_in(facts, text)) for text in row["stay"]]
        checks += [("end", text, not _is_in(_stated_first(row, certain, text), text)) for text in row["end"]]
        checks += [("never", text, not _is_in(facts, text)) for text in row["never"]]
        for name, text, is_right in checks:
            counts.update({name: 1, f"{name} right": is_right})
            failures += [] if is_right else [f"  {_name(row)} {name}: {text} | {' / '.join(row['messages'])}"]
        known = [fact for fact in all_facts if fact.status in (FactStatus.ACTIVE, FactStatus.CANDIDATE)]
        checks_beside = [("stay, also as candidate", _is_in(known, text)) for text in row["stay"]]
        ends = [(text, is_right) for name, text, is_right in checks if name == "end"]
        were_active = [fact for fact in all_facts if fact.status is not FactStatus.CANDIDATE]
        checks_beside += [
            ("end of active", is_right)
            for text, is_right in ends
            if _is_in(_stated_first(row, were_active, text), text)
        ]
        for name, is_right in checks_beside:
            counts.update({name: 1, f"{name} right": is_right})
        kept = [text for text in row["stay"] if _is_in(facts, text)]
        quiet = sum(_is_in(certain, text) for text in kept)
        counts.update({"stay without a question": len(kept), "stay without a question right": quiet})
        texts = {fact.fact_id: fact.statement for fact in all_facts}
        failures += [
            f"  {_name(row)} questioned: {fact.statement} <- {texts[fact.questioned_by or '']}"
            for fact in facts
            if fact.questioned_by and any(_is_in([fact], text) and not _is_in(certain, text) for text in kept)
        ]
        counts.update({"row": 1, "row right": all(is_right for *_, is_right in checks)})
    return counts, failures


def read_statements(_row: Row, message: str) -> list[Statement]:
    """What the product reads in a message."""
    return extract_statements(message)


def gold_statements(row: Row, message: str) -> list[Statement]:
    """The sentences that have a labelled text, with what is read in them; of the others what may be a change."""
    found: list[Statement] = []
    for sentence in read_sentences(message):
        own = [clause for clause in sentence.clauses if clause.foreign is None and not clause.is_question]
        text = message[own[0].start : own[-1].end].strip() if own else sentence.text
        if any(label in sentence.text or sentence.text in label for label in [*row["stay"], *row["end"]]):
            found.append(_gold(text))
        elif own and (unread := unread_change(text, _bearer(text))) is not None:
            found.append(unread)
    return found


def _gold(sentence: str) -> Statement:
    change, former = find_change(sentence)
    read = next((one for one in extract_statements(sentence) if one.confidence == 1.0), None)
    plain = Statement(sentence, FactKind.KNOWLEDGE, FactSection.PERSONAL)
    statement = plain if read is None else replace(read, text=sentence, level=Level.CERTAIN)
    return replace(statement, change=change, former=former, about=_bearer(sentence))


def _bearer(sentence: str) -> str:
    return clause_bearers(read_sentences(sentence)[:1])[0][0].about


def _recorded(row: Row, reader: Callable[[Row, str], list[Statement]]) -> Iterator[RecordedStatement]:
    for at, message in enumerate(row["messages"], 1):
        for number, one in enumerate(reader(row, message), 1):
            day = f"2026-11-{at:02}T10:00:00+08:00"
            yield RecordedStatement(
                one, f"e{at}.fact.{number}", f"e{at}", f"{at:04}.{number:02}", day, "d", FactOrigin.USER_STATED
            )


def _name(row: Row) -> str:
    return str(row.get("family") or row.get("id"))


def _stated_first(row: Row, facts: Sequence[Fact], text: str) -> list[Fact]:
    """The facts of the message that states a text first; a correction may repeat it."""
    event = next((f"e{at}" for at, message in enumerate(row["messages"], 1) if text in message), "")
    return [fact for fact in facts if event in fact.evidence]


def _is_in(facts: Sequence[Fact], text: str) -> bool:
    return any(text in fact.statement or fact.statement.rstrip("。.！!") in text for fact in facts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
