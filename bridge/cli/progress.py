"""A bar on stderr while a long pull goes on, for a person at a terminal; nothing for a pipe or a log."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sync.app import App
from sync.cloud.replication.pull_progress import PullProgress


@contextmanager
def show_pull_progress(app: App) -> Iterator[None]:
    """Show what the replicator pulls inside the block: drawn at each answer of the server, gone at the end."""
    if app.replicator is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415 - only for people
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415
    from rich.progress import Progress as Bars  # noqa: PLC0415

    columns = (TextColumn("reading the cloud"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bars = Bars(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
    row = bars.add_task("", total=None, visible=False)

    def draw(progress: PullProgress) -> None:
        bars.update(row, completed=progress.done, total=progress.total, visible=progress.step != "end", refresh=True)

    with bars, app.replicator.pull_progress.reporting_to(draw):
        yield
