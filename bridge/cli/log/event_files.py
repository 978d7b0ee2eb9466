"""`events files | rebuild-files | import` and `session-meta upsert | list`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from bridge.api.app_provider import AppProvider, OpenAppProvider
from bridge.api.errors import EXIT_FAILURE
from bridge.api.method_table import Context, Notify, no_notifications
from bridge.cli import requests
from bridge.cli.arguments import check_params, path_argument
from bridge.cli.log.events import JsonArgument, app
from bridge.cli.runner import JsonFlag, call_method, run_command, run_with_app
from bridge.methods.registry import METHOD_TABLE
from sync.app import App
from sync.errors import InvalidInput

session_meta = typer.Typer(help="Title, summary and tags of a session as a whole.", no_args_is_help=True)


@app.command("files")
def files(context: typer.Context, *, json: JsonFlag = False) -> None:
    """Where the JSONL files of the log lie, and how far they have come."""
    call_method(context, "events/files", {}, _show_files, as_json=json, role="helper")


@app.command("rebuild-files")
def rebuild_files(context: typer.Context, *, json: JsonFlag = False) -> None:
    """Make the JSONL files, their indexes and everything beside them what the log says."""
    call_with_progress(context, "events/rebuildFiles", {}, _show_rebuilt, as_json=json)


@app.command("import")
def import_files(
    context: typer.Context,
    paths: Annotated[list[str], typer.Argument(help="Files of JSON lines, or folders in which to look for *.jsonl.")],
    *,
    json: JsonFlag = False,
) -> None:
    """Record the events of JSONL files, of another installation for example. Again, it records nothing new.

    Exit 1 where lines were refused and none was an event.
    """
    params = {"paths": [path_argument(path) for path in paths]}
    result = call_with_progress(context, "events/import", params, _show_imported, as_json=json)
    if result["refused"] and not result["recorded"] and not result["known"]:  # no file of events at all
        raise SystemExit(EXIT_FAILURE)


@session_meta.command("upsert")
def upsert(context: typer.Context, meta: JsonArgument, *, json: JsonFlag = False) -> None:
    """Say something of a session: '{"session_id", "title", "tags", …}'. The same again records nothing new."""
    run_command(context, requests.upsert_session(meta), as_json=json)


@session_meta.command("list")
def list_sessions(context: typer.Context, query: JsonArgument = "{}", *, json: JsonFlag = False) -> None:
    """Sessions, newest first: '{"project_id", "days", "limit"}'."""
    run_command(context, requests.list_sessions(query), as_json=json)


def call_with_progress(
    context: typer.Context,
    method: str,
    params: dict[str, Any],
    show: Any,
    *,
    as_json: bool,
    retry_params: dict[str, Any] | None = None,
) -> Any:
    """Run one method of the table, with its progress drawn for a person at a terminal; its result.

    `retry_params`: replace these and try once more if one of them is refused.
    """
    check_params(params)

    async def working(opened: App) -> Any:
        with _progress_bar() as told:
            try:
                return await METHOD_TABLE.call(method, Context[AppProvider](OpenAppProvider(opened), told), params)
            except InvalidInput as error:
                if retry_params is None or error.field not in retry_params:
                    raise
                return await METHOD_TABLE.call(
                    method, Context[AppProvider](OpenAppProvider(opened), told), params | retry_params
                )

    return run_with_app(context, working, show, as_json=as_json, role="helper")


@contextmanager
def _progress_bar() -> Iterator[Notify]:
    """Hears `$/progress` and draws it on stderr, for a person at a terminal; nothing for a pipe."""
    if not sys.stderr.isatty():
        yield no_notifications
        return
    from rich.console import Console  # noqa: PLC0415 - only for people
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bars:
        row = bars.add_task("", total=None)

        def told(method: str, params: object = None, /) -> None:
            value = params.get("value") if method == "$/progress" and isinstance(params, dict) else None
            if isinstance(value, dict):
                bars.update(row, description=value["title"], completed=value["done"], total=value["total"])

        yield told


def _show_files(result: dict[str, Any]) -> None:
    typer.echo(f"{result['root']}\n{result['position']} of {result['head']} events")


def _show_rebuilt(result: dict[str, Any]) -> None:
    typer.echo(f"{result['root']}")
    typer.echo("{events} events in {files} files; {written} written anew, {removed} removed".format(**result))


def _show_imported(result: dict[str, Any]) -> None:
    for file in result["files"]:
        typer.echo("{path}: {recorded} recorded, {known} known already, {refused} refused".format(**file))
        for refused in file["refusals"]:
            typer.echo(f"  line {refused['line']}: {refused['problem']}")
