"""Request an erasure again if the server got the event after the request.

A device that got an event from another one, by the network or an archive, may have erased it before the author sent it
to the server, which then holds the text: it applies a request when it arrives. The author notices it and asks again.
"""

from functools import partial
from typing import Final

from sync.cloud import replication_store
from sync.log.event_types import PAYLOAD_FORGOTTEN
from sync.log.log import EventLog
from sync.log.model import EventDraft, Origin
from sync.redaction import Redactor

MAX_EVENTS: Final = 400  # of one request; the next call does the rest


async def repeat_late_erasures(events: EventLog) -> int:
    """Return how many events were named again."""
    own = events.own_device_ids
    read = partial(replication_store.events_numbered_after_their_erasure, own_device_ids=own)
    late = await events.database.read(read)
    if not late:
        return 0
    payload = Redactor().clean_payload_with_ids("event_ids", late[:MAX_EVENTS], {})
    await events.append([EventDraft(PAYLOAD_FORGOTTEN, payload, origin=Origin.TOOL)])
    return len(late[:MAX_EVENTS])
