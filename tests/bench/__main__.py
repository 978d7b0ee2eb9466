"""`make bench`: speed as ratios to floors measured in the same run, and to peers; one page.

`--record` keeps the run in docs/bench/ and in the README, which only a quiet machine should. `--json` is for machines.
`--growth N` leaves out the logs of more than N events. `--publish` measures nothing and writes the page again.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from tests.bench import bench_redaction, growth, measures, notes, searching, with_cloud
from tests.bench.documents import long_documents
from tests.bench.record import Record, page
from tests.bench.row import Row, figure


def rows(folder: Path) -> Iterator[Row]:
    """Everything, one after another: measuring two things at once measures neither."""
    yield from measures.calls(folder)
    yield from measures.update_latency(folder)
    yield from measures.append_rate(folder)
    yield from measures.edit_to_event(folder)
    yield from long_documents(folder / "documents")
    yield from measures.idle(folder)
    yield from with_cloud.rows(folder)
    yield from searching.rows(folder / "recall")
    yield from bench_redaction.rows()


def main() -> int:
    """Print one line a number, as it is known; 0 whatever they are: a slow machine is no defect, a reader judges."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--publish", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--growth", type=int, default=growth.SIZES[-1])
    asked = parser.parse_args()
    if asked.publish:
        Record.read().publish()
        return 0
    record = Record.begin()
    with tempfile.TemporaryDirectory(prefix="xiaobai-bench-") as name:
        folder = Path(name)
        record = replace(record, rows=list(_told(rows(folder))))
        points = []
        for point in growth.points(folder / "growth", asked.growth):
            print(
                f"{point.events:>9,} events",
                *(f"{k} {figure(v)}" for k, v in asdict(point).items() if k != "events"),
                file=sys.stderr,
            )
            points.append(point)
        record = replace(record, growth=points, notes=notes.compare(folder / "notes"))
    print(json.dumps(asdict(record), ensure_ascii=False) if asked.json else "\n" + page(record))
    if asked.record:
        record.write()
    return 0


def _told(found: Iterator[Row]) -> Iterator[Row]:
    for row in found:
        print(row.line, file=sys.stderr, flush=True)
        yield row


if __name__ == "__main__":
    sys.exit(main())
