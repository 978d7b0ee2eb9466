"""`events append | append-batch | read | tail`: the event store's contract of seed 002 §5 as commands."""

from typing import Annotated, Any

import typer

from bridge.cli.running import Invocation, JsonFlag, call, fail, json_argument
from sync.errors import InvalidInput

app = typer.Typer(help="The append-only event log, for other programs: JSON in, JSON out.", no_args_is_help=True)

Json = Annotated[str, typer.Argument(help="JSON; - reads standard input.")]


@app.command("append")
def append(context: typer.Context, event: Json, *, json: JsonFlag = False) -> None:
    """Record one event. The same event_id again records nothing new."""
    value = _parsed(context, event, "event", as_json=json)
    call(context, "events/append", {"event": value}, _show_recorded, as_json=json)


@app.command("append-batch")
def append_batch(context: typer.Context, events: Json, *, json: JsonFlag = False) -> None:
    """Record all events of a JSON array, or none."""
    value = _parsed(context, events, "events", as_json=json)
    call(context, "events/appendBatch", {"events": value}, _show_recorded, as_json=json)


@app.command("read")
def read(context: typer.Context, query: Json = "{}", *, json: JsonFlag = False) -> None:
    """Events after a position, oldest first: '{"project_id", "since_ts", "after", "types", "limit"}'."""
    call(context, "events/read", _parsed(context, query, "filter", as_json=json), _show_events, as_json=json)


@app.command("tail")
def tail(context: typer.Context, query: Json = "{}", *, json: JsonFlag = False) -> None:
    """The newest events: '{"project_id", "limit"}'."""
    call(context, "events/tail", _parsed(context, query, "filter", as_json=json), _show_events, as_json=json)


def _parsed(context: typer.Context, text: str, name: str, *, as_json: bool) -> Any:
    try:
        return json_argument(text, name=name)
    except InvalidInput as error:
        fail(error, as_json=as_json or context.ensure_object(Invocation).json)


def _show_recorded(result: dict[str, Any]) -> None:
    for event_id in result["eventIds"]:
        known = " (known already)" if event_id in result["duplicates"] else ""
        typer.echo(f"recorded {event_id}{known}")


def _show_events(result: dict[str, Any]) -> None:
    for event in result["events"]:
        typer.echo(
            f"{event['position']:>6}  {event['ts']}  {event['type']:<20} {event['project_id']}  {event['event_id']}"
        )
    typer.echo(f"next offset {result['nextOffset']}")
