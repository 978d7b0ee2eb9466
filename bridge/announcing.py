"""What the sidecar tells unasked: memory, cloud or login have changed, a token is needed, a long pull comes on.

Only a client that has called `initialize` is told anything: one that never did may read answers line by line. A hint
says "look again"; bursts become one hint, since the second would say nothing new. `$/progress` is no hint: each answer
of the server is told as it comes, and there are as many as pages.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from bridge.methods.table import Notify
from sync import contract
from sync.app import App
from sync.cloud.replicator import CloudStatus
from sync.signals import Signal, wait_for_any

Tell = Callable[[App, Notify], Awaitable[None]]

BETWEEN_HINTS: Final = 0.1  # seconds; a renderer need not redraw more often


async def announce(app: App, notify: Notify, *, arrived: bool) -> None:
    """What a client wants to hear of, until cancelled. `arrived`: another account came in, so all of it is new."""
    if arrived:
        await _auth_changed(app, notify)
        await _Memory().tell(app, notify)
    if app.replicator is None:
        await _hint(app, notify, [])
        return
    with app.replicator.pulls.heard_by(lambda progress: notify("$/progress", contract.progress(progress))):
        await _hint(app, notify, [(app.replicator.advanced, _Status().tell)])


async def _hint(app: App, notify: Notify, of_the_cloud: list[tuple[Signal, Tell]]) -> None:
    hints: list[tuple[Signal, Tell]] = [
        (app.log.changed, _Memory().tell),
        (app.account.changed, _auth_changed),
        (app.account.token_needed, _token_needed),
        *of_the_cloud,
    ]
    counts = [signal.count for signal, _ in hints]
    while True:
        await wait_for_any(None, *((signal, seen) for (signal, _), seen in zip(hints, counts, strict=True)))
        for place, (signal, tell) in enumerate(hints):
            if signal.count != counts[place]:
                counts[place] = signal.count
                await tell(app, notify)
        await asyncio.sleep(BETWEEN_HINTS)


class _Memory:
    """Announces each offset once: the look at other processes' writes also sees the events that are recorded here."""

    def __init__(self) -> None:
        self._told: int | None = None

    async def tell(self, app: App, notify: Notify) -> None:
        offset = await app.log.newest_position()
        if offset != self._told:
            self._told = offset
            notify("memory/changed", {"nextOffset": offset})


async def _auth_changed(app: App, notify: Notify) -> None:
    notify("auth/changed", {"account": contract.account(await app.account.state())})


async def _token_needed(app: App, notify: Notify) -> None:
    del app
    notify("auth/tokenNeeded", {})


class _Status:
    """Tells the cloud's state where it differs from what was told last."""

    def __init__(self) -> None:
        self._told: CloudStatus | None = None

    async def tell(self, app: App, notify: Notify) -> None:
        assert app.replicator is not None  # it is its signal that brought us here
        status, told = await app.replicator.status(), self._told
        if told is None or _what_matters(status) != _what_matters(told):
            self._told = status
            notify("sync/statusChanged", contract.cloud(status))


def _what_matters(status: CloudStatus) -> tuple[object, ...]:
    return status.state, status.realtime, status.last_error
