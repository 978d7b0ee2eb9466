"""`search`: ask the memory."""

from typing import Annotated, Literal

import typer

from bridge.cli import requests
from bridge.cli.requests import PRESETS
from bridge.cli.runner import run_command


def wire_preset(value: str | None) -> str | None:
    """The wire's name of a preset; what the wire knows is taken as it is."""
    if value is None or value in PRESETS.values():
        return value
    if value not in PRESETS:
        raise typer.BadParameter(f"{value!r} is none of {', '.join(PRESETS)}")
    return PRESETS[value]


def search(
    query: Annotated[str, typer.Argument(help="What to look for; - reads standard input.")],
    *,
    limit: Annotated[int, typer.Option(help="How many hits.")] = requests.SEARCH_LIMIT,
    scope: Annotated[
        Literal["all", "recent"],
        typer.Option(help="all, or recent: older ones only if the recent ones say too little."),
    ] = "all",
    project: Annotated[str | None, typer.Option(help="Id or path of a project.")] = None,
    since: Annotated[str | None, typer.Option(help="A day or time; what is older is left out.")] = None,
    until: Annotated[str | None, typer.Option(help="A day or time; what is later is left out.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help="Only exchange, entry, message, fact, feedback, daily, or another program's type; may be given again."
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="default: words and meaning alike; fading: older memories count less; meaning: meaning counts most,"
            " two hits at most.",
            callback=wire_preset,
        ),
    ] = None,
    prompt: Annotated[bool, typer.Option("--context", help="Print what to put before this message.")] = False,
) -> None:
    """Search everything that is kept. A running sidecar answers by meaning too; without one, words alone do."""
    request = requests.search(
        query,
        limit=limit,
        scope=scope,
        project=project,
        since=since,
        until=until,
        kind=kind,
        preset=preset,
        context=prompt,
    )
    run_command(request)
