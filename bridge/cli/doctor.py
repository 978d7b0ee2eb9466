"""`doctor`: what is broken, and what to do about it; also where the program itself cannot start."""

import asyncio
from typing import Any

import typer

from bridge.cli.running import Invocation, JsonFlag, print_json
from sync import contract
from sync.app import Role, open_app
from sync.errors import XiaobaiError
from sync.health import Check, around, program
from sync.profiles import known_installation
from sync.settings import Settings


def doctor(context: typer.Context, *, json: JsonFlag = False) -> None:
    """Check everything a person can break, changing nothing; exit 1 where something is broken."""
    invocation = context.ensure_object(Invocation)
    result = contract.health(asyncio.run(examine(invocation.flags)))
    if json or invocation.json:
        print_json(result)
    else:
        for check in result["checks"]:
            mark = {True: "ok  ", False: "FAIL", None: "-   "}[check["ok"]]
            typer.echo(f"{mark} {check['name']:<14} {check['found']}")
            if check["hint"] and check["ok"] is not True:
                typer.echo(f"     {'':<14} {check['hint']}")
    raise SystemExit(0 if result["ok"] else 1)


async def examine(flags: dict[str, Any]) -> list[Check]:
    """All checks. Where there is no memory yet, or it cannot be opened, those that need it are left out."""
    try:
        settings = Settings.gather(**flags)
    except XiaobaiError as error:
        return [program(), Check("settings", ok=False, found=error.message, hint=error.hint)]
    checks = await around(settings, serving=False)
    broken = any(check.name == "database" and check.ok is False for check in checks)
    if broken or known_installation(settings.data_dir) is None:
        return checks
    try:
        async with open_app(settings, Role.GUEST) as app:
            return [*checks, *await app.examine()]
    except XiaobaiError as error:
        return [*checks, Check("start", ok=False, found=f"{error.kind}: {error.message}", hint=error.hint)]
