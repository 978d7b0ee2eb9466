"""`history`, `restore`, `resolve`: versions of the memory file, and the answer to a suspicious mass delete."""

from typing import Annotated, Any

import typer

from bridge.cli import requests
from bridge.cli.output import say
from bridge.cli.runner import call_method, run_command


def history(
    *,
    limit: Annotated[int, typer.Option(help="How many, newest first.")] = 20,
) -> None:
    """List the versions of the memory file."""
    call_method("memory/history", {"limit": limit}, _show_history, role="helper")


def restore(
    sha256: Annotated[
        str, typer.Argument(help="The hash of a version, from `history`; its first 7 digits are enough.")
    ],
) -> None:
    """Restore a version, as new events; the present one stays in the history."""
    run_command(requests.restore(sha256))


def resolve(
    answer: Annotated[
        str, typer.Argument(help="accept: the lines were meant to go; restore: keep them, or write them again.")
    ],
) -> None:
    """Answer suspicious_mass_delete, document_missing, cloud_mass_delete or mass_erasure_waits of `status`."""
    run_command(requests.resolve(answer))


def _show_history(result: dict[str, Any]) -> None:
    if not result["versions"]:
        say("no versions yet")
    for version in result["versions"]:
        say("{createdAt}  {cause:<10} {entries:>5} entries  {sha256}", **version)
