"""`xiaobai-memory`: the nouns and verbs, and what stands before them."""

from typing import Annotated

import typer

from bridge.cli import admin, config, doctor, serve
from bridge.cli.account import cloud, devices, login, quarantine
from bridge.cli.log import archive, event_files, events, forget, redact, retention, watermarks
from bridge.cli.memory import daily, document, insights, load_update, recall
from bridge.cli.runner import CliContext, CommandGroup
from sync import __version__

app = typer.Typer(
    name="xiaobai-memory",
    cls=CommandGroup,
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


app.command("serve")(serve.serve_command)
app.command("load")(load_update.load)
app.command("update")(load_update.update)
app.command("status")(cloud.status)
app.command("forget")(forget.forget)
app.command("search")(recall.search)
app.command("export")(archive.export_archive)
app.command("import")(archive.import_archive)
app.add_typer(retention.app, name="retention")
app.command("history")(document.history)
app.command("restore")(document.restore)
app.command("resolve")(document.resolve)
app.command("sync")(cloud.sync)
app.add_typer(quarantine.app, name="quarantine")
app.command("login")(login.login)
app.command("logout")(login.logout)
app.add_typer(devices.app, name="devices")
app.command("doctor")(doctor.doctor)
app.command("redact")(redact.redact)
app.command("config")(config.config)
app.add_typer(events.app, name="events")
app.add_typer(event_files.session_meta, name="session-meta")
app.add_typer(insights.app, name="insights")
app.add_typer(daily.app, name="daily")
app.command("remember")(daily.remember)
app.add_typer(watermarks.app, name="watermarks")
app.add_typer(admin.app, name="admin")
