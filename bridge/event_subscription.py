"""`events/appended`: new events for the client that called `events/tail` with `follow`.

A client has one tail at a time; asking again replaces it, `events/unfollow` ends it, and so does another account that
comes in (`auth/changed`), whose log is another: the client tails again. A notification may be dropped
if the client does not read (the newest of a method replaces an older one), so each says after which offset it
begins: a client whose own offset differs reads what lies between with `events/read`.
"""

import asyncio
from typing import Final

from msgspec.structs import replace

from bridge.api.method_table import Notify
from sync.app import App
from sync.contract.events import appended_events_to_json
from sync.log.model import Query
from sync.runtime.supervision import supervise

MAX_EVENTS_PER_NOTIFICATION: Final = (
    50  # events in one notification: 3 MiB of the largest there are, and no frame is over 8
)
BATCH_INTERVAL: Final = 0.05  # seconds; a burst of single events comes as a few batches


class EventSubscription:
    """Tells the events after `query.after` as they come."""

    def __init__(self, app: App, query: Query, notify: Notify) -> None:
        self._app = app
        self._query = replace(query, limit=MAX_EVENTS_PER_NOTIFICATION)
        self._notify = notify

    async def run(self) -> None:
        """Run until cancelled; after a failure no event is sent again."""
        await supervise("events followed", self._send_new_events)

    async def _send_new_events(self) -> None:
        while True:
            seen = self._app.log.changed.count
            page = await self._app.log.read(self._query)
            if page.events:
                self._notify("events/appended", appended_events_to_json(page, self._query.after))
                self._query = replace(self._query, after=page.next_offset)
                await asyncio.sleep(BATCH_INTERVAL)
            else:
                await self._app.log.changed.wait_for_change(seen)
