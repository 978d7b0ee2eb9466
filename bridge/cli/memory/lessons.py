"""`lessons learn | search | list | show | edit | helped | hurt | stats | clean | export | import | match | review`."""

import re
from typing import Annotated, Any, Final

import typer

from bridge.cli.arguments import folder_option, json_argument, path_argument, text_argument
from bridge.cli.memory.lesson_display import (
    show_cleaned,
    show_findings,
    show_found,
    show_learned,
    show_line,
    show_proposal,
    show_stats,
)
from bridge.cli.output import localized, print_json, say
from bridge.cli.runner import CommandApp, run_command
from bridge.cli.sidecar_runner import Request
from sync.errors import InvalidInput

app = CommandApp(help="Errors with their cures, and patterns; they never leave this device.", no_args_is_help=True)
learn_app = CommandApp(help="Record an error or a pattern.", no_args_is_help=True)
app.add_typer(learn_app, name="learn")

Texts = Annotated[list[str] | None, typer.Option(help="Once for each.")]
LessonIdArgument = Annotated[str, typer.Argument(metavar="ID", help="As err-20260225-001.")]
AGE: Final = re.compile(r"(\d{1,4})([dw]?)")


@learn_app.command("error")
def learn_error(
    record: Annotated[str | None, typer.Argument(help="The record as JSON; - reads standard input.")] = None,
    *,
    message: Annotated[str | None, typer.Option(help="The error as it was printed.")] = None,
    error_type: Annotated[
        str | None, typer.Option("--type", help="ImportError …; else it is read from the message.")
    ] = None,
    location: Annotated[str | None, typer.Option(help="src/api/routes.py:15")] = None,
    language: Annotated[str | None, typer.Option("--lang")] = None,
    framework: Annotated[str | None, typer.Option()] = None,
    task: Annotated[str | None, typer.Option(help="What was being done.")] = None,
    file: Texts = None,
    solution: Annotated[str | None, typer.Option(help="What solved it.")] = None,
    action: Texts = None,
    code_reference: Annotated[str | None, typer.Option()] = None,
    tag: Texts = None,
    project: Annotated[str | None, typer.Option(help="The project's folder.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Record the newest failed call as it is proposed.")] = False,
) -> None:
    """Record an error and what solved it; a known one is counted. Without a message the newest failed call is taken."""
    given = _without_none(
        language=language,
        framework=framework,
        error=_without_none(type=error_type, message=message, location=location) or None,
        context=_without_none(task=task, related_files=file) or None,
        solution=_without_none(description=solution, actions=action, code_reference=code_reference) or None,
        tags=tag,
    )
    is_recent = record is None and message is None
    if is_recent and not given and not yes:
        _call("lessons/propose", {}, show_proposal, role="guest")
        return
    more = {"project": folder_option(project), "recent": True if is_recent else None}
    _learn("error", {**_record_argument(record), **given}, more)


@learn_app.command("pattern")
def learn_pattern(
    path: Annotated[str | None, typer.Argument(help="A source file or folder; - reads a record as JSON.")] = None,
    *,
    name: Annotated[str | None, typer.Option()] = None,
    pattern_type: Annotated[
        str | None, typer.Option("--type", help="api-design, error-handling, testing, security …")
    ] = None,
    description: Annotated[str | None, typer.Option()] = None,
    language: Annotated[str | None, typer.Option("--lang")] = None,
    framework: Annotated[str | None, typer.Option()] = None,
    structure: Annotated[str | None, typer.Option()] = None,
    when: Texts = None,
    benefit: Texts = None,
    tag: Texts = None,
    project: Annotated[str | None, typer.Option(help="The project's folder.")] = None,
) -> None:
    """Record a pattern; of a file only names, signatures and structure are kept."""
    given = _without_none(
        name=name,
        type=pattern_type,
        description=description,
        language=language,
        framework=framework,
        pattern=_without_none(structure=structure) or None,
        when_to_use=when,
        benefits=benefit,
        tags=tag,
    )
    is_record = path is not None and (path == "-" or path.lstrip().startswith("{"))
    more = {"project": folder_option(project), "path": None if is_record or path is None else path_argument(path)}
    _learn("pattern", {**_record_argument(path if is_record else None), **given}, more)


@app.command("search")
def search(
    words: Annotated[str, typer.Argument()] = "",
    *,
    tag: Annotated[str | None, typer.Option()] = None,
    language: Annotated[str | None, typer.Option("--lang")] = None,
    framework: Annotated[str | None, typer.Option()] = None,
    pattern_type: Annotated[str | None, typer.Option("--type")] = None,
) -> None:
    """The lessons that have all these words."""
    params = _without_none(query=words, tag=tag, language=language, framework=framework, type=pattern_type)
    _call("lessons/list", params, show_found, role="guest")


@app.command("list")
def list_lessons(
    *,
    state: Annotated[str | None, typer.Option(help="candidate, held, contradicted or held_back.")] = None,
) -> None:
    """All lessons, newest first."""
    _call("lessons/list", _without_none(state=state), show_found, role="guest")


@app.command("show")
def show(lesson_id: LessonIdArgument) -> None:
    """One lesson with all its fields."""
    _call("lessons/show", {"id": lesson_id}, lambda one: print_json(one["record"]), role="guest")


