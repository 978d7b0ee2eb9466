"""python -m tests.crash.crash_process: the real `serve` in a process that dies, or loses its disk, at a chosen step.

--at STEP:before|after:N   at the N-th passage
--fail                     do not die there: from then on every flush fails with EIO
--note PATH                write each passage into this file
--ahead                    be a program with one more migration
"""

import argparse
import sys
from pathlib import Path

from sync.db import migrate
from tests.crash.crash_steps import StepCounter, When, instrument_steps, kill_myself
from tests.crash.faults.failing_disk import fail_every_flush

NEXT_SCHEMA = (
    "create table plans (position integer primary key references events (position), due text) strict",
    "alter table events add column heard_at text",
    "create index events_by_heard_at on events (heard_at) where heard_at is not null",
    "update events set heard_at = ts where origin = 'user-typed'",
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.crash_process", description=__doc__)
    parser.add_argument("--at")
    parser.add_argument("--fail", action="store_true")
    parser.add_argument("--note", type=Path)
    parser.add_argument("--ahead", action="store_true")
    return parser.parse_args()


def requested_step(at: str | None) -> tuple[str, When, int] | None:
    if at is None:
        return None
    step, when, number = at.rsplit(":", 2)
    return step, "before" if when == "before" else "after", int(number)


def add_future_migration() -> None:
    today = migrate.known_migrations()
    newest = migrate.Migration(today[-1].version + 1, "plans", NEXT_SCHEMA)
    migrate.known_migrations = lambda: [*today, newest]


def main() -> None:
    options = arguments()
    if options.ahead:
        add_future_migration()
    instrument_steps(
        StepCounter(requested_step(options.at), options.note, fail_every_flush if options.fail else kill_myself)
    )
    sys.argv[1:] = ["serve"]
    from bridge.cli.main import main as serve  # noqa: PLC0415 - after the steps are wrapped

    serve()


if __name__ == "__main__":
    main()
