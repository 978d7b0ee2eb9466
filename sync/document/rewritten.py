"""Manual edits of lines that came from an exchange: they repeat its words, and its erasure does not name them."""

from collections.abc import Sequence

from sqlalchemy import Connection

from sync.document.capture import EDITED
from sync.document.forgetting import lines_of
from sync.log import store as log_store
from sync.log.log import Log


async def edits_of(events: Log, event_ids: Sequence[str]) -> list[str]:
    """The ids of the `entry_edited` events about lines of these events."""

    def looking(connection: Connection) -> list[str]:
        found = (log_store.find(connection, event_id) for event_id in event_ids)
        lines = {line for event in found if event is not None for line in lines_of(event)}
        if not lines:
            return []
        edits = log_store.of_types(connection, [EDITED], after=0)
        return [event.event_id for event in edits if event.payload.get("entry_id") in lines]

    return await events.database.read(looking)
