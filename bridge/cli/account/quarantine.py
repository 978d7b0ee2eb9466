"""`quarantine list | retry | drop`: events that the server refuses for good."""

from typing import Annotated, Any

import typer

from bridge.cli.output import say
from bridge.cli.runner import CommandApp, call_method

app = CommandApp(help="Events that the server refuses: they do not block the others, and are not forgotten.")

EventIds = Annotated[list[str] | None, typer.Argument(help="Which ones; all if none is named.")]


@app.command("list")
def list_quarantine() -> None:
    """The events in quarantine, and why."""
    call_method("sync/quarantine", {}, _show_quarantine)


@app.command("retry")
def retry(event_ids: EventIds = None) -> None:
    """Send them again with the next round, after the cause is gone."""
    call_method("sync/quarantine", {"action": "retry", "eventIds": event_ids}, _show_quarantine)


@app.command("drop")
def drop(event_ids: EventIds = None) -> None:
    """Give up sending them. They stay in this device's log."""
    call_method("sync/quarantine", {"action": "drop", "eventIds": event_ids}, _show_quarantine)


def _show_quarantine(result: dict[str, Any]) -> None:
    for event_id in result["released"]:
        say("released {event_id}", event_id=event_id)
    for event in result["events"]:
        typer.echo(f"{event['noticedAt']}  {event['code']:<6} {event['eventId']}  {event['message']}")
    if not result["events"]:
        say("nothing is in quarantine")
