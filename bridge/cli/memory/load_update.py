"""`load` and `update`."""

from typing import Annotated, Literal

import typer

from bridge.cli import requests
from bridge.cli.runner import run_command


def load(
    *,
    wait_ms: Annotated[
        int, typer.Option(help="How long to wait for the cloud, in milliseconds.")
    ] = requests.LOAD_WAIT_MS,
    scope: Annotated[
        Literal["user", "device"],
        typer.Option(help="user: also a digest of your other devices; device: what was said on this device alone."),
    ] = "user",
    max_chars: Annotated[int | None, typer.Option(help="Leave the oldest entries out beyond this length.")] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the block for a system prompt instead.")] = False,
) -> None:
    """Print the newest known memory."""
    request = requests.load(wait_ms=wait_ms, scope=scope, max_chars=max_chars, prompt=prompt)
    run_command(request)


def update(
    user_message: Annotated[str, typer.Argument(help="What the user said; - reads standard input.")],
    ai_response: Annotated[str, typer.Argument(help="What the AI answered.")],
    *,
    importance: Annotated[float | None, typer.Option(help="0 to 1.")] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same call again records nothing new.")] = None,
    project: Annotated[str | None, typer.Option(help="Path of the project this was about.")] = None,
    session_id: Annotated[str | None, typer.Option(help="The conversation; its daily record is kept by it.")] = None,
) -> None:
    """Record one exchange."""
    request = requests.update(
        user_message, ai_response, importance=importance, key=key, project=project, session_id=session_id
    )
    run_command(request)
