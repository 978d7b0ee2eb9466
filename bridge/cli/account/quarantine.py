"""`quarantine list | retry | drop`: events that the server refuses for good."""

from typing import Annotated, Any

import typer

from bridge.cli.runner import JsonFlag, call_method

app = typer.Typer(help="Events that the server refuses: they do not block the others, and are not forgotten.")

EventIds = Annotated[list[str] | None, typer.Argument(help="Which ones; all where none is named.")]


@app.command("list")
def list_quarantine(context: typer.Context, *, json: JsonFlag = False) -> None:
    """What was set aside, and why."""
    call_method(context, "sync/quarantine", {}, _show_quarantine, as_json=json)


@app.command("retry")
def retry(context: typer.Context, event_ids: EventIds = None, *, json: JsonFlag = False) -> None:
    """Send them again with the next round, after the cause is gone."""
    call_method(
        context, "sync/quarantine", {"action": "retry", "eventIds": event_ids or None}, _show_quarantine, as_json=json
    )


@app.command("drop")
def drop(context: typer.Context, event_ids: EventIds = None, *, json: JsonFlag = False) -> None:
    """Give up sending them. They stay in this device's log."""
    call_method(
        context, "sync/quarantine", {"action": "drop", "eventIds": event_ids or None}, _show_quarantine, as_json=json
    )


def _show_quarantine(result: dict[str, Any]) -> None:
    for event_id in result["released"]:
        typer.echo(f"released {event_id}")
    for event in result["events"]:
        typer.echo(f"{event['noticedAt']}  {event['code']:<6} {event['eventId']}  {event['message']}")
    if not result["events"]:
        typer.echo("nothing is in quarantine")
