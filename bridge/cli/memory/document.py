"""`history`, `restore`, `resolve`: versions of the memory file, and the answer to a suspicious mass delete."""

from typing import Annotated, Any

import typer

from bridge.cli.runner import JsonFlag, call_method


def history(
    context: typer.Context,
    *,
    limit: Annotated[int, typer.Option(help="How many, newest first.")] = 20,
    json: JsonFlag = False,
) -> None:
    """List the versions of the memory file."""
    call_method(context, "memory/history", {"limit": limit}, _show_history, as_json=json, role="helper")


def restore(
    context: typer.Context,
    sha256: Annotated[
        str, typer.Argument(help="The hash of a version, from `history`; its first 7 digits are enough.")
    ],
    *,
    json: JsonFlag = False,
) -> None:
    """Bring a version back, as new events; what is there now stays in the history."""
    call_method(context, "memory/restore", {"sha256": sha256}, _show_edited, as_json=json, role="helper")


def resolve(
    context: typer.Context,
    answer: Annotated[
        str, typer.Argument(help="accept: the lines were meant to go; restore: keep them, or write them again.")
    ],
    *,
    json: JsonFlag = False,
) -> None:
    """Answer suspicious_mass_delete, document_missing, cloud_mass_delete or mass_erasure_waits of `status`."""
    call_method(context, "memory/resolve", {"answer": answer}, _show_edited, as_json=json, role="helper")


def _show_history(result: dict[str, Any]) -> None:
    for version in result["versions"]:
        entries = f"{version['entries']:>5} entries"
        typer.echo(f"{version['createdAt']}  {version['cause']:<10} {entries}  {version['sha256']}")


def _show_edited(result: dict[str, Any]) -> None:
    counts = dict.fromkeys(("entry_added", "entry_edited", "entry_removed"), 0)
    for operation in result["operations"]:
        counts[operation["type"]] += 1
    typer.echo(", ".join(f"{count} {kind.removeprefix('entry_')}" for kind, count in counts.items()))
