"""Every projection of the log: its name in the table `watermarks`, and which events it reads.

Retention keeps an event until the projections that read it have passed it. A row of `watermarks` that is neither
here nor in `sync.log.local_state` belongs to another program, which reads every event.
"""

from typing import Final

import msgspec

from sync.db.schema import DOCUMENT_LOG_OFFSET
from sync.log.event_types import (
    CONVERSATION_TYPES,
    DOCUMENT_EVENT_TYPES,
    FACT_TYPES,
    HIDING_TYPES,
    LESSON_COUNTED,
    LESSON_EDITED,
    LESSON_LEARNED,
    LESSON_REMOVED,
    LESSON_TYPES,
    PAYLOAD_FORGOTTEN,
    RETRACTING_TYPES,
    SESSION_END_TYPES,
    USER_FEEDBACK,
)
from sync.log.model import Event


class ProjectionEntry(msgspec.Struct, frozen=True):
    """A projection as others need to know it. Without `event_types` it reads every event.

    `delays_retention`: it reads payloads, so an event may expire only after the projection has passed it.
    """

    name: str
    event_types: tuple[str, ...] = ()
    own_device_only: bool = False
    delays_retention: bool = True

    def reads(self, event: Event, device_id: str) -> bool:
        """Return whether the projection on this device reads the event."""
        if self.own_device_only and event.device_id != device_id:
            return False
        return not self.event_types or event.type in self.event_types


DOCUMENT: Final = ProjectionEntry(DOCUMENT_LOG_OFFSET, DOCUMENT_EVENT_TYPES, own_device_only=True)
RECALL: Final = ProjectionEntry("recall")
JSONL: Final = ProjectionEntry("jsonl")
DAILY: Final = ProjectionEntry("daily", (*CONVERSATION_TYPES, *SESSION_END_TYPES), own_device_only=True)

# Retention never expires an erasure request.
ERASURE: Final = ProjectionEntry("document.forgotten", RETRACTING_TYPES, delays_retention=False)
ARCHIVE_RETRACTIONS: Final = ProjectionEntry("retention.archives", (PAYLOAD_FORGOTTEN,), delays_retention=False)

# Retention never expires an event that states an active fact.
FACT_LINES: Final = ProjectionEntry("document.facts", (*FACT_TYPES, *HIDING_TYPES), delays_retention=False)

# Retention never expires a lesson; the observed calls it may expire are only read to learn new ones.
LESSONS: Final = ProjectionEntry("lessons", (*LESSON_TYPES, USER_FEEDBACK, *HIDING_TYPES), delays_retention=False)
LESSON_FILES: Final = ProjectionEntry(
    "lessons.files",
    (LESSON_LEARNED, LESSON_EDITED, LESSON_REMOVED, LESSON_COUNTED, USER_FEEDBACK, *HIDING_TYPES),
    delays_retention=False,
)

# Insights keep their offset in their own file and are rebuilt without the expired payloads.
INSIGHTS: Final = ProjectionEntry("insights", delays_retention=False)

PROJECTIONS: Final = {
    entry.name: entry
    for entry in (
        DOCUMENT,
        FACT_LINES,
        ERASURE,
        RECALL,
        JSONL,
        DAILY,
        INSIGHTS,
        LESSONS,
        LESSON_FILES,
        ARCHIVE_RETRACTIONS,
    )
}


def projection_of(name: str) -> ProjectionEntry:
    """Return the projection that a row of `watermarks` belongs to; an unknown name is another program's."""
    return PROJECTIONS.get(name) or ProjectionEntry(name)
