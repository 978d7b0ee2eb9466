"""`daily …` and `remember`: what is kept of each session, by day."""

from typing import Annotated, Any, Final

import typer

from bridge.api.errors import EXIT_FAILURE
from bridge.cli import requests
from bridge.cli.arguments import folder_option, json_argument, project_option, text_argument
from bridge.cli.display import show_options, show_records
from bridge.cli.output import echo_problem, localized, say
from bridge.cli.runner import CommandApp, call_method, run_command

app = CommandApp(help="What is kept of each session, by day.", no_args_is_help=True)

ProjectFolder = Annotated[str | None, typer.Option("--project", help="The project's folder.", callback=folder_option)]
ProjectFilter = Annotated[
    str | None, typer.Option("--project", help="The project's folder, or its id.", callback=project_option)
]
REASONS: Final = {  # why nothing was recorded or changed
    "too_short": "not recorded: too short; --force records it",
    "auto_save_off": "not recorded: recording.auto_save is off; --force records it",
    "skip": "not recorded: the user said not to save it",
    "sensitive": "not recorded: it is sensitive",
    "no_place": "not recorded: storage.location is project-only, and there is no project",
    "nothing_changed": "nothing is different",
    "already_recorded": "recorded already",
    "edited_by_hand": "not recorded: its record was edited by hand, and stays",
}
RecordId = Annotated[str, typer.Argument(help="The record, as `daily list --json` names it.")]


@app.command("show")
def show(
    day: Annotated[str | None, typer.Argument(help="2026-01-29; today if it is missing.")] = None,
    *,
    project: ProjectFilter = None,
) -> None:
    """A day, as on its page."""
    _call_daily("daily/show", {"date": day, "project": project}, _show_page)


