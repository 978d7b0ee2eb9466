"""The commands that are called most, without typer: their ordinary arguments are parsed here as typer does.

What is unusual (help, a wrong option, a value that begins with a dash) is left to typer.
"""

import signal
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from bridge.api.errors import EXIT_FAILURE
from bridge.cli import requests
from bridge.cli.arguments import STDIN, check_params
from bridge.cli.output import CLI_CONTEXT, CliContext, discard_stdout, exit_with_error, flushed_stdout
from bridge.cli.sidecar_runner import Request, open_sidecar, run_here, run_in_sidecar
from sync.errors import XiaobaiError


class Option(msgspec.Struct, frozen=True):
    """An option: the argument of the request that it sets, and how its value is read; `convert` None means a flag."""

    name: str
    convert: Callable[[str], Any] | None = str
    repeatable: bool = False


class FastCommand(msgspec.Struct, frozen=True):
    """How arguments become a request. `required`: how many of the positional arguments must be given."""

    build: Callable[..., Request]
    arguments: int = 0
    required: int = 0
    options: Mapping[str, Option] = msgspec.field(default_factory=dict)


def _one_of(*choices: str) -> Callable[[str], str]:
    def convert(value: str) -> str:
        if value not in choices:
            raise ValueError(value)
        return value

    return convert


FAST_COMMANDS: Final[Mapping[tuple[str, ...], FastCommand]] = {
    ("load",): FastCommand(
        requests.load,
        options={
            "--wait-ms": Option("wait_ms", int),
            "--scope": Option("scope", _one_of("user", "device")),
            "--max-chars": Option("max_chars", int),
            "--prompt": Option("prompt", None),
        },
    ),
    ("update",): FastCommand(
        requests.update,
        arguments=2,
        required=2,
        options={
            "--importance": Option("importance", float),
            "--key": Option("key"),
            "--session-id": Option("session_id"),
            "--project": Option("project"),
        },
    ),
    ("remember",): FastCommand(
        requests.remember,
        arguments=1,
        required=1,
        options={"--session-id": Option("session_id"), "--project": Option("project")},
    ),
    ("status",): FastCommand(requests.status),
    ("search",): FastCommand(
        requests.search,
        arguments=1,
        required=1,
        options={
            "--limit": Option("limit", int),
            "--scope": Option("scope", _one_of("all", "recent")),
            "--project": Option("project"),
            "--since": Option("since"),
            "--until": Option("until"),
            "--kind": Option("kind", repeatable=True),
            "--preset": Option("preset", _one_of(*requests.PRESETS, *requests.PRESETS.values())),
            "--context": Option("context", None),
        },
    ),
    ("events", "append"): FastCommand(requests.append_event, arguments=1, required=1),
    ("events", "append-batch"): FastCommand(requests.append_events, arguments=1, required=1),
    ("events", "read"): FastCommand(requests.read_events, arguments=1),
    ("session-meta", "upsert"): FastCommand(requests.upsert_session, arguments=1, required=1),
    ("session-meta", "list"): FastCommand(requests.list_sessions, arguments=1),
}
_GLOBAL_OPTIONS: Final = {
    "--json": Option("json", None),
    "--data-dir": Option("data_dir"),
    "--memory-file": Option("memory_file"),
}
_COMMAND_OPTIONS: Final = {"--json": _GLOBAL_OPTIONS["--json"]}


class ParsedCommand(msgspec.Struct, frozen=True):
    """A command line that needs no typer."""

    cli: CliContext
    command: FastCommand
    positional: tuple[str, ...]
    options: Mapping[str, Any]

    def request(self) -> Request:
        return self.command.build(*self.positional, **self.options)


def parse(arguments: list[str]) -> ParsedCommand | None:
    """The command, if it is one of these and its arguments are ordinary."""
    before: dict[str, Any] = {}
    rest = _take_options(arguments, _GLOBAL_OPTIONS, before)
    path = next((path for path in FAST_COMMANDS if tuple(rest or ())[: len(path)] == path), None)
    if rest is None or path is None:
        return None
    command, given, positional = FAST_COMMANDS[path], dict[str, Any](), list[str]()
    rest = rest[len(path) :]
    while rest:
        if rest[0] == STDIN or not rest[0].startswith("-"):
            positional.append(rest.pop(0))
            continue
        rest = _take_options(rest, {**command.options, **_COMMAND_OPTIONS}, given)
        if rest is None:
            return None
    if not command.required <= len(positional) <= command.arguments:
        return None
    as_json = given.pop("json", False) or before.pop("json", False)
    return ParsedCommand(CliContext(as_json, before), command, tuple(positional), given)


def _take_options(arguments: list[str], options: Mapping[str, Option], values: dict[str, Any]) -> list[str] | None:
    """Put the leading options into `values`; what follows them, or None if one of them is not ordinary."""
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != STDIN:
        name, equals, value = rest.pop(0).partition("=")
        option = options.get(name)
        if option is None or (option.convert is None and equals):
            return None
        if option.convert is None:
            values[option.name] = True
            continue
        if not equals:
            value = rest.pop(0) if rest else ""
        if not value or value.startswith("-"):
            return None
        try:
            converted = option.convert(value)
        except ValueError:
            return None
        values[option.name] = [*values.get(option.name, ()), converted] if option.repeatable else converted
    return rest


def run(parsed: ParsedCommand) -> None:
    """Carry out a command, and exit as typer would."""
    CLI_CONTEXT.set(parsed.cli)
    try:
        with flushed_stdout():
            _run(parsed)
    except BrokenPipeError:  # the reader is gone
        discard_stdout()
        raise SystemExit(EXIT_FAILURE) from None
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGINT) from None
    except XiaobaiError as error:
        exit_with_error(error, as_json=parsed.cli.json)


def _run(parsed: ParsedCommand) -> None:
    with open_sidecar(parsed.cli) as connection:
        request = parsed.request()
        check_params(request.params)
        if connection is not None:
            request = request.with_ids()
            if run_in_sidecar(parsed.cli, connection, request):
                return
    run_here(parsed.cli, request)
