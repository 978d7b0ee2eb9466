"""Answers to erasure requests, and how they become JSON."""

from collections import Counter
from typing import TYPE_CHECKING, Final, TypedDict

from sync.document.erasure.selection import PREVIEW_CHARS, text_of
from sync.log.event_types import FACT_TEXT_TYPES

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from collections.abc import Sequence

    from sync.erasure_service import RequestedErasure
    from sync.forget_service import ForgetPreview, Forgetting
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


class ForgetJson(TypedDict):
    """What goes together: `found` events by their type in `counts`, the first hundred in `events`.

    A preview has the `token` that a request for words needs. Else they are hidden and `willBeErasedAt` says when they
    are erased; until then `memory/undo` takes `requestId`. Without one they are erased at once, except `keptFiles`.
    """

    preview: bool
    found: int
    counts: dict[str, int]
    events: list[MeantJson]
    token: str | None
    requestId: str | None
    willBeErasedAt: str | None
    keptFiles: list[str]


class UndoneJson(TypedDict):
    """The request that was undone, and how many events are shown again."""

    requestId: str
    events: int


MAX_SHOWN_EVENTS: Final = 100  # events in an answer, which counts all of them


def forget_matching_to_json(events: "Sequence[Event]", erased: "RequestedErasure | None") -> ForgettingJson:
    """`erased` is None in a dry run."""
    return {
        "found": len(events),
        "events": _meant_to_json(events),
        "dryRun": erased is None,
        "forgotten": [] if erased is None else erased.named,
        "keptFiles": [] if erased is None else erased.files_left,
    }


def forget_preview_to_json(found: "ForgetPreview") -> ForgetJson:
    return {
        "preview": True,
        "found": len(found.events),
        "counts": _counts_by_type(found.events),
        "events": _meant_to_json(found.events),
        "token": found.token,
        "requestId": None,
        "willBeErasedAt": None,
        "keptFiles": [],
    }


def accepted_forget_to_json(done: "Forgetting") -> ForgetJson:
    return {
        "preview": False,
        "found": len(done.events),
        "counts": _counts_by_type(done.events),
        "events": _meant_to_json(done.events),
        "token": None,
        "requestId": done.request_id,
        "willBeErasedAt": done.due,
        "keptFiles": list(done.kept_files),
    }


def _counts_by_type(events: "Sequence[Event]") -> dict[str, int]:
    return dict(Counter(event.type for event in events))


def _meant_to_json(events: "Sequence[Event]") -> list[MeantJson]:
    return [
        {
            "eventId": event.event_id,
            "ts": event.ts,
            "type": event.type,
            "deviceId": event.device_id,
            "projectId": event.project_id,
            "text": " ".join(_preview_of(event).split())[:PREVIEW_CHARS],
        }
        for event in events[:MAX_SHOWN_EVENTS]
    ]


def _preview_of(event: "Event") -> str:
    """The text of an event; of a fact only its statement, without its kind and slot."""
    statement = event.payload.get("content") if event.type in FACT_TEXT_TYPES else None
    return statement if isinstance(statement, str) else text_of(event)
