"""`events files | rebuild-files | import` and `session-meta upsert | list`."""

from typing import Annotated, Any

import typer

from bridge.api.errors import EXIT_FAILURE
from bridge.cli import requests
from bridge.cli.arguments import path_argument
from bridge.cli.log.events import JsonArgument, app
from bridge.cli.output import say
from bridge.cli.progress import call_with_progress
from bridge.cli.runner import CommandApp, call_method, run_command

session_meta = CommandApp(help="Title, summary and tags of a session as a whole.", no_args_is_help=True)


@app.command("files")
def files() -> None:
    """The folder of the JSONL files, and up to which event they are written."""
    call_method("events/files", {}, _show_files, role="helper")


@app.command("rebuild-files")
def rebuild_files() -> None:
    """Write the JSONL files, their indexes and the files beside them again from the log."""
    call_with_progress("events/rebuildFiles", {}, _show_rebuilt)


@app.command("import")
def import_files(
    paths: Annotated[list[str], typer.Argument(help="Files of JSON lines, or folders in which to look for *.jsonl.")],
) -> None:
    """Record the events of JSONL files, of another installation for example. Again, it records nothing new.

    Exit 1 where lines were refused and none was an event.
    """
    params = {"paths": [path_argument(path) for path in paths]}
    result = call_with_progress("events/import", params, _show_imported)
    if result["refused"] and not result["recorded"] and not result["known"]:  # no file of events at all
        raise SystemExit(EXIT_FAILURE)


@session_meta.command("upsert")
def upsert(meta: JsonArgument) -> None:
    """Set fields of a session: '{"session_id", "title", "tags", …}'. The same again records nothing new."""
    run_command(requests.upsert_session(meta))


@session_meta.command("list")
def list_sessions(query: JsonArgument = "{}") -> None:
    """Sessions, newest first: '{"project_id", "days", "limit"}'."""
    run_command(requests.list_sessions(query))


def _show_files(result: dict[str, Any]) -> None:
    say("{root}\n{position} of {head:event|events}", **result)


def _show_rebuilt(result: dict[str, Any]) -> None:
    typer.echo(f"{result['root']}")
    say("{events:event|events} in {files:file|files}; {written} rewritten, {removed} removed", **result)


def _show_imported(result: dict[str, Any]) -> None:
    for file in result["files"]:
        say("{path}: {recorded} recorded, {known} known already, {refused} refused", **file)
        for refused in file["refusals"]:
            say("  line {line}: {problem}", **refused)
