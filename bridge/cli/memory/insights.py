"""`insights next | profile | instincts | report`."""

import sys
from typing import Annotated, Any, Final

import typer

from bridge.cli.output import say
from bridge.cli.runner import CommandApp, call_method

app = CommandApp(help="What the log tells about how you work; read-only.", no_args_is_help=True)

ProjectFilter = Annotated[str | None, typer.Option("--project-id", help="One project's; all if it is missing.")]


@app.command("next")
def next_steps(
    *,
    project_id: ProjectFilter = None,
    session_id: Annotated[str | None, typer.Option(help="Where this session stands.")] = None,
    stage: Annotated[str | None, typer.Option(help="After this stage: design, implement, test …")] = None,
) -> None:
    """The usual next steps, with their evidence."""
    params = {"projectId": project_id, "sessionId": session_id, "stage": stage}
    call_method("insights/next", params, _show_next, role="helper")


@app.command("profile")
def profile(*, project_id: ProjectFilter = None) -> None:
    """Languages, tools, stages, hours, preferences."""
    call_method("insights/profile", {"projectId": project_id}, _show_profile, role="helper")


@app.command("instincts")
def instincts(
    *,
    project_id: ProjectFilter = None,
    status: Annotated[str | None, typer.Option(help="promoted, candidate or retired.")] = None,
) -> None:
    """Learned patterns, the surest first. What a program says of one promotes nothing."""
    call_method("insights/instincts", {"projectId": project_id, "status": status}, _show_instincts, role="helper")


@app.command("report")
def report(
    *,
    html: Annotated[bool, typer.Option("--html", help="One page with charts, instead of Markdown.")] = False,
    days: Annotated[int, typer.Option(min=1, max=366, help="Days of activity, up to today.")] = 30,
) -> None:
    """The analysis report: activity, topics, what was asked again."""
    params = {"format": "html" if html else "markdown", "days": days}
    call_method("insights/report", params, _show_report, role="helper")


PROFILE: Final = {
    "languages": "languages  {counts}",
    "tools": "tools      {counts}",
    "stages": "stages     {counts}",
}


def _show_report(result: dict[str, Any]) -> None:
    sys.stdout.write(result["text"])


def _show_next(result: dict[str, Any]) -> None:
    if not result["stages"] and not result["types"]:
        say("nothing to go by yet")
    for name, at in (("stages", result["stage"]), ("types", result["type"])):
        for step in result[name]:
            typer.echo(f"{step['share']:>4.0%}  {at} → {step['step']}  ({step['count']}: {step['evidence'][0]} …)")


def _show_profile(result: dict[str, Any]) -> None:
    for name in PROFILE:
        counts = ", ".join(f"{item['name']} {item['count']}" for item in result[name])
        say(PROFILE[name], counts=counts or "-")
    for item in result["preferences"]:
        say("prefers    {text}", text=item["text"])


def _show_instincts(result: dict[str, Any]) -> None:
    if not result["instincts"]:
        say("no learned patterns yet")
    for item in result["instincts"]:
        sign = {"correct": "!", "keep": "+", "fails": "x"}[item["kind"]]
        typer.echo(f"{item['confidence']:.2f} {item['status']:<9} {sign} {item['text']}  [{item['instinctId']}]")
        for lesson in item["lessons"]:
            typer.echo(f"               {lesson['text']}")
