"""`forget`: by id, or by words, source and time."""

from typing import Annotated, Any

import typer

from bridge.cli.output import say
from bridge.cli.runner import call_method


def forget(
    event_ids: Annotated[list[str] | None, typer.Argument(help="Ids of events, as `events read` shows them.")] = None,
    *,
    query: Annotated[str | None, typer.Option(help="What holds all of these words.")] = None,
    source: Annotated[
        str | None, typer.Option(help="What came from a device, session, project, origin or program.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="From this day or time on.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to this day, or before this time.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without it, only show what would go.")] = False,
) -> None:
    """Erase events: here, in the file and its versions, on the server, on the other devices.

    The same again changes nothing. If no event has one of the ids, nothing is erased.
    """
    chosen = {"query": query, "source": source, "since": since, "until": until}
    given = {name: value for name, value in chosen.items() if value is not None}
    if bool(event_ids) == bool(given):
        raise typer.BadParameter("name events, or say which: --query, --source, --since, --until")
    if event_ids:
        params: dict[str, Any] = {"eventIds": event_ids}
        call_method("events/forget", params, _show_forgotten, role="helper")
        return
    params = {**given, "dryRun": not yes}
    call_method("events/forgetMatching", params, _show_forget_matching, role="helper")


def _show_forgotten(result: dict[str, Any]) -> None:
    for event_id in result["forgotten"]:
        say("forgotten {event_id}", event_id=event_id)
    if not result["forgotten"]:
        say("nothing to forget: it is forgotten already")
    _show_kept_files(result)


def _show_forget_matching(result: dict[str, Any]) -> None:
    for event in result["events"]:
        typer.echo(f"{event['ts']}  {event['type']:<20} {event['text']}")
    if result["found"] > len(result["events"]):
        say("… and {count} more", count=result["found"] - len(result["events"]))
    if not result["found"]:
        say("nothing to forget: no event is like that")
    elif result["dryRun"]:
        say("{found:event|events} would be forgotten, with what repeats or edits them; --yes does it", **result)
    else:
        say("{count:event|events} forgotten, with what repeats or edits them", count=len(result["forgotten"]))
    _show_kept_files(result)


def _show_kept_files(result: dict[str, Any]) -> None:
    for line in result["keptFiles"]:
        say("not deleted: {line}", line=line, err=True)
