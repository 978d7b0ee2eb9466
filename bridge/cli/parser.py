"""`xiaobai-memory`: its commands, and the options before them. A command's module is imported when it is needed."""

import importlib
import sys
from collections.abc import Iterator, MutableMapping
from typing import Annotated, Any, Final, cast

import typer
from typer.main import get_group

from bridge.api.errors import EXIT_FAILURE, EXIT_USAGE, rpc_error
from bridge.cli.output import CliContext, exit_with_rpc_error
from bridge.cli.runner import CommandApp, CommandGroup
from sync import __version__

# Whatever is wrong with a command line; typer does not export the class.
USAGE_ERROR: Final = cast("type[typer.BadParameter]", typer.BadParameter.__bases__[0])
COMMANDS: Final = {
    "serve": "bridge.cli.serve:serve_command",
    "load": "bridge.cli.memory.load_update:load",
    "update": "bridge.cli.memory.load_update:update",
    "status": "bridge.cli.account.cloud:status",
    "forget": "bridge.cli.log.forget:forget",
    "search": "bridge.cli.memory.recall:search",
    "export": "bridge.cli.log.archive:export_archive",
    "import": "bridge.cli.log.archive:import_archive",
    "retention": "bridge.cli.log.retention:app",
    "history": "bridge.cli.memory.document:history",
    "restore": "bridge.cli.memory.document:restore",
    "resolve": "bridge.cli.memory.document:resolve",
    "sync": "bridge.cli.account.cloud:sync",
    "quarantine": "bridge.cli.account.quarantine:app",
    "login": "bridge.cli.account.login:login",
    "logout": "bridge.cli.account.login:logout",
    "devices": "bridge.cli.account.devices:app",
    "changes": "bridge.cli.account.devices:changes",
    "lan": "bridge.cli.account.lan:app",
    "doctor": "bridge.cli.doctor:doctor",
    "redact": "bridge.cli.log.redact:redact",
    "config": "bridge.cli.config:config",
    "events": "bridge.cli.log.event_files:app",
    "session-meta": "bridge.cli.log.event_files:session_meta",
    "insights": "bridge.cli.memory.insights:app",
    "daily": "bridge.cli.memory.daily:app",
    "lessons": "bridge.cli.memory.lessons:app",
    "facts": "bridge.cli.memory.facts:app",
    "notes": "bridge.cli.memory.notes:app",
    "remember": "bridge.cli.memory.daily:remember",
    "watermarks": "bridge.cli.log.watermarks:app",
    "hook": "bridge.hooks.commands:hook",
    "hooks": "bridge.hooks.commands:app",
    "admin": "bridge.cli.admin:app",
}


class LazyCommands(MutableMapping[str, Any]):
    """The commands by name, each made at its first use."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load_command(name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("a command cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class RootGroup(CommandGroup):
    """The program itself: a group whose commands are loaded lazily."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = LazyCommands()

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run a command line. With `--json` wrong usage is one JSON object too."""
        if "--json" not in sys.argv[1:]:
            return super().main(*arguments, **options)
        try:
            status = super().main(*arguments, **{**options, "standalone_mode": False})
        except USAGE_ERROR as error:
            hint = "`xiaobai-memory --help` lists the commands; `--help` after a command explains it."
            exit_with_rpc_error(rpc_error("invalid_input", error.format_message(), hint), EXIT_USAGE, as_json=True)
        except typer.Abort:
            status = EXIT_FAILURE
        sys.exit(status or 0)


def _load_command(name: str) -> Any:
    """The function or group that `COMMANDS` names, as typer makes a command of it. KeyError if there is none."""
    module, _, attribute = COMMANDS[name].partition(":")
    target = getattr(importlib.import_module(module), attribute)
    group = CommandApp()
    group.callback()(lambda: None)
    if isinstance(target, typer.Typer):
        group.add_typer(target, name=name)
    else:
        group.command(name)(target)
    return get_group(group).commands[name]


app = typer.Typer(
    name="xiaobai-memory",
    cls=RootGroup,
    help="The long-term memory of a desktop AI: a Markdown file you own, an event log, your own Supabase.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(value: bool) -> None:
    if value:
        typer.echo(f"xiaobai-memory {__version__}")
        raise typer.Exit


@app.callback()
def global_options(
    context: typer.Context,
    *,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    data_dir: Annotated[str | None, typer.Option(help="Where the memory's database lives.")] = None,
    memory_file: Annotated[str | None, typer.Option(help="The Markdown file.")] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=print_version)
    ] = False,
) -> None:
    del version
    flags = {"data_dir": data_dir, "memory_file": memory_file}
    context.obj = CliContext(json=json, flags={name: value for name, value in flags.items() if value is not None})
