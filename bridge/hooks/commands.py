"""`hook` and `hooks install|remove|status`."""

import datetime as dt
import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from bridge.api.errors import EXIT_FAILURE
from bridge.cli.output import echo, in_own_language, localized, print_result, say
from bridge.cli.runner import CommandApp, cli_context
from bridge.hooks import hook_files, installer, runner
from bridge.hooks.hosts import HOSTS
from bridge.hooks.installer import Action, FileChange, HookFile
from sync.errors import InvalidInput, StorageError
from sync.settings.data_dir import default_data_dir
from sync.settings.settings import Settings

app = CommandApp(help="Hooks in the settings of coding agents (claude, cursor).", no_args_is_help=True)

HostNames = Annotated[list[str] | None, typer.Argument(help="claude, cursor; all that are on this machine by default.")]
InProject = Annotated[bool, typer.Option("--project", help="The settings of the project in the current folder.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes and make none.")]

MESSAGES: Final = {
    "installed": "installed",
    "removed": "removed",
    "unchanged": "nothing to change",
    "not_found": "not on this machine",
    "refused": "left as it is",
    "would be installed": "would be installed",
    "would be removed": "would be removed",
}


def hook() -> None:
    """Answer one event of a coding agent, which gives it as JSON on stdin. Settings files run this."""
    runner.main(cli_context().flags.get("data_dir"))


@app.command()
def install(hosts: HostNames = None, *, project: InProject = False, dry_run: DryRun = False) -> None:
    """Add the hooks to the settings, which otherwise stay as they are."""
    _change("install", hosts, project=project, dry_run=dry_run)


@app.command()
def remove(hosts: HostNames = None, *, project: InProject = False, dry_run: DryRun = False) -> None:
    """Take the hooks out of the settings."""
    _change("remove", hosts, project=project, dry_run=dry_run)


@app.command()
def status(hosts: HostNames = None, *, project: InProject = False) -> None:
    """Where the hooks are installed, and when each last ran."""
    cli = cli_context()
    data_dir = Settings.from_sources(**cli.flags).data_dir
    runs = hook_files.last_runs(hook_files.hooks_folder(data_dir))
    print_result(cli, {"files": [_status_of(file, runs) for file in _files(hosts, project=project)]}, _show_status)


def _change(action: Action, hosts: list[str] | None, *, project: bool, dry_run: bool) -> None:
    cli = cli_context()
    data_dir = Settings.from_sources(**cli.flags).data_dir
    command = installer.hook_command(data_dir, default_data_dir())
    files = [file for file in _files(hosts, project=project) if hosts or file.is_host_present]
    if not files:
        raise InvalidInput(
            "neither Claude Code nor Cursor was found", field="hosts", hint="Start one of them once, or use --project."
        )
    changes = [installer.change_file(file, action, command, data_dir, dry_run=dry_run) for file in files]
    result = {"command": command, "dryRun": dry_run, "files": [_change_to_json(change) for change in changes]}
    print_result(cli, result, partial(_show_changes, changes, dry_run=dry_run))
    if any(change.outcome in {"refused", "not_found"} for change in changes):
        raise SystemExit(EXIT_FAILURE)


def _files(hosts: list[str] | None, *, project: bool) -> list[HookFile]:
    if unknown := [name for name in hosts or [] if name not in HOSTS]:
        raise InvalidInput(f"unknown host {unknown[0]!r}", field="hosts", hint=f"Known hosts: {', '.join(HOSTS)}.")
    folder = Path.cwd() if project else None
    names = dict.fromkeys(hosts) if hosts else HOSTS
    return [installer.settings_file(HOSTS[name], Path.home(), os.environ, folder) for name in names]


def _show_changes(changes: list[FileChange], _: Any, *, dry_run: bool) -> None:
    for change in changes:
        file = change.file
        outcome = f"would be {change.outcome}" if dry_run else change.outcome
        echo(f"{file.host.name:<8} {localized(MESSAGES.get(outcome) or MESSAGES[change.outcome])}  {file.path}")
        if change.problem:
            echo(f"         {in_own_language(change.problem)}")
        if change.outcome == "refused":
            echo(f"         {in_own_language(installer.COMMENT_HINT)}")
        if dry_run:
            echo(change.diff, nl=False)
        elif change.outcome == "installed":
            echo(f"         {in_own_language(file.host.next_step)}")


def _show_status(result: dict[str, Any]) -> None:
    for row in result["files"]:
        state = in_own_language(row["problem"] or ("installed" if row["installed"] else "not installed"))
        echo(f"{row['host']:<8} {state}  {row['path']}")
        for event, at in row["lastRuns"].items():
            say("         {event:<20} last ran {at}", event=event, at=at)


def _change_to_json(change: FileChange) -> dict[str, Any]:
    return {
        "host": change.file.host.name,
        "path": str(change.file.path),
        "outcome": change.outcome,
        "problem": change.problem,
        "diff": change.diff,
        "nextStep": change.file.host.next_step if change.outcome == "installed" else "",
    }


def _status_of(file: HookFile, runs: dict[str, float]) -> dict[str, Any]:
    problem, commands = "", dict[str, list[str]]()
    try:
        commands = installer.installed_commands(file)
    except (ValueError, RecursionError):
        problem = "cannot be read as JSON"
    except StorageError as error:
        problem = error.message
    prefix = f"{file.host.name}."
    return {
        "host": file.host.name,
        "path": str(file.path),
        "installed": bool(commands),
        "events": list(commands),
        "problem": problem,
        "lastRuns": {
            name.removeprefix(prefix): dt.datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
            for name, at in runs.items()
            if name.startswith(prefix)
        },
    }
