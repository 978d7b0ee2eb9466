"""`retention plan | apply`: archive what is old, then forget it on this device."""

from typing import Annotated, Any

import typer

from bridge.cli.progress import call_with_progress
from bridge.cli.runner import CommandApp, call_method

app = CommandApp(help="Archive what is old, then forget it on this device.", no_args_is_help=True)

Days = Annotated[int | None, typer.Option(help="How long events are kept; privacy.retention_days otherwise.")]
Megabytes = Annotated[int | None, typer.Option(help="How much of them; privacy.retention_megabytes otherwise.")]


@app.command("plan")
def plan(*, days: Days = None, megabytes: Megabytes = None) -> None:
    """Events that would be removed, and those that stay and why; changes nothing."""
    call_method("retention/plan", {"days": days, "megabytes": megabytes}, _show_retention, role="helper")


@app.command("apply")
def apply(*, days: Days = None, megabytes: Megabytes = None) -> None:
    """Archive old events, verify the archive, then remove them here. The server keeps its copy."""
    call_with_progress("retention/apply", {"days": days, "megabytes": megabytes}, _show_retention)


def _show_retention(result: dict[str, Any]) -> None:
    if result["before"] is None and result["mostBytes"] is None:
        typer.echo("everything is kept: privacy.retention_days and privacy.retention_megabytes are -1")
        return
    hint = "; `retention apply` does it" if result["events"] else ""
    done = "were archived and forgotten here" if result["applied"] else f"would go{hint}"
    typer.echo(f"{result['events']} of {result['totalEvents']} events ({result['bytes']} bytes) {done}")
    if result["oldest"] is not None:
        typer.echo(f"from {result['oldest']} to {result['newest']}")
    held = result["held"]
    typer.echo(f"kept: {held['shown']} shown, {held['undelivered']} not delivered, {held['followed']} not taken yet")
    for follower in result["behind"]:
        typer.echo(f"  {follower['name']} has come to position {follower['position']}")
    if result["archive"] is not None:
        typer.echo(f"{result['archive']}\nsha256 {result['sha256']}")
