"""What a wish to forget by words, source or time means, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sync.document.choosing import SHOWN, text_of
from sync.published.forgetting import ForgettingJson

if TYPE_CHECKING:  # only named here
    from collections.abc import Sequence

    from sync.log.model import Event

MEANT: Final = 100  # events that are shown; the count tells the rest


def forgetting(found: Sequence[Event], held: Sequence[str] | None) -> ForgettingJson:
    """`held` is None in a dry run."""
    return {
        "found": len(found),
        "events": [
            {
                "eventId": event.event_id,
                "ts": event.ts,
                "type": event.type,
                "deviceId": event.device_id,
                "projectId": event.project_id,
                "text": " ".join(text_of(event).split())[:SHOWN],
            }
            for event in found[:MEANT]
        ],
        "dryRun": held is None,
        "forgotten": list(held or ()),
    }
