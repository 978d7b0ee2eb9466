"""`status`, `sync`."""

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

import typer

from bridge.cli import requests
from bridge.cli.app_runner import call_in_app
from bridge.cli.output import say
from bridge.cli.progress import DrawProgress, progress_bar
from bridge.cli.runner import run_command, run_with_app
from sync.app import App


def status() -> None:
    """Account, device, cloud, pending events, warnings about the file."""
    run_command(requests.status())


def sync(
    *,
    timeout_ms: Annotated[int, typer.Option(help="How long this may take, in milliseconds.")] = 60_000,
) -> None:
    """Push and pull until this device and the server are equal."""

    async def sync_now(app: App) -> Any:
        with progress_bar() as draw, _pull_progress(app, draw):
            return await call_in_app(app, "sync/now", {"timeoutMs": timeout_ms})

    run_with_app(sync_now, _show_round, role="helper")


def _pull_progress(app: App, draw: DrawProgress) -> AbstractContextManager[None]:
    """Draw what the replicator pulls inside the block."""
    if app.replicator is None:
        return nullcontext()
    return app.replicator.pull_progress.reporting_to(lambda at: draw("reading the cloud", at.done, at.total))


def _show_round(result: dict[str, Any]) -> None:
    say("pushed {pushed}, pulled {pulled}, set aside {quarantined}", **result)
