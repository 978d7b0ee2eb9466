"""Answers to erasure requests, and how they become JSON."""

from typing import TYPE_CHECKING, Final, TypedDict

from sync.document.erasure.selection import PREVIEW_CHARS, text_of
from sync.log.event_types import FACT_TEXT_TYPES

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from collections.abc import Sequence

    from sync.erasure_service import RequestedErasure
    from sync.log.model import Event


class MeantJson(TypedDict):
    """An event that is selected; `text`: its beginning, empty if only the cloud still has it."""

    eventId: str
    ts: str
    type: str
    deviceId: str
    projectId: str
    text: str


class ForgettingJson(TypedDict):
    """`found`: events that are meant, the first hundred of them in `events`; `forgotten`: with what says the same.

    `keptFiles`: files that stay, each with its reason.
    """

    found: int
    events: list[MeantJson]
    dryRun: bool
    forgotten: list[str]
    keptFiles: list[str]


MAX_SHOWN_EVENTS: Final = 100  # events in an answer, which counts all of them


def forget_matching_to_json(events: "Sequence[Event]", erased: "RequestedErasure | None") -> ForgettingJson:
    """`erased` is None in a dry run."""
    return {
        "found": len(events),
        "events": [
            {
                "eventId": event.event_id,
                "ts": event.ts,
                "type": event.type,
                "deviceId": event.device_id,
                "projectId": event.project_id,
                "text": " ".join(_preview_of(event).split())[:PREVIEW_CHARS],
            }
            for event in events[:MAX_SHOWN_EVENTS]
        ],
        "dryRun": erased is None,
        "forgotten": [] if erased is None else erased.named,
        "keptFiles": [] if erased is None else erased.files_left,
    }


def _preview_of(event: "Event") -> str:
    """The text of an event; of a fact only its statement, without its kind and slot."""
    statement = event.payload.get("content") if event.type in FACT_TEXT_TYPES else None
    return statement if isinstance(statement, str) else text_of(event)
