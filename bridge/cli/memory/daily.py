"""`daily …` and `remember`: what is kept of each session, by day."""

from typing import Annotated, Any

import typer

from bridge.cli import requests
from bridge.cli.arguments import folder_option, json_argument, project_option, text_argument
from bridge.cli.display import show_options, show_records
from bridge.cli.runner import JsonFlag, call_method, run_command

app = typer.Typer(help="What is kept of each session, by day.", no_args_is_help=True)

ProjectFolder = Annotated[str | None, typer.Option("--project", help="The project's folder.", callback=folder_option)]
ProjectFilter = Annotated[
    str | None, typer.Option("--project", help="The project's folder, or its id.", callback=project_option)
]
RecordId = Annotated[str, typer.Argument(help="The record, as `daily list --json` names it.")]


@app.command("show")
def show(
    context: typer.Context,
    day: Annotated[str | None, typer.Argument(help="2026-01-29; today where it is missing.")] = None,
    *,
    project: ProjectFilter = None,
    json: JsonFlag = False,
) -> None:
    """A day as its page shows it."""
    _call_daily(context, "daily/show", {"date": day, "project": project}, _show_page, as_json=json)


@app.command("list")
def list_records(
    context: typer.Context,
    *,
    project: ProjectFilter = None,
    since: Annotated[str | None, typer.Option(help="From this day on.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to this day.")] = None,
    mark: Annotated[str | None, typer.Option(help="important, outdated, reviewed or expired.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000)] = 100,
    json: JsonFlag = False,
) -> None:
    """Records, newest first."""
    asked = {"project": project, "since": since, "until": until, "mark": mark, "limit": limit}
    _call_daily(context, "daily/list", asked, lambda result: show_records(result["records"]), as_json=json)


@app.command("record")
def record(
    context: typer.Context,
    session_id: Annotated[str | None, typer.Argument(help="The session.")] = None,
    *,
    turns: Annotated[str | None, typer.Option(help='JSON: [{"role": "user", "content": "…"}], or -.')] = None,
    summary: Annotated[str | None, typer.Option(help='JSON: {"topic": "…", "facts": ["…"]}, or -.')] = None,
    project: ProjectFolder = None,
    force: Annotated[bool, typer.Option("--force", help="However short it is.")] = False,
    json: JsonFlag = False,
) -> None:
    """Keep a conversation now: a session, its turns, or a summary of it."""
    asked = {
        "sessionId": session_id,
        "turns": None if turns is None else json_argument(turns, name="turns"),
        "summary": None if summary is None else json_argument(summary, name="summary"),
        "projectPath": project,
        "force": force,
    }
    _call_daily(context, "daily/record", asked, _show_outcome, as_json=json)


@app.command("add")
def add(
    context: typer.Context,
    topic: str,
    *,
    fact: Annotated[list[str] | None, typer.Option(help="Once for each.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Once for each.")] = None,
    day: Annotated[str | None, typer.Option("--date", help="2026-01-29; today where it is missing.")] = None,
    project: ProjectFolder = None,
    important: Annotated[bool, typer.Option("--important")] = False,
    json: JsonFlag = False,
) -> None:
    """Add a record by hand."""
    summary = {"topic": text_argument(topic), "facts": fact or [], "tags": tag or []}
    asked = {"summary": summary, "date": day, "projectPath": project, "important": important}
    _call_daily(context, "daily/add", asked, _show_outcome, as_json=json)


@app.command("edit")
def edit(
    context: typer.Context,
    record_id: RecordId,
    *,
    topic: Annotated[str | None, typer.Option()] = None,
    fact: Annotated[list[str] | None, typer.Option(help="All of them anew, once for each.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="All of them anew, once for each.")] = None,
    json: JsonFlag = False,
) -> None:
    """Change parts of a record."""
    asked = {"id": record_id, "topic": topic, "facts": fact, "tags": tag}
    _call_daily(context, "daily/edit", asked, _show_outcome, as_json=json)


@app.command("remove")
def remove(context: typer.Context, record_id: RecordId, *, json: JsonFlag = False) -> None:
    """Take a record away; `daily undo` brings it back."""
    _call_daily(context, "daily/remove", {"id": record_id}, _show_outcome, as_json=json)


@app.command("mark")
def mark(
    context: typer.Context,
    record_id: RecordId,
    kind: Annotated[str, typer.Argument(metavar="MARK", help="important, outdated, reviewed or sensitive.")],
    *,
    off: Annotated[bool, typer.Option("--off", help="Take the mark away.")] = False,
    json: JsonFlag = False,
) -> None:
    """Mark a record; `sensitive` forgets it and its conversation for good."""
    _call_daily(context, "daily/mark", {"id": record_id, "mark": kind, "on": not off}, _show_outcome, as_json=json)


@app.command("undo")
def undo(
    context: typer.Context,
    event_id: Annotated[str | None, typer.Argument(help="The deed; the last one where it is missing.")] = None,
    *,
    json: JsonFlag = False,
) -> None:
    """Take back a deed, an undo included."""
    _call_daily(context, "daily/undo", {"eventId": event_id}, _show_outcome, as_json=json)


@app.command("review")
def review(
    context: typer.Context,
    *,
    language: Annotated[str, typer.Option(help="zh or en.")] = "zh",
    json: JsonFlag = False,
) -> None:
    """What to look at again: outdated, doubtful or old records."""

    def told(result: dict[str, Any]) -> None:
        for question in result["questions"]:
            typer.echo(f"{question['record']['id']}  {question['text']}")

    _call_daily(context, "daily/review", {"language": language}, told, as_json=json)


@app.command("merge")
def merge(
    context: typer.Context,
    day: Annotated[str | None, typer.Argument(help="2026-01-29; today where it is missing.")] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    json: JsonFlag = False,
) -> None:
    """Fold a day's repeats."""

    def told(result: dict[str, Any]) -> None:
        for fold in result["folds"]:
            typer.echo(f"{fold['topic']}  ({len(fold['folded']) + 1} → 1)")

    _call_daily(context, "daily/merge", {"date": day, "dryRun": dry_run}, told, as_json=json)


@app.command("clean")
def clean(
    context: typer.Context,
    *,
    confirm: Annotated[bool, typer.Option("--confirm", help="Put them away.")] = False,
    json: JsonFlag = False,
) -> None:
    """What is older than `storage.retention_days`; nothing is done without --confirm."""
    _call_daily(
        context, "daily/clean", {"confirm": confirm}, lambda result: show_records(result["records"]), as_json=json
    )


@app.command("config")
def config(
    context: typer.Context,
    option: Annotated[str | None, typer.Argument(help="As recording.auto_save.")] = None,
    value: Annotated[str | None, typer.Argument(help="JSON, or a word.")] = None,
    *,
    project: ProjectFolder = None,
    for_project: Annotated[bool, typer.Option("--for-project", help="In the project's own config.json.")] = False,
    json: JsonFlag = False,
) -> None:
    """The options of `config.json`, or one of them set."""
    asked: dict[str, Any] = {"projectPath": project, "forProject": for_project}
    if value is not None:
        from sync.daily.config import parse_value  # noqa: PLC0415 - the room, for this command alone

        asked |= {"option": option, "value": parse_value(value)}
    elif option is not None:
        from sync.daily.config import check_option  # noqa: PLC0415 - as above

        check_option(option)
    _call_daily(context, "daily/config", asked, lambda result: show_options(result, option), as_json=json)


@app.command("status")
def status(context: typer.Context, *, json: JsonFlag = False) -> None:
    """How many records there are, what is due, which pages were left alone."""

    def told(result: dict[str, Any]) -> None:
        typer.echo(
            f"{result['records']} records of {result['days']} days, {result['today']} today, {result['due']} due"
        )
        for page, why in result["notices"].items():
            typer.echo(f"{page}: {why}")

    _call_daily(context, "daily/status", {}, told, as_json=json)


def remember(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="记住这个, 搜索记忆: …, today's memory …; - reads standard input.")],
    *,
    session_id: Annotated[str | None, typer.Option(help="Which session is meant; the newest where none is.")] = None,
    project: ProjectFolder = None,
    json: JsonFlag = False,
) -> None:
    """Say something to the memory, in Chinese or English; exit 2 if it is no command (0 with --json)."""
    run_command(context, requests.remember(text, session_id=session_id, project=project), as_json=json)


def _call_daily(context: typer.Context, method: str, params: dict[str, Any], show: Any, *, as_json: bool) -> None:
    given = {name: value for name, value in params.items() if value is not None}
    call_method(context, method, given, show, as_json=as_json, role="helper")


def _show_page(result: dict[str, Any]) -> None:
    typer.echo(result["text"].rstrip() or f"{result['date']}: -")


def _show_outcome(result: dict[str, Any]) -> None:
    if result["record"] is not None:
        show_records([result["record"]])
    if result["reason"] is not None:
        typer.echo(result["reason"])
