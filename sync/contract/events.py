"""Answers about the event log, and how they become JSON."""

from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from sync.log.envelope import to_json
from sync.log.event_types import EXCHANGE_RECORDED, MESSAGE, TEXT_SUFFIX
from sync.log.integrity.store import ProblemJson
from sync.log.payload_schemas import is_known_type

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from collections.abc import Iterable, Mapping, Sequence

    from sync.erasure_service import RequestedErasure
    from sync.log.model import AppendResult, Event, EventPage, RefusedEvent


class EventsJson(TypedDict):
    events: list[dict[str, Any]]
    nextOffset: int


class FoundEventsJson(TypedDict):
    """`events` in the order asked for; `missing`: ids that this log does not have.

    An exchange has `said`: question and answer as they were typed, redacted, if this device keeps them; else null.
    """

    events: list[dict[str, Any]]
    missing: list[str]


class AppendedJson(EventsJson):
    """`events/appended`. `after`: where these events begin; one that differs from the last `nextOffset` tells a gap."""

    after: int


class RecordedJson(TypedDict):
    """`eventIds` in the order given, a caller's own id as given; `duplicates` are the ids that were known before.

    `notSaved`: how many events were not recorded, because a person asked not to save their conversation.

    `unknownTypes`: types among them that this program does not know. Such events are kept, with their texts only if
    `privacy.store_program_messages` is true, and can be read and searched; nothing else is done with them.
    `withoutText`: messages of which only role and length are kept, because it is not.
    """

    eventIds: list[str]
    duplicates: list[str]
    events: list[dict[str, Any]]
    nextOffset: int
    notSaved: NotRequired[int]
    unknownTypes: NotRequired[list[str]]
    withoutText: NotRequired[list[str]]


class ForgottenJson(TypedDict):
    """Which of the events were there to be forgotten; `keptFiles`: files that stay, each with its reason."""

    forgotten: list[str]
    keptFiles: list[str]


class RefusalJson(TypedDict):
    eventId: str
    code: str
    message: str
    noticedAt: str


class QuarantineJson(TypedDict):
    """`events`: what is in quarantine now; `released`: what this call has taken out."""

    events: list[RefusalJson]
    released: list[str]


class WatermarkJson(TypedDict):
    """`eventId`: the event at that position; null if there is none, as before the first."""

    name: str
    position: int
    eventId: str | None


class VerifyJson(TypedDict):
    ok: bool
    events: int
    problems: list[ProblemJson]


def forgotten_to_json(erased: "RequestedErasure") -> ForgottenJson:
    return {"forgotten": erased.named, "keptFiles": erased.files_left}


def events_to_json(page: "EventPage") -> EventsJson:
    return {"events": [to_json(event) for event in page.events], "nextOffset": page.next_offset}


def found_events_to_json(names: "Mapping[str, str | None]", found: "Mapping[str, Event]") -> FoundEventsJson:
    """`names`: the event id of each id that was asked for. `found`: also the whole texts of exchanges."""
    events = []
    for event in (found[name] for name in names.values() if name is not None and name in found):
        text = found.get(f"{event.event_id}{TEXT_SUFFIX}")
        said = {side: text.payload.get(side, "") for side in ("question", "answer")} if text and text.payload else None
        events.append({**to_json(event), "said": said} if event.type == EXCHANGE_RECORDED else to_json(event))
    return {"events": events, "missing": [given for given, name in names.items() if name not in found]}


def appended_events_to_json(page: "EventPage", after: int) -> AppendedJson:
    return {**events_to_json(page), "after": after}


def append_results_to_json(
    values: "Sequence[AppendResult]", *, left_out: int = 0, stores_messages: bool = True
) -> RecordedJson:
    """`left_out`: how many events were not recorded, because their conversation is not to be saved."""
    answer: RecordedJson = {
        "eventIds": [value.given_id for value in values],
        "duplicates": [value.given_id for value in values if value.duplicate],
        "events": [to_json(value.event) for value in values],
        "nextOffset": max((value.event.position for value in values), default=0),
    }
    if left_out:
        answer["notSaved"] = left_out
    if not stores_messages and (without := [item.given_id for item in values if item.event.type == MESSAGE]):
        answer["withoutText"] = without
    if unknown := sorted({value.event.type for value in values if not is_known_type(value.event.type)}):
        answer["unknownTypes"] = unknown
    return answer


def quarantine_to_json(values: "Iterable[RefusedEvent]", released: "Sequence[str]") -> QuarantineJson:
    events: list[RefusalJson] = [
        {"eventId": value.event_id, "code": value.code, "message": value.message, "noticedAt": value.noticed_at}
        for value in values
    ]
    return {"events": events, "released": list(released)}


def verification_to_json(problems: "Sequence[ProblemJson]", events: int) -> VerifyJson:
    return {"ok": not problems, "events": events, "problems": list(problems)}
