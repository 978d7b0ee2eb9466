"""`admin …`: figures about all users of a Supabase project, and its upkeep, for the project's owner.

The secret key comes from the environment (`XIAOBAI_ADMIN_KEY` or `SUPABASE_SECRET_KEY`) and from nowhere else. Nothing
here opens a memory or touches a file of this machine.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import typer

from bridge.cli.output import print_result
from bridge.cli.progress import progress_bar
from bridge.cli.runner import CommandApp, cli_context
from sync.errors import CloudNotConfigured, InvalidInput
from sync.settings.settings import Settings, pop_admin_key

app = CommandApp(help="For the owner of a Supabase project; needs its secret key in XIAOBAI_ADMIN_KEY.")

UserOption = Annotated[str | None, typer.Option("--user", help="One user's id; all if it is missing.")]
Limit = Annotated[int, typer.Option(min=1, max=100_000, help="At most so many rows.")]
Days = Annotated[int, typer.Option(min=1, max=3650, help="How many days back.")]
UserArgument = Annotated[str | None, typer.Argument(help="The user's id; all users if it is missing.")]


PIPE_WIDTH: Final = 200  # columns of a file or a pipe, which fold nothing
COLUMNS: Final = {
    "users": ("user_id", "devices", "revoked", "events", "folded", "quarantined", "document_bytes", "last_seen_at"),
    "devices": ("user_id", "device_id", "name", "platform", "app_version", "behind", "quarantined", "last_seen_at"),
    "activity": ("day", "user_id", "device_id", "events", "bytes"),
    "growth": ("day", "users", "new_users", "devices", "events", "bytes", "events_in_all", "bytes_in_all"),
    "stale": ("user_id", "device_id", "name", "why", "silent_days", "behind", "last_seen_at"),
    "quarantine": ("user_id", "device_id", "name", "code", "events", "app_version", "reported_at"),
}


@app.command("users")
def users(*, limit: Limit = 1000) -> None:
    """Who syncs: devices, events, when last seen; the latest first."""
    _list_view("users", order="last_seen_at", newest=True, limit=limit)


@app.command("devices")
def devices(*, user: UserOption = None, limit: Limit = 1000) -> None:
    """Every device: when seen, how far behind, what it set aside."""
    _list_view("devices", order="last_seen_at", newest=True, limit=limit, user=user)


@app.command("activity")
def activity(*, user: UserOption = None, days: Days = 30, limit: Limit = 1000) -> None:
    """Events that arrived, by day, user and device; the newest first."""
    _list_view("activity", order="day", newest=True, limit=limit, user=user, days=days)


@app.command("growth")
def growth(*, days: Days = 90) -> None:
    """By day: who wrote, who for the first time, how much, how much in all."""
    _list_view("growth", order="day", newest=True, limit=days, days=days)


@app.command("stale")
def stale(*, limit: Limit = 1000) -> None:
    """Devices not heard of for a week, or more than a thousand events behind."""
    _list_view("stale", order="last_seen_at", limit=limit)


@app.command("quarantine")
def quarantine(*, limit: Limit = 1000) -> None:
    """What devices have set aside because the server refuses it: counts by code."""
    _list_view("quarantine", order="reported_at", newest=True, limit=limit)


@app.command("checkpoint")
def checkpoint(user: UserArgument = None, *, days: Days = 30) -> None:
    """Fold old events, past what every device seen in so many days holds. Nothing is lost by it."""
    _run_steps(user, lambda admin, user_id: admin.checkpoint(user_id, days), "folded")


@app.command("prune")
def prune(user: UserArgument = None) -> None:
    """Delete the rows of folded events; may be killed and repeated."""
    _run_steps(user, lambda admin, user_id: admin.prune(user_id), "pruned")


@app.command("purge-user")
def purge_user(
    user: Annotated[str, typer.Argument(help="The user's id.")],
    *,
    account: Annotated[bool, typer.Option("--account", help="Delete the account itself as well.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Erase everything a user has on the server, and revoke their devices. What is on those devices stays there."""
    if not yes and typer.prompt("Everything of this user will be erased. Type the id to go on", err=True) != user:
        raise InvalidInput("that is another id; nothing was erased", field="user")
    _run_steps(user, lambda admin, user_id: admin.purge(user_id, account=account), "erased")


