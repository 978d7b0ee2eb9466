"""How a command runs: settings, the application for a moment, one method of the table, an answer on stdout.

Results go to stdout (one JSON object with `--json`), errors to stderr with a hint; exit 0, 1 failure, 2 usage.
`--json` may stand before or after the verb.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NoReturn, TypeVar

import msgspec
import typer
from typer.core import TyperGroup

from bridge.api.app_provider import AppProvider, OpenAppProvider
from bridge.api.errors import exit_code_of, rpc_error_of, terminal_lines
from bridge.api.method_table import Context
from bridge.methods.registry import METHOD_TABLE
from bridge.rpc.framing import FRAME_LIMIT, SEND_LESS_HINT, FramingError
from sync.app import App, AppMode, open_app
from sync.errors import InvalidInput, StorageError, TooLarge, XiaobaiError
from sync.settings.settings import Settings

T = TypeVar("T")

SIDECAR_TIMEOUT: Final = 10.0  # seconds for a running sidecar; then the command answers by itself
STDIN: Final = "-"  # as an argument: read it from standard input


@dataclass
class CliContext:
    """What stood before the verb; `json` may stand behind it too."""

    json: bool = False
    flags: dict[str, Any] = field(default_factory=dict)


def _set_json(context: typer.Context, value: bool) -> bool:
    context.ensure_object(CliContext).json |= value
    return value


JsonFlag = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.", callback=_set_json)]


class CommandGroup(TyperGroup):
    """All commands: an error that one raises before or after its work is told as those of the work are."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return self._invoke_and_flush(ctx)
        except XiaobaiError as error:
            exit_with_error(error, as_json=ctx.ensure_object(CliContext).json)

    def _invoke_and_flush(self, ctx: Any) -> Any:
        """StorageError where standard output does not take the answer; a pipe that nobody reads is typer's to tell."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                if sys.stdout is not None:  # as it is for who was started without one
                    sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            if error.filename is not None:
                raise
            _discard_stdout()
            reason = error.strerror or type(error).__name__
            raise StorageError(
                f"the answer could not be written to standard output ({reason})",
                hint="What was asked is done and need not be repeated; only its answer is missing.",
            ) from error


def _discard_stdout() -> None:
    """What it still holds goes nowhere; else the interpreter would try once more, and tell it its own way."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def call_method(
    context: typer.Context,
    method: str,
    params: dict[str, Any],
    show: Callable[[Any], None],
    *,
    as_json: bool,
    role: AppMode = AppMode.GUEST,
) -> Any:
    """Run one method and print its result; the result."""
    check_params(params)

    async def calling(app: App) -> object:
        return await METHOD_TABLE.call(method, Context[AppProvider](OpenAppProvider(app)), params)

    return run_with_app(context, calling, show, as_json=as_json, role=role)


def print_result(context: typer.Context, result: Any, show: Callable[[Any], None], *, as_json: bool) -> None:
    """Print a result for people, or as JSON."""
    if as_json or context.ensure_object(CliContext).json:
        print_json(result)
    else:
        show(result)


def call_sidecar(context: typer.Context, method: str, params: dict[str, Any]) -> Any:
    """The answer of the running sidecar, whose settings apply; None if none runs or it refuses."""
    from bridge.rpc import local_endpoint  # noqa: PLC0415 - of the commands only this one needs it

    settings = Settings.from_sources(**context.ensure_object(CliContext).flags)
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    try:
        with local_endpoint.connect_to_sidecar(settings.data_dir, timeout=SIDECAR_TIMEOUT) as connection:
            if connection is None:
                return None
            connection.sendall(msgspec.json.encode(request) + b"\n")
            with connection.makefile("rb") as answers:
                return msgspec.json.decode(answers.readline()).get("result")
    except (OSError, msgspec.DecodeError):
        return None


