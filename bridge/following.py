"""`events/appended`: new events told to the client that asked `events/tail` with `follow`.

A client has one tail at a time; asking again replaces it, `events/unfollow` ends it, and so does another account that
comes in (`auth/changed`), whose log is another: the client tails again. A notification may be dropped
where the client does not read (the newest of a method replaces an older one), so each says after which offset it
begins: a client whose own offset differs reads what lies between with `events/read`.
"""

import asyncio
from dataclasses import replace
from typing import Final

from bridge.methods.table import Notify
from sync import contract
from sync.app import App
from sync.jobs import kept_up
from sync.log.model import Query

MOST_AT_ONCE: Final = 50  # events in one notification: 3 MiB of the largest there are, and no frame is over 8
BETWEEN_BATCHES: Final = 0.05  # seconds; a burst of single events comes as a few batches


class Follower:
    """Tells the events after `query.after` as they come."""

    def __init__(self, app: App, query: Query, notify: Notify) -> None:
        self._app = app
        self._query = replace(query, limit=MOST_AT_ONCE)
        self._notify = notify

    async def run(self) -> None:
        """Until cancelled; what was told is not told again after a failure."""
        await kept_up("events followed", self._follow)

    async def _follow(self) -> None:
        while True:
            seen = self._app.log.changed.count
            page = await self._app.log.read(self._query)
            if page.events:
                self._notify("events/appended", contract.appended(page, self._query.after))
                self._query = replace(self._query, after=page.next_offset)
                await asyncio.sleep(BETWEEN_BATCHES)
            else:
                await self._app.log.changed.wait(seen)
