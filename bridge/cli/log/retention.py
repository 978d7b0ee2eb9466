"""`retention plan | apply`: archive what is old, then forget it on this device."""

from typing import Annotated, Any

import typer

from bridge.cli.output import localized, say
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
        say("everything is kept: privacy.retention_days and privacy.retention_megabytes are -1")
        return
    done = localized("were archived and forgotten here" if result["applied"] else "would go; `retention apply` does it")
    say("{events} of {totalEvents} events ({bytes} bytes) {done}", done=done, **result)
    if result["oldest"] is not None:
        say("from {oldest} to {newest}", **result)
    held = result["held"]
    say("kept: {shown} shown, {undelivered} not delivered, {followed} not taken yet", **held)
    for follower in result["behind"]:
        say("  {name} has come to position {position}", **follower)
    if result["archive"] is not None:
        typer.echo(f"{result['archive']}\nsha256 {result['sha256']}")