@app.command("edit")
def edit(
    lesson_id: LessonIdArgument,
    changes: Annotated[str | None, typer.Argument(help="Fields as JSON; - reads standard input.")] = None,
    *,
    solution: Annotated[str | None, typer.Option(help="What solves it.")] = None,
    action: Texts = None,
    tag: Texts = None,
) -> None:
    """Replace fields of a lesson; that confirms it."""
    given = _record_argument(changes)
    if solution is not None or action:
        given["solution"] = _without_none(description=solution, actions=action)
    given |= _without_none(tags=tag)
    if not given:
        raise InvalidInput("nothing is to be changed", field="changes", hint="Give fields as JSON, or an option.")
    _call("lessons/edit", {"id": lesson_id, "changes": given}, show_line)


@app.command("helped")
def helped(lesson_id: LessonIdArgument) -> None:
    """The lesson helped."""
    _call("lessons/judge", {"id": lesson_id, "verdict": "helped"}, show_line)


@app.command("hurt")
def hurt(lesson_id: LessonIdArgument) -> None:
    """The lesson was wrong; one that hurts more than it helps is not shown."""
    _call("lessons/judge", {"id": lesson_id, "verdict": "hurt"}, show_line)


@app.command("stats")
def stats() -> None:
    """How many lessons there are."""
    _call("lessons/stats", {}, show_stats, role="guest")


@app.command("clean")
def clean(
    lesson_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]…")] = None,
    *,
    older_than: Annotated[str | None, typer.Option(help="Not seen for so long: 90d.")] = None,
    duplicates: Annotated[
        bool, typer.Option("--duplicates", help="Equal ones; one that was said or is held stays, with their counts.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove them; they cannot be brought back.")] = False,
) -> None:
    """Remove lessons; without --yes it only shows which."""
    match = AGE.fullmatch(older_than) if older_than is not None else None
    if older_than is not None and match is None:
        raise InvalidInput("--older-than is a number of days or weeks, as 90d, 12w", field="older_than")
    params = _without_none(
        ids=lesson_ids or None,
        olderThanDays=int(match[1]) * (7 if match[2] == "w" else 1) if match is not None else None,
        duplicates=duplicates,
        all=everything,
        confirm=yes,
    )
    _call("lessons/clean", params, show_cleaned)


@app.command("export")
def export_lessons(
    folder: Annotated[
        str | None, typer.Argument(help="A new folder for the tree; standard output without one.")
    ] = None,
) -> None:
    """Write all lessons as JSON; the only way in which they leave this device."""

    def show_exported(result: dict[str, Any]) -> None:
        if result["path"] is not None:
            typer.echo(result["path"])
        else:
            print_json({name: value for name, value in result.items() if name != "path"})

    params = _without_none(path=None if folder is None else path_argument(folder))
    _call("lessons/export", params, show_exported, role="guest")


@app.command("import")
def import_lessons(
    path: Annotated[str, typer.Argument(help="A folder with errors/ and patterns/, or a file of an export.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
) -> None:
    """Take in the lessons of another program with their ids and all their fields; again, it records nothing new."""

    def show_imported(result: dict[str, Any]) -> None:
        done = localized("would be recorded" if result["dryRun"] else "recorded")
        say("{found:lesson|lessons}: {recorded} {done}, {known} known already", done=done, **result)
        for refusal in result["refusals"]:
            typer.echo(f"  {refusal}")

    params = {"path": path_argument(path), "dryRun": dry_run}
    _call("lessons/import", params, show_imported)


@app.command("review")
def review(
    files: Annotated[list[str] | None, typer.Argument(metavar="[FILE]…")] = None,
    *,
    diff: Annotated[bool, typer.Option("--diff", help="Read a unified diff, as `git diff` writes it.")] = False,
) -> None:
    """The past errors that fit changed files, with their count and cure."""
    if not files and not diff:
        raise InvalidInput("it is not said what to review", field="files", hint="Name files, or give --diff.")
    params = _without_none(paths=[path_argument(file) for file in files or ()] or None, diff=_diff_of(diff))
    _call("lessons/review", params, show_findings, role="guest")


@app.command("match")
def match(
    call: Annotated[
        str | None, typer.Argument(help='{"tool", "input", "output", "error", "project", "sessionId"}; - reads it.')
    ] = None,
    *,
    error: Annotated[str | None, typer.Option(help="An error as it was printed, in place of a tool call.")] = None,
) -> None:
    """The lesson for a tool call or an error; prints nothing if none matches."""
    if call is None and error is None:
        raise InvalidInput("it is not said what failed", field="call", hint="Give a tool call as JSON, or --error.")

    def show_match(result: dict[str, Any]) -> None:
        if result["lesson"] is not None:
            typer.echo(result["lesson"]["text"])

    _call("lessons/match", {**_record_argument(call), **_without_none(error=error)}, show_match)


def _learn(kind: str, record: dict[str, Any], more: dict[str, Any]) -> None:
    params = {"kind": kind, "record": record, **_without_none(**more)}
    _call("lessons/learn", params, show_learned, repeatable=False)


def _call(method: str, params: dict[str, Any], show: Any, **more: Any) -> None:
    run_command(Request(method, params, show, **more))


def _diff_of(is_given: bool) -> str | None:
    return text_argument("-") if is_given else None


def _record_argument(value: str | None) -> dict[str, Any]:
    record = {} if value is None else json_argument(value, name="record")
    if not isinstance(record, dict):
        raise InvalidInput("a record is a JSON object", field="record")
    return record


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