def _list_view(
    view: str,
    *,
    order: str,
    limit: int,
    newest: bool = False,
    user: str | None = None,
    days: int | None = None,
) -> None:
    where = {}
    if days is not None:
        where["day"] = f"gt.{(datetime.now(UTC) - timedelta(days=days)).date().isoformat()}"

    async def list_rows(admin: Any) -> dict[str, Any]:
        if user is not None:
            where["user_id"] = f"eq.{_user_id(user)}"
        return {"rows": await admin.view_rows(view, order=order, newest=newest, filters=where, limit=limit)}

    _run_as_admin(list_rows, lambda result: _show_table(view, result["rows"]))


def _run_steps(
    user: str | None,
    steps: Callable[[Any, str], AsyncIterator[Any]],
    verb: str,
) -> None:
    """Take the steps for one user or for all, with a bar for a person at a terminal."""

    async def take_steps(admin: Any) -> dict[str, Any]:
        if user is None:
            chosen = [row["user_id"] for row in await admin.view_rows("users", order="user_id", limit=sys.maxsize)]
        else:
            chosen = [_user_id(user)]
        result: dict[str, Any] = {"users": len(chosen), verb: 0}
        held = {}
        with progress_bar() as draw:
            for done, user_id in enumerate(chosen):
                draw(verb, done, len(chosen))
                async for step in steps(admin, user_id):
                    result[verb] += step.events
                    if step.held_by is not None:
                        held[user_id] = step.held_by
        return result | ({"heldBy": held} if held else {})

    _run_as_admin(take_steps, lambda result: _show_summary(result, verb))


def _run_as_admin(
    action: Callable[[Any], Awaitable[dict[str, Any]]],
    show: Callable[[dict[str, Any]], None],
) -> None:
    cli, key = cli_context(), pop_admin_key(os.environ)
    url = Settings.from_sources(**cli.flags).supabase_url
    if url is None:
        raise CloudNotConfigured("no Supabase project is set")
    print_result(cli, asyncio.run(_with_admin(url, key, action)), show)


async def _with_admin(url: str, key: str, action: Callable[[Any], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    from sync.cloud.supabase.admin import AdminClient  # noqa: PLC0415 - the only ones that may load it

    async with AdminClient(url, key) as admin:
        return await action(admin)


def _user_id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError as error:
        raise InvalidInput("a user's id is a UUID, as `admin users` shows it", field="user") from error


def _show_table(view: str, rows: list[dict[str, Any]]) -> None:
    """What a person looks for; `--json` has every column. An id is never cut, so that it can be copied."""
    from rich.console import Console  # noqa: PLC0415 - only for people
    from rich.table import Table  # noqa: PLC0415

    if not rows:
        typer.echo(f"{view}: nothing")
        return
    names = [name for name in COLUMNS[view] if name in rows[0]]
    table = Table(box=None, pad_edge=False)
    for name in names:
        numbers = isinstance(rows[0][name], int)
        justify: Literal["left", "right"] = "right" if numbers else "left"
        table.add_column(name.replace("_", " "), justify=justify, overflow="fold", no_wrap=name == "user_id")
    for row in rows:
        table.add_row(*(_cell(name, row[name]) for name in names))
    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)


def _cell(name: str, value: object) -> str:
    if value is None:
        return ""
    return str(value)[:16].replace("T", " ") if name.endswith("_at") else str(value)


def _show_summary(result: dict[str, Any], verb: str) -> None:
    typer.echo(f"{verb} {result[verb]} events of {result['users']} users")
    for user_id, device_id in result.get("heldBy", {}).items():
        typer.echo(f"{user_id}: device {device_id} has not read further yet")
