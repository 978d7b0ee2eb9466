"""What a wish to forget by words, source or time means, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sync.document.erasure.selection import PREVIEW_CHARS, text_of
from sync.published.forgetting import ForgettingJson

if TYPE_CHECKING:  # only named here
    from collections.abc import Sequence

    from sync.log.model import Event

MAX_SHOWN_EVENTS: Final = 100  # events that are shown; the count tells the rest


def forget_matching_to_json(events: Sequence[Event], erased_ids: Sequence[str] | None) -> ForgettingJson:
    """`held` is None in a dry run."""
    return {
        "found": len(events),
        "events": [
            {
                "eventId": event.event_id,
                "ts": event.ts,
                "type": event.type,
                "deviceId": event.device_id,
                "projectId": event.project_id,
                "text": " ".join(text_of(event).split())[:PREVIEW_CHARS],
            }
            for event in events[:MAX_SHOWN_EVENTS]
        ],
        "dryRun": erased_ids is None,
        "forgotten": list(erased_ids or ()),
    }
