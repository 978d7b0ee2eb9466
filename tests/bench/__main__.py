"""`make bench`: speed as ratios to floors measured in the same run, and to peers; one page.

`--record` keeps the run in docs/bench/ and docs/speed.md, which only a quiet machine should. `--json` is for machines.
`--growth N` leaves out the logs of more than N events. `--publish` measures nothing and writes the page again.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from tests.bench import bench_redaction
from tests.bench.cases import (
    basic_memory,
    commands,
    lessons,
    local_network,
    log_growth,
    many_users,
    one_device,
    recall,
    with_cloud,
)
from tests.bench.cases.long_documents import long_documents
from tests.bench.measurement import Measurement, figure
from tests.bench.report import BenchmarkReport, page


def rows(folder: Path) -> Iterator[Measurement]:
    """Everything, one after another: measuring two things at once measures neither."""
    yield from one_device.calls(folder)
    yield from commands.commands(folder)
    yield from one_device.update_latency(folder)
    yield from one_device.append_rate(folder)
    yield from one_device.edit_to_event(folder)
    yield from long_documents(folder / "documents")
    yield from one_device.idle(folder)
    yield from with_cloud.rows(folder)
    yield from many_users.rows()
    yield from local_network.rows(folder)
    yield from recall.rows(folder / "recall")
    yield from lessons.rows(folder / "lessons")
    yield from bench_redaction.rows()


def main() -> int:
    """Print one line a number, as it is known; 0 whatever they are: a slow machine is no defect, a reader judges."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--publish", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--growth", type=int, default=log_growth.SIZES[-1])
    options = parser.parse_args()
    if options.publish:
        BenchmarkReport.read().publish()
        return 0
    record = BenchmarkReport.begin()
    with tempfile.TemporaryDirectory(prefix="xiaobai-bench-") as name:
        folder = Path(name)
        record = replace(record, rows=list(_print_rows(rows(folder))))
        points = []
        for point in log_growth.measure_points(folder / "growth", options.growth):
            print(
                f"{point.events:>9,} events",
                *(f"{k} {figure(v)}" for k, v in asdict(point).items() if k != "events"),
                file=sys.stderr,
            )
            points.append(point)
        record = replace(record, growth=points, notes=basic_memory.compare_with_peers(folder / "notes"))
    print(json.dumps(asdict(record), ensure_ascii=False) if options.json else "\n" + page(record))
    if options.record:
        record.write()
    return 0


def _print_rows(rows: Iterator[Measurement]) -> Iterator[Measurement]:
    for row in rows:
        print(row.line, file=sys.stderr, flush=True)
        yield row


if __name__ == "__main__":
    sys.exit(main())
