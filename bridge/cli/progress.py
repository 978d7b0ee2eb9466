"""Progress on stderr for a person at a terminal; nothing for a pipe or a log."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bridge.cli.app_runner import call_in_app
from bridge.cli.runner import given_params, run_with_app
from sync.app import App
from sync.errors import InvalidInput

DrawProgress = Callable[[str, int, int | None], None]


@contextmanager
def progress_bar() -> Iterator[DrawProgress]:
    """Yield a function that draws a title, what is done and the total; it does nothing without a terminal."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console  # noqa: PLC0415 - only for people
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as bars:
        row = bars.add_task("", total=None, visible=False)

        def draw(title: str, done: int, total: int | None) -> None:
            bars.update(row, description=title, completed=done, total=total, visible=True, refresh=True)

        yield draw


def call_with_progress(
    method: str,
    params: dict[str, Any],
    show: Callable[[Any], None],
    *,
    retry_params: dict[str, Any] | None = None,
) -> Any:
    """Run one method in this process with its progress, print its result and return it.

    `retry_params`: replace these and try once more if one of them is refused.
    """
    params = given_params(params)

    async def call(app: App) -> Any:
        with progress_bar() as draw:

            def notify(method: str, params: object = None, /) -> None:
                value = params.get("value") if method == "$/progress" and isinstance(params, dict) else None
                if isinstance(value, dict):
                    draw(value["title"], value["done"], value["total"])

            try:
                return await call_in_app(app, method, params, notify)
            except InvalidInput as error:
                if retry_params is None or error.field not in retry_params:
                    raise
                return await call_in_app(app, method, params | retry_params, notify)

    return run_with_app(call, show, role="helper")
