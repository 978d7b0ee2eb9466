"""`status`, `sync`, `login`, `logout`."""

import sys
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


def login(
    context: typer.Context,
    email: Annotated[str | None, typer.Argument(help="E-mail address; asked for where it is missing.")] = None,
    *,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read the password from stdin.")] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="This memory is mine, although a damage has erased whose it was.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Log in. The first login makes this memory that account's, with everything recorded before."""
    address = email or typer.prompt("E-mail", err=True)
    if password_stdin:
        secret = sys.stdin.readline().rstrip("\n")
    else:
        secret = typer.prompt("Password", hide_input=True, err=True)
    params = {"email": address, "password": secret, "accept": accept}
    call(context, "auth/password", params, _show_account, as_json=json)


def logout(
    context: typer.Context,
    *,
    remove: Annotated[
        bool | None, typer.Option("--remove/--keep", help="Take this memory off this machine, or leave it here.")
    ] = None,
    even_unsent: Annotated[
        bool, typer.Option("--even-unsent", help="With --remove: also what the cloud does not have yet.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """End the session. The memory stays here and stays that account's, unless you say otherwise."""
    if remove is None and sys.stdin.isatty() and sys.stderr.isatty():
        remove = typer.confirm("Take this memory off this machine too?", default=False, err=True)
    params = {"localCopy": "remove" if remove else "keep", "evenUnsent": even_unsent}
    call(context, "auth/logout", params, _show_account, as_json=json)


def _show_account(result: dict[str, Any]) -> None:
    account = result["account"]
    who = f" as {account['label']}" if account["label"] else ""
    typer.echo(f"{account['state'].replace('_', ' ')}{who}")


def _show_round(result: dict[str, Any]) -> None:
    typer.echo("pushed {pushed}, pulled {pulled}, set aside {quarantined}".format(**result))


def _show_status(result: dict[str, Any]) -> None:
    from rich.console import Console  # noqa: PLC0415 - only for people
    from rich.table import Table  # noqa: PLC0415

    cloud, document = result["cloud"], result["document"]
    table = Table(show_header=False, box=None, pad_edge=False)
    rows = {
        "account": result["account"]["label"] or result["account"]["state"],
        "device": f"{result['device']['name']} ({result['device']['deviceId']})",
        "cloud": f"{cloud['state']}, read {cloud['cursor']} of {cloud['head']}, last {cloud['lastSyncAt'] or 'never'}",
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
