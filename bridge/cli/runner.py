"""How a typer command runs: one method of the table, an answer on stdout; `--json` before or after the verb."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from bridge.cli.arguments import check_params
from bridge.cli.output import CLI_CONTEXT, CliContext, exit_with_error, flushed_stdout
from bridge.cli.sidecar_runner import Request, run_request
from sync.errors import XiaobaiError

if TYPE_CHECKING:  # opening the application takes longest; a command that a sidecar carries out does not
    from bridge.cli.app_runner import Role
    from sync.app import App

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., object])

JsonFlag = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


def cli_context() -> CliContext:
    """The options before the verb of the command that runs, and whether `--json` was given."""
    return CLI_CONTEXT.get()


def with_json_option(function: Callable[..., object]) -> Callable[..., object]:
    """Add `--json` behind the options of a command, and set `cli_context` for its time."""

    @functools.wraps(function)
    def command(context: typer.Context, *arguments: Any, json: bool, **options: Any) -> object:
        cli = context.ensure_object(CliContext)
        cli.json |= json
        CLI_CONTEXT.set(cli)
        return function(*arguments, **options)

    own = inspect.signature(function).parameters.values()
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    json = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=JsonFlag)
    command.__signature__ = inspect.Signature([context, *own, json])  # type: ignore[attr-defined]
    command.__annotations__ = {"context": typer.Context, **function.__annotations__, "json": JsonFlag}
    return command


class CommandApp(typer.Typer):
    """Commands that take `--json`, except one that takes the context itself."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[Function], Function]:
        register = super().command(name, **options)

        def decorate(function: Function) -> Function:
            takes_context = "context" in inspect.signature(function).parameters
            register(function if takes_context else with_json_option(function))
            return function

        return decorate


class CommandGroup(TyperGroup):
    """All commands. An error that one raises before or after its work is printed as those of the work are."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with flushed_stdout():
                return super().invoke(ctx)
        except (XiaobaiError, BaseExceptionGroup) as error:
            exit_with_error(error, as_json=ctx.ensure_object(CliContext).json)


def run_command(request: Request) -> None:
    """Have a running sidecar carry out the request, or carry it out here."""
    run_request(cli_context(), request)


def call_method(
    method: str, params: Mapping[str, object], show: Callable[[Any], None], *, role: "Role" = "guest"
) -> Any:
    """Run one method in this process, print its result and return it. A parameter that is None is left out."""
    from bridge.cli.app_runner import run_method  # noqa: PLC0415 - it imports the application

    return run_method(cli_context(), method, given_params(params), show, role)


def given_params(params: Mapping[str, object]) -> dict[str, object]:
    """The parameters that are not None. Raises InvalidInput or TooLarge."""
    given = {name: value for name, value in params.items() if value is not None}
    check_params(given)
    return given


def run_with_app(action: "Callable[[App], Awaitable[T]]", show: Callable[[T], None], *, role: "Role" = "guest") -> T:
    """Run `action` with an open application, print what it returns and return it."""
    from bridge.cli.app_runner import run_action  # noqa: PLC0415 - it imports the application

    return run_action(cli_context(), action, show, role)
