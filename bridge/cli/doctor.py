"""`doctor`: checks what a person can break, and says what to do."""

import asyncio
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import typer

from bridge.cli.running import Invocation, JsonFlag, print_json
from sync.app import App, Role, open_app
from sync.errors import XiaobaiError
from sync.settings import Settings


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `ok` is None where there is nothing to check (no cloud is set)."""

    name: str
    ok: bool | None
    found: str
    hint: str = ""


def doctor(context: typer.Context, *, json: JsonFlag = False) -> None:
    """Check file, permissions, database, cloud and login; exit 1 where something is broken."""
    invocation = context.ensure_object(Invocation)
    checks = asyncio.run(examine(invocation.flags))
    healthy = all(check.ok is not False for check in checks)
    if json or invocation.json:
        print_json({"ok": healthy, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            mark = {True: "ok  ", False: "FAIL", None: "-   "}[check.ok]
            typer.echo(f"{mark} {check.name:<12} {check.found}")
            if check.ok is False:
                typer.echo(f"     {'':<12} {check.hint}")
    raise SystemExit(0 if healthy else 1)


async def examine(flags: dict[str, Any]) -> list[Check]:
    """All checks, in the order in which one depends on another; a failure ends those that need it."""
    checks = [Check("program", ok=True, found=f"Python {platform.python_version()} on {platform.system()}")]
    try:
        settings = Settings.gather(**flags)
        checks.append(Check("settings", ok=True, found=str(settings.data_dir)))
        async with open_app(settings, Role.HELPER) as app:
            checks.extend(_local(app))
            checks.extend(await _cloud(app))
    except XiaobaiError as error:
        checks.append(Check(error.kind, ok=False, found=error.message, hint=error.hint))
    return checks


def _local(app: App) -> Iterator[Check]:
    yield Check("database", ok=True, found=str(app.profile.database))
    other = "this command" if app.is_sidecar else "another process"
    yield Check("sidecar", ok=True, found=f"the role is held by {other}")
    path = app.settings.memory_file
    folder = path if path.exists() else path.parent
    yield Check(
        "file",
        ok=os.access(folder, os.W_OK),
        found=f"{path} ({'there' if path.exists() else 'not there yet'})",
        hint=f"Give this user write permission to {folder}.",
    )
    notices = sorted(app.document.notices)
    yield Check(
        "document",
        ok=not notices,
        found=", ".join(notices) or "understood",
        hint="See what the README says about each warning.",
    )
    mode = app.settings.data_dir.stat().st_mode & 0o777
    private = sys.platform == "win32" or mode & 0o077 == 0
    yield Check("private", ok=private, found=f"data directory {mode:o}", hint="chmod 700 the data directory.")


async def _cloud(app: App) -> list[Check]:
    if app.replicator is None:
        return [Check("cloud", ok=None, found="no Supabase project is set; everything works locally")]
    account = await app.account.state()
    if account.state != "logged_in":
        return [Check("login", ok=None, found=account.state, hint="xiaobai-memory login")]
    try:
        await app.replicator.sync_now()
    except XiaobaiError as error:
        return [Check("cloud", ok=False, found=f"{error.kind}: {error.message}", hint=error.hint)]
    status = await app.replicator.status()
    outbox = await app.log.outbox()
    aside = Check(
        "quarantine",
        ok=outbox.quarantined == 0,
        found=f"{outbox.quarantined} events set aside",
        hint="The server refuses these events; see sync/status.",
    )
    return [Check("cloud", ok=True, found=f"level at {status.cursor.seq} as {account.label}"), aside]
