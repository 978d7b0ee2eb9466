"""What the sidecar tells unasked: that the memory or the state of the cloud has changed.

Only a client that has called `initialize` is told anything: one that never did may read answers line by line. A hint
says "look again"; bursts become one hint, since the second would say nothing new.
"""

import asyncio
from typing import Final

from bridge.methods.table import Notify
from sync import contract
from sync.app import App, kept_up
from sync.cloud.replicator import CloudStatus
from sync.signals import wait_for_any

__all__ = ["announce", "kept_up"]

BETWEEN_HINTS: Final = 0.1  # seconds; a renderer need not redraw more often


async def announce(app: App, notify: Notify) -> None:
    """`memory/changed` and `sync/statusChanged`, until cancelled."""
    changed = app.log.changed.count
    advanced = app.replicator.advanced.count if app.replicator else 0
    told: CloudStatus | None = None
    while True:
        waiting = [(app.log.changed, changed)]
        if app.replicator is not None:
            waiting.append((app.replicator.advanced, advanced))
        await wait_for_any(None, *waiting)
        if app.log.changed.count != changed:
            changed = app.log.changed.count
            notify("memory/changed", {"nextOffset": await app.log.newest_position()})
        if app.replicator is not None and app.replicator.advanced.count != advanced:
            advanced = app.replicator.advanced.count
            status = await app.replicator.status()
            if told is None or (status.state, status.last_error) != (told.state, told.last_error):
                told = status
                notify("sync/statusChanged", contract.cloud(status))
        await asyncio.sleep(BETWEEN_HINTS)
