"""The notifications of the sidecar: memory, cloud, login or pairing have changed, a token is needed, a pull advances.

Only a client that has called `initialize` gets any: one that never did may read answers line by line. A hint
says "look again"; bursts become one hint, since the second would say nothing new. `$/progress` is no hint: one is sent
for each page that the server answers.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from bridge.api.method_table import Notify
from sync.app import App
from sync.cloud.status import CloudStatus
from sync.contract.status import cloud_status_to_json, pull_progress_to_json
from sync.fact_services import foreign_changes
from sync.runtime.change_counter import ChangeCounter, wait_for_any_change

if TYPE_CHECKING:
    from sync.log.devices.changes_json import ChangesJson

Notifier = Callable[[App, Notify], Awaitable[None]]

HINT_INTERVAL: Final = 0.1  # seconds; a renderer need not redraw more often


async def send_change_notifications(app: App, notify: Notify, *, account_changed: bool) -> None:
    """Send changes until cancelled. `account_changed`: another account logged in, so everything is new."""
    if account_changed:
        await _notify_auth_changed(app, notify)
        await _MemoryChangeNotifier().notify_if_changed(app, notify)
    if app.replicator is None:
        await _send_hints(app, notify, [])
        return
    with app.replicator.pull_progress.reporting_to(
        lambda progress: notify("$/progress", pull_progress_to_json(progress))
    ):
        await _send_hints(app, notify, [(app.replicator.state_changed, _StatusChangeNotifier().notify_if_changed)])


async def _send_hints(app: App, notify: Notify, cloud_notifiers: list[tuple[ChangeCounter, Notifier]]) -> None:
    hints: list[tuple[ChangeCounter, Notifier]] = [
        (app.log.changed, _MemoryChangeNotifier().notify_if_changed),
        (app.log.changed, _ForeignChangeNotifier().notify_if_changed),
        (app.account.changed, _notify_auth_changed),
        (app.account.token_needed, _notify_token_needed),
        (app.lan.pairing_changed, _notify_pairing_changed),
        *cloud_notifiers,
    ]
    counts = [signal.count for signal, _ in hints]
    while True:
        await wait_for_any_change(None, *((signal, seen) for (signal, _), seen in zip(hints, counts, strict=True)))
        for place, (signal, tell) in enumerate(hints):
            if signal.count != counts[place]:
                counts[place] = signal.count
                await tell(app, notify)
        await asyncio.sleep(HINT_INTERVAL)


class _MemoryChangeNotifier:
    """Announces each offset once: the look at other processes' writes also sees the events that are recorded here."""

    def __init__(self) -> None:
        self._last_offset: int | None = None

    async def notify_if_changed(self, app: App, notify: Notify) -> None:
        offset = await app.log.newest_position()
        if offset != self._last_offset:
            self._last_offset = offset
            notify("memory/changed", {"nextOffset": offset})


class _ForeignChangeNotifier:
    """Announce the devices that wait and the changes in facts of others if they are new; never with one device."""

    def __init__(self) -> None:
        self._last: ChangesJson | None = None

    async def notify_if_changed(self, app: App, notify: Notify) -> None:
        changes, _ = await foreign_changes(app.log, app.facts)
        if changes is not None and changes != self._last and (changes.devices or self._last is not None):
            self._last = changes
            notify("changes/changed", changes)


async def _notify_auth_changed(app: App, notify: Notify) -> None:
    notify("auth/changed", {"account": await app.account.state()})


async def _notify_pairing_changed(app: App, notify: Notify) -> None:
    notify("lan/pairingChanged", {"pairing": app.lan.pairing_state()})


async def _notify_token_needed(app: App, notify: Notify) -> None:
    del app
    notify("auth/tokenNeeded", {})


class _StatusChangeNotifier:
    """Announce the cloud's state if it differs from the last one sent."""

    def __init__(self) -> None:
        self._last_status: CloudStatus | None = None

    async def notify_if_changed(self, app: App, notify: Notify) -> None:
        assert app.replicator is not None  # its counter has moved
        status, last_status = await app.replicator.status(), self._last_status
        if last_status is None or _visible_state(status) != _visible_state(last_status):
            self._last_status = status
            notify("sync/statusChanged", cloud_status_to_json(status))


def _visible_state(status: CloudStatus) -> tuple[object, ...]:
    return status.state, status.realtime, status.last_error
