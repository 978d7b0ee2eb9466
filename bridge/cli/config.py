"""`config`: the settings in force, and where each could be set."""

from typing import Any

import typer

from bridge.cli.output import CliContext, exit_with_error, print_json
from bridge.cli.runner import JsonFlag
from sync.errors import XiaobaiError
from sync.settings.settings import CONFIG_FILE, ENV_PREFIX, Settings


def config(context: typer.Context, *, json: JsonFlag = False) -> None:
    """Print the settings in force; keys are never shown."""
    invocation = context.ensure_object(CliContext)
    as_json = json or invocation.json
    try:
        settings = Settings.from_sources(**invocation.flags)
    except XiaobaiError as error:
        exit_with_error(error, as_json=as_json)
    values: dict[str, Any] = settings.to_display()
    values["supabase_key"] = None if settings.supabase_key is None else "set"
    if as_json:
        print_json({"settings": values, "file": str(settings.data_dir / CONFIG_FILE)})
        return
    for name, value in _flatten(values):
        typer.echo(f"{ENV_PREFIX}{name.upper():<32} {value}")
    typer.echo(f"file: {settings.data_dir / CONFIG_FILE}")


def _flatten(values: dict[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    """Nested settings under the names they have in the environment."""
    rows: list[tuple[str, object]] = []
    for name, value in values.items():
        rows.extend(_flatten(value, f"{prefix}{name}__") if isinstance(value, dict) else [(prefix + name, value)])
    return rows
