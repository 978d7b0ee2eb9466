"""`status`, `sync`."""

from typing import Annotated, Any

import typer

from bridge.cli.progress import shown
from bridge.cli.running import JsonFlag, call, run
from bridge.methods.door import Door, OpenDoor
from bridge.methods.registry import TABLE
from bridge.methods.table import Context
from sync.app import App, Role


def status(context: typer.Context, *, json: JsonFlag = False) -> None:
    """Account, device, cloud, what waits to be sent, warnings about the file."""
    call(context, "sync/status", {}, _show_status, as_json=json, role=Role.HELPER)


def sync(
    context: typer.Context,
    *,
    timeout_ms: Annotated[int, typer.Option(help="How long this may take, in milliseconds.")] = 60_000,
    json: JsonFlag = False,
) -> None:
    """Push and pull until this device and the server are level."""

    async def syncing(app: App) -> Any:
        with shown(app):
            return await TABLE.call("sync/now", Context[Door](OpenDoor(app)), {"timeoutMs": timeout_ms})

    run(context, syncing, _show_round, as_json=json, role=Role.HELPER)


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
