"""`doctor`: what is broken, and what to do about it; also if the program itself cannot start.

A running sidecar is asked about the local network: it alone listens there.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from bridge.cli.output import CliContext, echo, in_own_language, print_result
from bridge.cli.runner import cli_context
from bridge.cli.sidecar_runner import ANSWER_TIMEOUT, open_sidecar
from bridge.hooks.health import check_hooks
from bridge.rpc.endpoint_client import exchange, is_unresponsive
from sync.accounts.profiles import read_installation
from sync.contract.health import HealthJson, health_to_json
from sync.errors import XiaobaiError
from sync.open_app import AppMode, open_app
from sync.settings.settings import Settings
from sync.startup.checks import HealthCheck, run_check
from sync.startup.doctor import check_environment, check_program
from sync.startup.lan_check import NAME as LAN_CHECK

_UNRESPONSIVE: Final = HealthCheck(
    "sidecar",
    ok=False,
    found="a process serves this memory and does not answer: it is stopped or busy",
    hint="Continue or end it; sidecar.pid in the data folder names it. Until then commands read the last commit.",
)


def doctor() -> None:
    """Check everything that a person can break; exit 1 if something is broken. Changes nothing."""
    cli = cli_context()
    result = health_to_json(asyncio.run(_check_all(cli)))
    print_result(cli, result, _show_checks)
    raise SystemExit(0 if result["ok"] else 1)


def _show_checks(result: HealthJson) -> None:
    for check in result["checks"]:
        mark = {True: "ok  ", False: "FAIL", None: "-   "}[check["ok"]]
        echo(f"{mark} {check['name']:<14} {in_own_language(check['found'])}")
        if check["hint"] and check["ok"] is not True:
            echo(f"     {'':<14} {in_own_language(check['hint'])}")


async def _check_all(cli: CliContext) -> list[HealthCheck]:
    """All checks, with the sidecar's own of the local network."""
    checks, network = await asyncio.gather(run_checks(cli.flags), asyncio.to_thread(_network_check_of_sidecar, cli))
    return [network if network is not None and check.name == LAN_CHECK else check for check in checks]


def _network_check_of_sidecar(cli: CliContext) -> HealthCheck | None:
    """What the running sidecar says about the local network; None if none answers."""
    with suppress(OSError, ValueError, XiaobaiError), open_sidecar(cli) as connection:
        if connection is not None:
            response = exchange(connection, "doctor", {}, timeout=ANSWER_TIMEOUT)
            checks = msgspec.convert(response.get("result", {}).get("checks", []), list[HealthCheck])
            return next((check for check in checks if check.name == LAN_CHECK), None)
    return None


async def run_checks(flags: dict[str, Any]) -> list[HealthCheck]:
    """All checks. Those that need the memory are left out if it does not exist or cannot be opened."""
    try:
        settings = Settings.from_sources(**flags)
    except XiaobaiError as error:
        return [check_program(), HealthCheck("settings", ok=False, found=error.message, hint=error.hint)]
    checks = await check_environment(settings, is_sidecar=False)
    if await asyncio.to_thread(is_unresponsive, settings.data_dir):
        checks = [_UNRESPONSIVE if check.name == _UNRESPONSIVE.name else check for check in checks]
    checks.append(check_hooks(settings.data_dir, Path.home()))
    broken = any(check.name == "database" and check.ok is False for check in checks)
    if broken or read_installation(settings.data_dir) is None:
        return checks

    async def check_program_state() -> list[HealthCheck]:
        async with open_app(settings, AppMode.GUEST) as app:
            return await app.check_health()

    return [*checks, *await run_check("start", check_program_state)]
