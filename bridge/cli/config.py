"""`config`: the settings in force, and where each could be set."""

from typing import Any

import typer

from bridge.cli.running import Invocation, JsonFlag, fail, print_json
from sync.errors import XiaobaiError
from sync.settings import CONFIG_FILE, PREFIX, Settings


def config(context: typer.Context, *, json: JsonFlag = False) -> None:
    """Print the settings in force; keys are never shown."""
    invocation = context.ensure_object(Invocation)
    as_json = json or invocation.json
    try:
        settings = Settings.gather(**invocation.flags)
    except XiaobaiError as error:
        fail(error, as_json=as_json)
    values: dict[str, Any] = settings.shown()
    values["supabase_key"] = None if settings.supabase_key is None else "set"
    if as_json:
        print_json({"settings": values, "file": str(settings.data_dir / CONFIG_FILE)})
        return
    for name, value in _flat(values):
        typer.echo(f"{PREFIX}{name.upper():<32} {value}")
    typer.echo(f"file: {settings.data_dir / CONFIG_FILE}")


def _flat(values: dict[str, Any], above: str = "") -> list[tuple[str, object]]:
    """Nested settings under the names they have in the environment."""
    rows: list[tuple[str, object]] = []
    for name, value in values.items():
        rows.extend(_flat(value, f"{above}{name}__") if isinstance(value, dict) else [(above + name, value)])
    return rows
