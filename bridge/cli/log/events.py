"""`events append | append-batch | read | tail | verify`: the event store's contract as commands."""

import asyncio
import contextlib
from typing import Annotated, Any, Final

import msgspec
import typer
from msgspec.structs import replace

from bridge.cli import display, requests
from bridge.cli.output import in_own_language, say
from bridge.cli.runner import CommandApp, call_method, cli_context, run_command, run_with_app
from sync.app import App
from sync.log.envelope import to_json
from sync.log.ingest import parse_event_query as query_of
from sync.log.model import MAX_PAGE_EVENTS

FOLLOW_INTERVAL: Final = 0.2  # seconds between looks while following

app = CommandApp(help="The append-only event log, for other programs: JSON in, JSON out.", no_args_is_help=True)

JsonArgument = Annotated[str, typer.Argument(help="JSON; - reads standard input.")]


@app.command("append")
def append(event: JsonArgument) -> None:
    """Record one event. The same event_id again records nothing new."""
    run_command(requests.append_event(event))


@app.command("append-batch")
def append_batch(events: JsonArgument) -> None:
    """Record all events of a JSON array, or none."""
    run_command(requests.append_events(events))


@app.command("read")
def read(query: JsonArgument = "{}") -> None:
    """Events after a position, oldest first: '{"project_id", "since_ts", "after", "types", "limit"}'."""
    run_command(requests.read_events(query))


@app.command("tail")
def tail(
    query: JsonArgument = "{}",
    *,
    follow: Annotated[bool, typer.Option("--follow", help="Go on printing events as they come, one a line.")] = False,
) -> None:
    """The newest events: '{"project_id", "limit"}'."""
    value = requests.parse_event_filter(query)
    if not follow:
        call_method("events/tail", value, display.show_events)
        return
    as_json = cli_context().json

    async def following(app: App) -> None:
        asked = query_of(value)
        page = await app.log.tail(asked, from_other_program=True)
        while True:
            for event in page.events:
                line = msgspec.json.encode(to_json(event)).decode() if as_json else display.event_line(to_json(event))
                typer.echo(line)
            await asyncio.sleep(FOLLOW_INTERVAL)
            page = await app.log.read(replace(asked, after=page.next_offset, limit=MAX_PAGE_EVENTS))

    with contextlib.suppress(KeyboardInterrupt):
        run_with_app(following, lambda _: None)


@app.command("verify")
def verify() -> None:
    """Check that the log is sound; exit 1 if it is not."""
    result = call_method("events/verify", {}, _show_verification)
    raise SystemExit(0 if result["ok"] else 1)


def _show_verification(result: dict[str, Any]) -> None:
    for problem in result["problems"]:
        typer.echo(f"{in_own_language(problem['what'])}: {problem['count']} ({', '.join(problem['examples'][:3])})")
    say("{events:event|events}, sound" if result["ok"] else "{events:event|events}, NOT sound", **result)
