"""Carry out a command in this process: open the application, run, print the result."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

import msgspec

from bridge.api.app_provider import AppProvider, OpenAppProvider
from bridge.api.method_table import Context, Notify, no_notifications
from bridge.cli.output import CliContext, exit_with_error, print_result, say
from bridge.methods.registry import METHOD_TABLE
from sync.app import App
from sync.errors import XiaobaiError
from sync.open_app import AppMode, open_app
from sync.settings.settings import Settings

T = TypeVar("T")
Role = Literal["helper", "guest"]  # those of `sync.app.AppMode` that a command has


def run_method(cli: CliContext, method: str, params: dict[str, Any], show: Callable[[Any], None], role: Role) -> Any:
    """Run one method of the table, print its result and return it."""
    return run_action(cli, lambda app: call_in_app(app, method, params), show, role)


async def call_in_app(app: App, method: str, params: object, notify: Notify = no_notifications) -> Any:
    """Call one method of the table with an open application; its result as JSON values."""
    context = Context[AppProvider](OpenAppProvider(app), notify)
    return msgspec.to_builtins(await METHOD_TABLE.call(method, context, params))


def run_action(cli: CliContext, action: Callable[[App], Awaitable[T]], show: Callable[[T], None], role: Role) -> T:
    """Run `action` with an open application, print what it returns and return it."""
    try:
        result = asyncio.run(_run_in_app(cli, action, AppMode(role)))
    except BrokenPipeError:  # the reader of a following command is gone
        raise
    except (XiaobaiError, BaseExceptionGroup, OSError) as error:  # a later OSError is one of printing
        exit_with_error(error, as_json=cli.json)
    print_result(cli, result, show)
    return result


async def _run_in_app(cli: CliContext, action: Callable[[App], Awaitable[T]], mode: AppMode) -> T:
    settings = Settings.from_sources(**cli.flags)
    async with open_app(settings, mode) as app:
        result = await action(app)
        if app.log.database.upkeep.is_locked_out and not cli.json:
            say("Another process is writing this memory: this is its last commit, the file may be behind.", err=True)
    if app.login_flow.profile_left.is_set():  # another account is open: hand it the memory file, unless a sidecar does
        async with open_app(settings, AppMode.HELPER):
            pass
    return result
