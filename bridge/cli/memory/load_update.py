"""`load` and `update`."""

import sys
from typing import Annotated, Any, Literal

import typer

from bridge.cli.runner import JsonFlag, call_method, folder_option, text_argument
from sync.app import AppMode


def load(
    context: typer.Context,
    *,
    wait_ms: Annotated[int, typer.Option(help="How long to wait for the cloud, in milliseconds.")] = 1500,
    scope: Annotated[
        Literal["user", "device"],
        typer.Option(help="user: also a digest of your other devices; device: what was said on this device alone."),
    ] = "user",
    max_chars: Annotated[int | None, typer.Option(help="Leave the oldest entries out beyond this length.")] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the block for a system prompt instead.")] = False,
    json: JsonFlag = False,
) -> None:
    """Print the newest known memory."""
    params: dict[str, Any] = {"waitMs": wait_ms, "scope": scope}
    if max_chars is not None:
        params["maxChars"] = max_chars
    method = "memory/systemPrompt" if prompt else "memory/load"
    call_method(context, method, params, _show_prompt if prompt else _show_memory, as_json=json, role=AppMode.HELPER)


def update(
    context: typer.Context,
    user_message: Annotated[str, typer.Argument(help="What the user said; - reads standard input.")],
    ai_response: Annotated[str, typer.Argument(help="What the AI answered.")],
    *,
    importance: Annotated[float | None, typer.Option(help="0 to 1.")] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same call again records nothing new.")] = None,
    project: Annotated[
        str | None, typer.Option(help="Path of the project this was about.", callback=folder_option)
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Record one exchange."""
    given = {
        "userMessage": text_argument(user_message),
        "aiResponse": ai_response,
        "importance": importance,
        "idempotencyKey": key,
        "projectPath": project,
    }
    params = {name: value for name, value in given.items() if value is not None}
    call_method(context, "memory/update", params, _show_updated, as_json=json, role=AppMode.HELPER)


def _show_memory(result: dict[str, Any]) -> None:
    sys.stdout.write(result["content"])
    if not result["content"].endswith("\n"):
        sys.stdout.write("\n")
    stale = ", the cloud could not be asked" if result["stale"] else ""
    sys.stderr.write(f"source: {result['source']}{stale}; waiting to be sent: {result['pending']}\n")


def _show_prompt(result: dict[str, Any]) -> None:
    sys.stdout.write(result["prompt"] + "\n")


def _show_updated(result: dict[str, Any]) -> None:
    if result["recorded"]:
        typer.echo(f"recorded {result['eventId']}")
    else:
        typer.echo(f"not recorded: {result['reason']}")
