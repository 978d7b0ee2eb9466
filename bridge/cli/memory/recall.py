"""`search`: ask the memory."""

from typing import Annotated, Any, Final, Literal

import typer

from bridge.cli.runner import (
    JsonFlag,
    call_method,
    call_sidecar,
    check_params,
    print_result,
    project_option,
    text_argument,
)
from sync.app import AppMode

MAX_HIT_CHARS = 160  # characters of a hit in the list
SEMANTIC_NOTICES = {  # what a person is told of an answer that is not by words and meaning
    "off": "Found by words alone; a running sidecar with the extra `embeddings` searches by meaning too.",
    "pending": "Found by words alone: the vectors are not ready yet.",
    "partial": "Not all memories have vectors yet: some were compared by words alone.",
    "failed": "Found by words alone: the models did not answer. See the log of the sidecar.",
}
PRESETS: Final = {"default": "default", "fading": "seed000", "meaning": "seed004"}  # and as the wire names them


def wire_preset(value: str | None) -> str | None:
    """The wire's name of a preset; what the wire knows is taken as it is."""
    if value is None or value in PRESETS.values():
        return value
    if value not in PRESETS:
        raise typer.BadParameter(f"{value!r} is none of {', '.join(PRESETS)}")
    return PRESETS[value]


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What to look for; - reads standard input.")],
    *,
    limit: Annotated[int, typer.Option(help="How many hits.")] = 10,
    scope: Annotated[
        Literal["all", "recent"],
        typer.Option(help="all, or recent: older ones only where the recent say too little."),
    ] = "all",
    project: Annotated[str | None, typer.Option(help="Id or path of a project.", callback=project_option)] = None,
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
    json: JsonFlag = False,
) -> None:
    """Search everything that is kept. A running sidecar answers by meaning too; without one, words alone do."""
    given = {
        "query": text_argument(query),
        "limit": limit,
        "scope": scope,
        "project": project,
        "since": since,
        "until": until,
        "kinds": kind,
        "weights": preset,
    }
    params: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    method, show = ("recall/context", _show_context) if prompt else ("recall/search", _show_hits)
    check_params(params)
    answer = call_sidecar(context, method, params)
    if answer is None:
        call_method(context, method, params, show, as_json=json, role=AppMode.HELPER)
    else:
        print_result(context, answer, show, as_json=json)


def _show_hits(result: dict[str, Any]) -> None:
    for hit in result["hits"]:
        text = " ".join(hit["text"].split())
        shown = text if len(text) <= MAX_HIT_CHARS else text[: MAX_HIT_CHARS - 1] + "…"
        typer.echo(f"{hit['score']:.2f}  {hit['date']}  {hit['kind']:<9} {shown}  ({hit['origin']}, {hit['eventId']})")
    if not result["hits"]:
        typer.echo("nothing found")
    if result["partial"]:
        typer.echo("The index is still being built: some memories are missing from this answer.", err=True)
    if result["semantic"] != "used":
        typer.echo(SEMANTIC_NOTICES[result["semantic"]], err=True)


def _show_context(result: dict[str, Any]) -> None:
    typer.echo(result["context"], nl=False)