@app.command("list")
def list_records(
    *,
    project: ProjectFilter = None,
    since: Annotated[str | None, typer.Option(help="From this day on.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to this day.")] = None,
    mark: Annotated[str | None, typer.Option(help="important, outdated, reviewed or expired.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000)] = 100,
) -> None:
    """Records, newest first."""
    asked = {"project": project, "since": since, "until": until, "mark": mark, "limit": limit}
    _call_daily("daily/list", asked, lambda result: show_records(result["records"], nothing=localized("no records")))


@app.command("record")
def record(
    session_id: Annotated[str | None, typer.Argument(help="The session.")] = None,
    *,
    turns: Annotated[str | None, typer.Option(help='JSON: [{"role": "user", "content": "…"}], or -.')] = None,
    summary: Annotated[str | None, typer.Option(help='JSON: {"topic": "…", "facts": ["…"]}, or -.')] = None,
    project: ProjectFolder = None,
    force: Annotated[bool, typer.Option("--force", help="However short it is.")] = False,
) -> None:
    """Record a conversation now: a session, its turns, or a summary of it."""
    asked = {
        "sessionId": session_id,
        "turns": None if turns is None else json_argument(turns, name="turns"),
        "summary": None if summary is None else json_argument(summary, name="summary"),
        "projectPath": project,
        "force": force,
    }
    _call_daily("daily/record", asked, _show_outcome)


@app.command("add")
def add(
    topic: str,
    *,
    fact: Annotated[list[str] | None, typer.Option(help="Once for each.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Once for each.")] = None,
    day: Annotated[str | None, typer.Option("--date", help="2026-01-29; today if it is missing.")] = None,
    project: ProjectFolder = None,
    important: Annotated[bool, typer.Option("--important")] = False,
) -> None:
    """Add a record by hand."""
    summary = {"topic": text_argument(topic), "facts": fact or [], "tags": tag or []}
    asked = {"summary": summary, "date": day, "projectPath": project, "important": important}
    _call_daily("daily/add", asked, _show_outcome)


@app.command("edit")
def edit(
    record_id: RecordId,
    *,
    topic: Annotated[str | None, typer.Option()] = None,
    fact: Annotated[list[str] | None, typer.Option(help="Replaces all of them; once for each.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Replaces all of them; once for each.")] = None,
) -> None:
    """Change parts of a record."""
    asked = {"id": record_id, "topic": topic, "facts": fact, "tags": tag}
    _call_daily("daily/edit", asked, _show_outcome)


@app.command("remove")
def remove(record_id: RecordId) -> None:
    """Remove a record; `daily undo` restores it."""
    _call_daily("daily/remove", {"id": record_id}, _show_outcome)


@app.command("mark")
def mark(
    record_id: RecordId,
    kind: Annotated[str, typer.Argument(metavar="MARK", help="important, outdated, reviewed or sensitive.")],
    *,
    off: Annotated[bool, typer.Option("--off", help="Take the mark away.")] = False,
) -> None:
    """Mark a record; `sensitive` erases it and its conversation for good."""
    _call_daily("daily/mark", {"id": record_id, "mark": kind, "on": not off}, _show_outcome)


@app.command("undo")
def undo(
    event_id: Annotated[
        str | None, typer.Argument(help="The event of a change; the last one if it is missing.")
    ] = None,
) -> None:
    """Undo a change, an undo included."""
    _call_daily("daily/undo", {"eventId": event_id}, _show_outcome)


@app.command("review")
def review(
    *,
    language: Annotated[str | None, typer.Option(help="zh or en.")] = None,
) -> None:
    """The records to review: outdated, doubtful or old ones."""

    def show_result(result: dict[str, Any]) -> None:
        for question in result["questions"]:
            typer.echo(f"{question['record']['id']}  {question['text']}")
        if not result["questions"]:
            say("no record to review")

    _call_daily("daily/review", {"language": language}, show_result)


@app.command("merge")
def merge(
    day: Annotated[str | None, typer.Argument(help="2026-01-29; today if it is missing.")] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
) -> None:
    """Merge repeated records of a day."""

    def show_result(result: dict[str, Any]) -> None:
        for fold in result["folds"]:
            typer.echo(f"{fold['topic']}  ({len(fold['folded']) + 1} → 1)")
        if not result["folds"]:
            say("no repeated records")

    _call_daily("daily/merge", {"date": day, "dryRun": dry_run}, show_result)


@app.command("clean")
def clean(
    *,
    confirm: Annotated[bool, typer.Option("--confirm", help="Put them away.")] = False,
) -> None:
    """Records older than `storage.retention_days`; with --confirm they expire."""

    def show_result(result: dict[str, Any]) -> None:
        show_records(result["records"], nothing=localized("no record is old enough"))

    _call_daily("daily/clean", {"confirm": confirm}, show_result)


@app.command("config")
def config(
    option: Annotated[str | None, typer.Argument(help="As recording.auto_save.")] = None,
    value: Annotated[str | None, typer.Argument(help="JSON, or a word.")] = None,
    *,
    project: ProjectFolder = None,
    for_project: Annotated[bool, typer.Option("--for-project", help="In the project's own config.json.")] = False,
) -> None:
    """The options of `config.json`, or one of them set."""
    asked: dict[str, Any] = {"projectPath": project, "forProject": for_project}
    if value is None and option is not None and "=" in option:
        option, _, value = option.partition("=")
    if value is not None:
        from sync.daily.config import parse_value  # noqa: PLC0415 - only this command needs it

        asked |= {"option": option, "value": parse_value(value)}
    elif option is not None:
        from sync.daily.config import check_option  # noqa: PLC0415 - as above

        check_option(option)
    _call_daily("daily/config", asked, lambda result: show_options(result, option))


@app.command("take")
def take() -> None:
    """Make the pages and records that repositories brought your own; `daily status` counts them."""
    _call_daily("daily/take", {}, lambda result: say("taken: {taken}", **result))


@app.command("status")
def status() -> None:
    """The number of records, what is due, and pages that were not written."""

    def show_result(result: dict[str, Any]) -> None:
        say("records: {records}, days: {days}, today: {today}, due: {due}", **result)
        if result["takeable"]:
            say("of repositories, not yours yet: {takeable} (`daily take` makes them yours)", **result)
        for page, why in result["notices"].items():
            typer.echo(f"{page}: {why}")

    _call_daily("daily/status", {}, show_result)


def remember(
    text: Annotated[str, typer.Argument(help="记住这个, 搜索记忆: …, today's memory …; - reads standard input.")],
    *,
    session_id: Annotated[str | None, typer.Option(help="Which session is meant; the newest if none is named.")] = None,
    project: ProjectFolder = None,
) -> None:
    """Carry out a spoken command, in Chinese or English; exit 2 if it is no command (0 with --json)."""
    run_command(requests.remember(text, session_id=session_id, project=project))


def _call_daily(method: str, params: dict[str, Any], show: Any) -> None:
    call_method(method, params, show, role="helper")


def _show_page(result: dict[str, Any]) -> None:
    typer.echo(result["text"].rstrip() or localized("{date}: no records", **result))


def _show_outcome(result: dict[str, Any]) -> None:
    if result["record"] is not None:
        show_records([result["record"]])
    if result["reason"] == "nothing_said":
        echo_problem(
            "nothing that was said in this session is kept, or none has this id",
            "`xiaobai-memory session-meta list` shows the sessions; nothing was recorded.",
        )
        raise typer.Exit(EXIT_FAILURE)
    if result["reason"] is not None:
        say(REASONS.get(result["reason"], result["reason"]))
    elif result["record"] is None and result["eventId"] is not None:
        say("the record is gone; `daily undo {eventId}` brings it back", **result)