def run_with_app(
    context: typer.Context,
    action: Callable[[App], Awaitable[T]],
    show: Callable[[T], None],
    *,
    as_json: bool,
    role: AppMode = AppMode.GUEST,
) -> T:
    """Run `work` on an open application and print what it returns; the same."""
    invocation = context.ensure_object(CliContext)
    as_json = as_json or invocation.json
    try:
        result = asyncio.run(_run_in_app(invocation, action, role))
    except BrokenPipeError:  # of one who follows: nobody reads any more
        raise
    except (XiaobaiError, BaseExceptionGroup, OSError) as error:  # after it, an OSError is one of the answer
        exit_with_error(error, as_json=as_json)
    print_result(context, result, show, as_json=as_json)
    return result


def exit_with_error(error: BaseException, *, as_json: bool) -> NoReturn:
    """Tell an error on stderr and leave with its exit code."""
    if as_json:
        told = rpc_error_of(error)
        line = msgspec.json.encode({"error": {"code": told.code, "message": told.message, "data": told.data}})
        sys.stderr.write(line.decode() + "\n")
    else:
        sys.stderr.write("\n".join(terminal_lines(error)) + "\n")
    raise SystemExit(exit_code_of(error))


def print_json(value: object) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def text_argument(value: str) -> str:
    """An argument, or standard input for `-`. Raises InvalidInput, TooLarge."""
    text = _read_stdin(lambda: sys.stdin.read(FRAME_LIMIT + 1)) if value == STDIN else value
    if len(text) > FRAME_LIMIT:  # of which the rest is not read
        raise TooLarge(FramingError.TOO_LARGE.value, field="stdin", hint=SEND_LESS_HINT)
    return text


def read_stdin_line() -> str:
    """One line of standard input, without its end. Raises InvalidInput."""
    return _read_stdin(sys.stdin.readline).rstrip("\r\n")


def folder_option(value: str | None) -> str | None:
    """A project's folder as every program names it, wherever this one was started: `.` is no name, nor is nothing."""
    return os.path.abspath(value) if value else None  # noqa: PTH100 - folds `..`, and follows no link


def project_option(value: str | None) -> str | None:
    """A project's folder likewise, or its id as it is."""
    is_folder = value in {".", ".."} or any(mark in (value or "") for mark in ("/", os.sep))
    return folder_option(value) if is_folder else value


def json_argument(value: str, *, name: str) -> Any:
    """A JSON argument, or standard input for `-`. Raises InvalidInput."""
    try:
        return msgspec.json.decode(text_argument(value))
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{name} is not valid JSON: {error}", field=name) from error
    except RecursionError as error:
        raise InvalidInput(f"{name} is nested too deep", field=name) from error
    except UnicodeEncodeError:
        raise _not_utf8(name) from None


def path_argument(value: str) -> str:
    """A path as the shell means it. What begins with `~` is for the methods, which know whose home there is not."""
    return value if value.startswith("~") else os.path.abspath(value)  # noqa: PTH100 - keeps symlinks


def check_params(params: dict[str, Any]) -> None:
    """What the shell hands over may be no text, or too much of it for a frame. Raises InvalidInput or TooLarge."""
    size = 0
    for name, value in params.items():
        try:
            size += len(msgspec.json.encode(value))
        except UnicodeEncodeError:
            raise _not_utf8(name) from None
        if size > FRAME_LIMIT:
            raise TooLarge(FramingError.TOO_LARGE.value, field=name, hint=SEND_LESS_HINT)


def _not_utf8(name: str) -> InvalidInput:
    return InvalidInput(f"{name} is not text in UTF-8", field=name)


def _read_stdin(read: Callable[[], str]) -> str:
    try:
        return read()
    except UnicodeDecodeError:  # whose text would repeat what was said
        raise InvalidInput("standard input is not text in UTF-8", field="stdin", hint="Write it as UTF-8.") from None


async def _run_in_app(cli_context: CliContext, action: Callable[[App], Awaitable[T]], role: AppMode) -> T:
    settings = Settings.from_sources(**cli_context.flags)
    async with open_app(settings, role) as app:
        result = await action(app)
    if (
        app.login_flow.profile_left.is_set()
    ):  # another account came in: hand the memory file over, unless a sidecar does
        async with open_app(settings, AppMode.HELPER):
            pass
    return result
