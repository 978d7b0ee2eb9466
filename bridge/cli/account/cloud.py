"""`status`, `sync`."""

from typing import Annotated, Any

import typer

from bridge.api.app_provider import AppProvider, OpenAppProvider
from bridge.api.method_table import Context
from bridge.cli import requests
from bridge.cli.progress import show_pull_progress
from bridge.cli.runner import JsonFlag, run_command, run_with_app
from bridge.methods.registry import METHOD_TABLE
from sync.app import App


def status(context: typer.Context, *, json: JsonFlag = False) -> None:
    """Account, device, cloud, what waits to be sent, warnings about the file."""
    run_command(context, requests.status(), as_json=json)


def sync(
    context: typer.Context,
    *,
    timeout_ms: Annotated[int, typer.Option(help="How long this may take, in milliseconds.")] = 60_000,
    json: JsonFlag = False,
) -> None:
    """Push and pull until this device and the server are level."""

    async def syncing(app: App) -> Any:
        with show_pull_progress(app):
            return await METHOD_TABLE.call(
                "sync/now", Context[AppProvider](OpenAppProvider(app)), {"timeoutMs": timeout_ms}
            )

    run_with_app(context, syncing, _show_round, as_json=json, role="helper")


def _show_round(result: dict[str, Any]) -> None:
    typer.echo("pushed {pushed}, pulled {pulled}, set aside {quarantined}".format(**result))
