"""`config`: the settings in force, and where each could be set."""

from typing import Any

import typer

from bridge.cli.output import print_result, say
from bridge.cli.runner import cli_context
from sync.settings.data_dir import CONFIG_FILE, ENV_PREFIX
from sync.settings.settings import Settings


def config() -> None:
    """Print the settings in force; keys are never shown."""
    cli = cli_context()
    settings = Settings.from_sources(**cli.flags)
    values: dict[str, Any] = settings.to_display()
    values["supabase_key"] = None if settings.supabase_key is None else "set"
    print_result(cli, {"settings": values, "file": str(settings.data_dir / CONFIG_FILE)}, _show_config)


def _show_config(result: dict[str, Any]) -> None:
    for name, value in _flatten(result["settings"]):
        typer.echo(f"{ENV_PREFIX}{name.upper():<32} {'-' if value is None else value}")
    say("file: {file}", file=result["file"])


def _flatten(values: dict[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    """Nested settings under the names they have in the environment."""
    rows: list[tuple[str, object]] = []
    for name, value in values.items():
        rows.extend(_flatten(value, f"{prefix}{name}__") if isinstance(value, dict) else [(prefix + name, value)])
    return rows
