"""`forget`: a fact or words with all that belongs to them; events by id, source and time."""

import sys
from datetime import datetime
from typing import Annotated, Any

import typer

from bridge.cli.output import CliContext, localized, say
from bridge.cli.runner import call_method, cli_context, given_params, run_command
from bridge.cli.sidecar_runner import Request, run_request


def forget(
    event_ids: Annotated[list[str] | None, typer.Argument(help="Ids of events, as `events read` shows them.")] = None,
    *,
    fact: Annotated[str | None, typer.Option(help="A fact, with its sentence, exchange, record and line.")] = None,
    query: Annotated[str | None, typer.Option(help="What holds all of these words.")] = None,
    source: Annotated[
        str | None, typer.Option(help="What came from a device, session, project, origin or program.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="From this day or time on.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to this day, or before this time.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without it, only show what would go, or ask.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Show again what a sidecar has hidden to erase it.")] = False,
) -> None:
    """Erase events: here, in the file and its versions, on the server, on the other devices.

    A running sidecar first hides what a fact or words mean, so that it can be undone.
    The same again changes nothing. If no event has one of the ids, nothing is erased.
    """
    if undo:
        run_command(Request("memory/undo", {}, _show_undone))
        return
    subject, asks = given_params({"factId": fact, "query": query}), not yes and sys.stdin.isatty()
    is_meaning = fact is not None or ((yes or asks) and not cli_context().json)  # the JSON of words stays as it was
    if len(subject) == 1 and not event_ids and {source, since, until} == {None} and is_meaning:
        _forget_meaning(subject, asks=asks, shows_only=not yes and not asks)
        return
    if fact is not None:
        raise typer.BadParameter("name a fact alone")
    chosen = {"query": query, "source": source, "since": since, "until": until}
    given = {name: value for name, value in chosen.items() if value is not None}
    if bool(event_ids) == bool(given):
        raise typer.BadParameter("name events, or say which: --fact, --query, --source, --since, --until")
    if event_ids:
        params: dict[str, Any] = {"eventIds": event_ids}
        call_method("events/forget", params, _show_forgotten, role="helper")
        return
    params = {**given, "dryRun": not yes}
    call_method("events/forgetMatching", params, _show_forget_matching, role="helper")


def _forget_meaning(subject: dict[str, object], *, asks: bool, shows_only: bool) -> None:
    """Show what would go, ask on a terminal, and forget it."""
    cli, found = cli_context(), dict[str, Any]()
    preview = {**subject, "preview": True}
    if shows_only:
        run_command(Request("memory/forget", preview, _show_preview))
        return
    run_request(CliContext(flags=cli.flags), Request("memory/forget", preview, found.update))
    if not cli.json:
        _show_preview(found)
    if asks and found["found"]:
        typer.confirm(localized("Erase it?"), abort=True, err=True)
    params = {**subject, **({"token": found["token"]} if "query" in subject else {})}
    run_command(Request("memory/forget", params, _show_forgetting, repeatable=False))


def _show_preview(result: dict[str, Any]) -> None:
    _show_events(result)
    if result["found"]:
        say("{found:event|events} in all that belong together", **result)


def _show_forgetting(result: dict[str, Any]) -> None:
    if result["requestId"]:
        time = datetime.fromisoformat(result["willBeErasedAt"]).astimezone()
        say(
            "hidden; will be erased at {time}, and `xiaobai-memory forget --undo` brings it back until then",
            time=f"{time:%H:%M:%S}",
        )
    elif result["found"]:
        say("{count:event|events} forgotten, with what repeats or edits them", count=result["found"])
    _show_kept_files(result)


def _show_undone(result: dict[str, Any]) -> None:
    say("undone; {events:event|events} shown again", **result)


def _show_events(result: dict[str, Any]) -> None:
    for event in result["events"]:
        typer.echo(f"{event['ts']}  {event['type']:<20} {event['text']}")
    if result["found"] > len(result["events"]):
        say("… and {count} more", count=result["found"] - len(result["events"]))
    if not result["found"]:
        say("nothing to forget: no event is like that")


def _show_forgotten(result: dict[str, Any]) -> None:
    for event_id in result["forgotten"]:
        say("forgotten {event_id}", event_id=event_id)
    if not result["forgotten"]:
        say("nothing to forget: it is forgotten already")
    _show_kept_files(result)


def _show_forget_matching(result: dict[str, Any]) -> None:
    _show_events(result)
    if result["dryRun"] and result["found"]:
        say("{found:event|events} would be forgotten, with what repeats or edits them; --yes does it", **result)
    elif result["found"]:
        say("{count:event|events} forgotten, with what repeats or edits them", count=len(result["forgotten"]))
    _show_kept_files(result)


def _show_kept_files(result: dict[str, Any]) -> None:
    for line in result["keptFiles"]:
        say("not deleted: {line}", line=line, err=True)
