"""How a typer command runs: one method of the table, an answer on stdout; `--json` before or after the verb."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from bridge.cli.arguments import check_params
from bridge.cli.output import CliContext, exit_with_error, flushed_stdout
from bridge.cli.sidecar_runner import Request, run_request
from sync.errors import XiaobaiError

if TYPE_CHECKING:  # opening the application takes longest; a command that a sidecar carries out does not
    from bridge.cli.app_runner import Role
    from sync.app import App

T = TypeVar("T")


def _set_json(context: typer.Context, value: bool) -> bool:
    context.ensure_object(CliContext).json |= value
    return value


JsonFlag = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.", callback=_set_json)]


class CommandGroup(TyperGroup):
    """All commands. An error that one raises before or after its work is printed as those of the work are."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with flushed_stdout():
                return super().invoke(ctx)
        except XiaobaiError as error:
            exit_with_error(error, as_json=ctx.ensure_object(CliContext).json)


def run_command(context: typer.Context, request: Request, *, as_json: bool) -> None:
    """Have a running sidecar carry out the request, or carry it out here."""
    run_request(_cli_context(context, as_json=as_json), request)


def call_method(
    context: typer.Context,
    method: str,
    params: dict[str, Any],
    show: Callable[[Any], None],
    *,
    as_json: bool,
    role: "Role" = "guest",
) -> Any:
    """Run one method in this process, print its result and return it."""
    check_params(params)
    from bridge.cli.app_runner import run_method  # noqa: PLC0415 - it imports the application

    return run_method(_cli_context(context, as_json=as_json), method, params, show, role)


def run_with_app(
    context: typer.Context,
    action: "Callable[[App], Awaitable[T]]",
    show: Callable[[T], None],
    *,
    as_json: bool,
    role: "Role" = "guest",
) -> T:
    """Run `action` with an open application, print what it returns and return it."""
    from bridge.cli.app_runner import run_action  # noqa: PLC0415 - it imports the application

    return run_action(_cli_context(context, as_json=as_json), action, show, role)


def _cli_context(context: typer.Context, *, as_json: bool) -> CliContext:
    cli = context.ensure_object(CliContext)
    cli.json |= as_json
    return cli
