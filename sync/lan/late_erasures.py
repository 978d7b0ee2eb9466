"""Request an erasure again if the server got the event after the request.

A device that got an event directly may have erased it before the author sent it to the server, which then holds the
text: it applies a request when it arrives. The author notices it and asks again.
"""

import asyncio
from functools import partial
from typing import Final

from sync.lan import store
from sync.log.event_types import PAYLOAD_FORGOTTEN
from sync.log.log import EventLog
from sync.log.model import EventDraft, Origin
from sync.redaction import Redactor

LOOK_PAUSE: Final = 2.0  # seconds between two looks
MAX_EVENTS: Final = 400  # of one request; the next call does the rest


async def follow_late_erasures(events: EventLog) -> None:
    """Look after each change of the log, until cancelled."""
    while True:
        seen = events.changed.count
        await repeat_late_erasures(events)
        await events.changed.wait_for_change(seen)
        await asyncio.sleep(LOOK_PAUSE)


async def repeat_late_erasures(events: EventLog) -> int:
    """Return how many events were named again."""
    own = events.own_device_ids
    late = await events.database.read(partial(store.events_numbered_after_their_erasure, own_device_ids=own))
    if not late:
        return 0
    payload = Redactor().clean_payload_with_ids("event_ids", late[:MAX_EVENTS], {})
    await events.append([EventDraft(PAYLOAD_FORGOTTEN, payload, origin=Origin.TOOL)])
    return len(late[:MAX_EVENTS])
