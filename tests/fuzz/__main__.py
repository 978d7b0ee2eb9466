"""`make fuzz`: every campaign in full. ONLY=name,… SEED=n AT=n COUNT=n choose; without a seed, another one each time.

Exit status 1 if a case fails; the other campaigns run anyway. A campaign that ran in full is
noted in RESULTS.md, with its seed.
"""

import argparse
import asyncio
import itertools
import secrets
import sys
import tempfile
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.fuzz.all_campaigns import CAMPAIGNS
from tests.fuzz.campaign import Campaign
from tests.run_report import PartResult, RunReport

RECORD: Final = RunReport(
    Path(__file__).with_name("RESULTS.md"),
    "The last full run of `make fuzz`",
    [campaign.name for campaign in CAMPAIGNS],
)


def main() -> int:
    options = _arguments()
    chosen = [campaign for campaign in CAMPAIGNS if not options.only or campaign.name in options.only.split(",")]
    if not chosen:
        print(f"there is no campaign of this name; there are {', '.join(item.name for item in CAMPAIGNS)}")
        return 2
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    console = Console()
    console.print(f"seed {seed}")
    columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    withstood = True
    with Progress(*columns, console=console) as progress, tempfile.TemporaryDirectory(prefix="xiaobai-fuzz-") as folder:
        for campaign in chosen:
            begun = time.monotonic()
            count, complaint = _run(campaign, seed, _numbers(campaign, options), Path(folder), progress)
            withstood &= not complaint
            if options.at is None and options.count is None:
                _note(campaign, count, complaint, seed, time.monotonic() - begun)
    return 0 if withstood else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--only", default="", help="names of campaigns, with commas between them")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--at", type=int, help="one case, by its number")
    parser.add_argument("--count", type=int, help="so many cases of each campaign instead of all")
    return parser.parse_args()


def _numbers(campaign: Campaign, given: argparse.Namespace) -> range:
    if given.at is not None:
        return range(given.at, given.at + (given.count or 1))
    return range(given.count or campaign.full)


def _run(campaign: Campaign, seed: int, numbers: range, folder: Path, progress: Progress) -> tuple[int, str]:
    """The number of passed cases, and the command that repeats the failed one."""
    task = progress.add_task(campaign.name, total=len(numbers))
    home = folder / campaign.name
    home.mkdir()
    withstood = itertools.count()

    def tick() -> None:
        next(withstood)
        progress.advance(task)

    complaint = ""
    try:
        asyncio.run(campaign.run(seed, numbers, home, tick))
    except Exception as error:  # noqa: BLE001 - told with its trace, and the next campaign has its turn
        progress.console.print(traceback.format_exc(), markup=False, highlight=False)
        complaint = f"{type(error).__name__}, {error.__notes__[-1]}"
    count = next(withstood)
    if not progress.console.is_terminal:
        progress.console.print(f"{campaign.name}: {count} withstood")
    return count, complaint


def _note(campaign: Campaign, withstood: int, complaint: str, seed: int, seconds: float) -> None:
    outcomes = {"withstood": withstood} | ({"failed": 1} if complaint else {})
    complaints = [complaint] if complaint else []
    RECORD.write(PartResult.of(campaign.name, outcomes, complaints, seed=seed, seconds=seconds, when=datetime.now(UTC)))


if __name__ == "__main__":
    sys.exit(main())
