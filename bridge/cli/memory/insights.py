"""`insights next | profile | instincts | report`."""

import sys
from typing import Annotated, Any

import typer

from bridge.cli.runner import JsonFlag, call_method

app = typer.Typer(help="What the log tells about how you work; read-only.", no_args_is_help=True)

ProjectFilter = Annotated[str | None, typer.Option("--project-id", help="One project's; all where it is missing.")]


@app.command("next")
def next_steps(
    context: typer.Context,
    *,
    project_id: ProjectFilter = None,
    session_id: Annotated[str | None, typer.Option(help="Where this session stands.")] = None,
    stage: Annotated[str | None, typer.Option(help="After this stage: design, implement, test …")] = None,
    json: JsonFlag = False,
) -> None:
    """What usually comes next, with the events that say so."""
    params = {"projectId": project_id, "sessionId": session_id, "stage": stage}
    _call_insights(context, "insights/next", params, _show_next, as_json=json)


@app.command("profile")
def profile(context: typer.Context, *, project_id: ProjectFilter = None, json: JsonFlag = False) -> None:
    """Languages, tools, stages, hours, preferences."""
    _call_insights(context, "insights/profile", {"projectId": project_id}, _show_profile, as_json=json)


@app.command("instincts")
def instincts(
    context: typer.Context,
    *,
    project_id: ProjectFilter = None,
    status: Annotated[str | None, typer.Option(help="promoted, candidate or retired.")] = None,
    json: JsonFlag = False,
) -> None:
    """What experience suggests, the surest first. `events append` a user_feedback with an instinct_id to judge one."""
    _call_insights(
        context, "insights/instincts", {"projectId": project_id, "status": status}, _show_instincts, as_json=json
    )


@app.command("report")
def report(
    context: typer.Context,
    *,
    html: Annotated[bool, typer.Option("--html", help="One page with charts, instead of Markdown.")] = False,
    days: Annotated[int, typer.Option(min=1, max=366, help="Days of activity, up to today.")] = 30,
    json: JsonFlag = False,
) -> None:
    """The analysis report: activity, topics, what was asked again."""
    params = {"format": "html" if html else "markdown", "days": days}
    _call_insights(context, "insights/report", params, lambda result: sys.stdout.write(result["text"]), as_json=json)


def _call_insights(context: typer.Context, method: str, params: dict[str, Any], show: Any, *, as_json: bool) -> None:
    given = {name: value for name, value in params.items() if value is not None}
    call_method(context, method, given, show, as_json=as_json, role="helper")


def _show_next(result: dict[str, Any]) -> None:
    if not result["stages"] and not result["types"]:
        typer.echo("nothing to go by yet")
    for name, at in (("stages", result["stage"]), ("types", result["type"])):
        for step in result[name]:
            typer.echo(f"{step['share']:>4.0%}  {at} → {step['step']}  ({step['count']}: {step['evidence'][0]} …)")


def _show_profile(result: dict[str, Any]) -> None:
    for name in ("languages", "tools", "stages"):
        told = ", ".join(f"{item['name']} {item['count']}" for item in result[name])
        typer.echo(f"{name:<10} {told or '-'}")
    for item in result["preferences"]:
        typer.echo(f"prefers    {item['text']}")


def _show_instincts(result: dict[str, Any]) -> None:
    for item in result["instincts"]:
        sign = {"correct": "!", "keep": "+", "fails": "x"}[item["kind"]]
        typer.echo(f"{item['confidence']:.2f} {item['status']:<9} {sign} {item['text']}  [{item['instinctId']}]")
