"""`xiaobai-memory`: the nouns and verbs, and what stands before them."""

from typing import Annotated

import typer

from bridge.cli import (
    admin,
    archive,
    cloud,
    config,
    daily,
    devices,
    doctor,
    document,
    event_files,
    events,
    forgetting,
    insights,
    login,
    memory,
    quarantine,
    recall,
    redact,
    retention,
    serve,
    watermarks,
)
from bridge.cli.running import Commands, Invocation
from sync import __version__

app = typer.Typer(
    name="xiaobai-memory",
    cls=Commands,
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
def before_the_verb(
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
    context.obj = Invocation(json=json, flags={name: value for name, value in flags.items() if value is not None})


app.command("serve")(serve.serve_command)
app.command("load")(memory.load)
app.command("update")(memory.update)
app.command("status")(cloud.status)
app.command("forget")(forgetting.forget)
app.command("search")(recall.search)
app.command("export")(archive.export)
app.command("import")(archive.take)
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
