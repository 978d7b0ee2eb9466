"""`status`, `sync`."""

from typing import Annotated, Any

import typer

from bridge.api.app_provider import AppProvider, OpenAppProvider
from bridge.api.method_table import Context
from bridge.cli.progress import show_pull_progress
from bridge.cli.runner import JsonFlag, call_method, run_with_app
from bridge.methods.registry import METHOD_TABLE
from sync.app import App, AppMode


def status(context: typer.Context, *, json: JsonFlag = False) -> None:
    """Account, device, cloud, what waits to be sent, warnings about the file."""
    call_method(context, "sync/status", {}, _show_status, as_json=json, role=AppMode.HELPER)


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

    run_with_app(context, syncing, _show_round, as_json=json, role=AppMode.HELPER)


def _show_round(result: dict[str, Any]) -> None:
    typer.echo("pushed {pushed}, pulled {pulled}, set aside {quarantined}".format(**result))


def _show_status(result: dict[str, Any]) -> None:
    from rich.console import Console  # noqa: PLC0415 - only for people
    from rich.table import Table  # noqa: PLC0415

    cloud, document = result["cloud"], result["document"]
    state = "not asked just now (`sync` asks)" if cloud["state"] == "connecting" else cloud["state"]
    table = Table(show_header=False, box=None, pad_edge=False)
    rows = {
        "account": result["account"]["label"] or result["account"]["state"],
        "device": f"{result['device']['name']} ({result['device']['deviceId']})",
        "cloud": f"{state}, read {cloud['cursor']} of {cloud['head']}, last {cloud['lastSyncAt'] or 'never'}",
        "waiting": f"{result['pending']} to be sent, {result['quarantined']} set aside",
        "document": document["path"],
        "warnings": ", ".join(document["warnings"]) or "none",
        "version": result["version"],
    }
    if cloud["lastError"]:
        rows["last error"] = f"{cloud['lastError']['message']} - {cloud['lastError']['hint']}"
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table)
