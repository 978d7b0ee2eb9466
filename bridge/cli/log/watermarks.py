"""`watermarks get | set`: the position of a program that follows the log."""

from typing import Annotated, Any

import typer

from bridge.cli.runner import CommandApp, call_method
from sync.log.model import MAX_EVENT_ID_LENGTH

app = CommandApp(help="How far programs that follow the log have come.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The follower's name: lower-case letters, digits, . _ -")]


@app.command("get")
def get_watermark(name: Name) -> None:
    """Print the position; 0 if the reader is unknown."""
    call_method("watermarks/get", {"name": name}, _show_watermark)


@app.command("set")
def set_watermark(
    name: Name,
    place: Annotated[str, typer.Argument(help="A `nextOffset` of events read, or the id of the last event taken.")],
) -> None:
    """Store a position."""
    is_number = place.isascii() and place.isdigit() and len(place) <= MAX_EVENT_ID_LENGTH
    given: dict[str, Any] = {"position": int(place)} if is_number else {"eventId": place}
    call_method("watermarks/set", {"name": name, **given}, _show_watermark)


def _show_watermark(result: dict[str, Any]) -> None:
    typer.echo(f"{result['name']} {result['position']} {result['eventId'] or ''}".rstrip())
