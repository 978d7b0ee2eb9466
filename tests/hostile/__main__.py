"""`make fuzz`: every campaign in full. ONLY=name,… SEED=n AT=n COUNT=n choose; without a seed, another one each time.

Exit code 1 where something was not withstood; the campaigns after it run all the same.
"""

import argparse
import asyncio
import secrets
import sys
import tempfile
import traceback
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.hostile.campaign import Campaign
from tests.hostile.campaigns import CAMPAIGNS


def main() -> int:
    given = _arguments()
    chosen = [campaign for campaign in CAMPAIGNS if not given.only or campaign.name in given.only.split(",")]
    if not chosen:
        print(f"there is no campaign of this name; there are {', '.join(item.name for item in CAMPAIGNS)}")
        return 2
    seed = secrets.randbelow(2**32) if given.seed is None else given.seed
    console = Console()
    console.print(f"seed {seed}")
    columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    withstood = True
    with Progress(*columns, console=console) as progress, tempfile.TemporaryDirectory(prefix="xiaobai-fuzz-") as folder:
        for campaign in chosen:
            withstood &= _run(campaign, seed, _numbers(campaign, given), Path(folder), progress)
    return 0 if withstood else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--only", default="", help="names of campaigns, with commas between them")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--at", type=int, help="one case, by its number")
    parser.add_argument("--count", type=int, help="so many cases of each campaign instead of all")
    return parser.parse_args()


def _numbers(campaign: Campaign, given: argparse.Namespace) -> range:
    if given.at is not None:
        return range(given.at, given.at + (given.count or 1))
    return range(given.count or campaign.full)


def _run(campaign: Campaign, seed: int, numbers: range, folder: Path, progress: Progress) -> bool:
    task = progress.add_task(campaign.name, total=len(numbers))
    home = folder / campaign.name
    home.mkdir()
    try:
        asyncio.run(campaign.run(seed, numbers, home, lambda: progress.advance(task)))
    except Exception:  # noqa: BLE001 - told with its trace, and the next campaign has its turn
        progress.console.print(traceback.format_exc(), markup=False, highlight=False)
        return False
    if not progress.console.is_terminal:
        progress.console.print(f"{campaign.name}: {len(numbers)} withstood")
    return True


if __name__ == "__main__":
    sys.exit(main())
