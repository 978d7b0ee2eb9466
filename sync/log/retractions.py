"""What the log itself has taken back: of events that were forgotten, and of those whose payload was corrected. Pure.

A view that reads an event before its room has carried the wish out, and one that reads it afterwards, show the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sync.log.event_types import ERASING_TYPES, PAYLOAD_REDACTED
from sync.log.model import Event, erased_by, named_event_ids
from sync.redaction import CleanPayload, Redactor


def correction_of(event: Event) -> tuple[str, Mapping[str, Any]] | None:
    """The event that a `payload_redacted` speaks of and its payload from now on; None for any other event."""
    named, payload = event.payload.get("event_id"), event.payload.get("payload")
    if event.type != PAYLOAD_REDACTED or not isinstance(named, str) or not isinstance(payload, dict):
        return None
    return named, payload


def redacted_payload(event: Event, redactor: Redactor) -> CleanPayload:
    """An event's payload under the rules of today; the events that it takes back are named as they are."""
    field, ids = ("event_ids", named_event_ids(event)) if event.type in ERASING_TYPES else ("event_id", ())
    told = correction_of(event)
    named = told[0] if told is not None else ids
    if not named:
        return redactor.clean_payload(event.payload)
    return redactor.clean_payload_with_ids(
        field, named, {name: item for name, item in event.payload.items() if name != field}
    )


@dataclass(slots=True)
class Retractions:
    """Everything heard so far."""

    erased_ids: set[str] = field(default_factory=set)
    _corrections: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)  # with the event that says so

    def apply(self, events: Iterable[Event]) -> None:
        """Take in events in log order; only those of `RETRACTING_TYPES` say anything."""
        for event in events:
            self.erased_ids.update(erased_by(event))
            if (told := correction_of(event)) is not None:
                self._corrections[told[0]] = event.event_id, told[1]

    def is_corrected(self, event_id: str) -> bool:
        """Whether an event has another payload from now on."""
        return event_id in self._corrections and self._corrections[event_id][0] not in self.erased_ids

    def effective_event(self, event: Event) -> Event:
        """The event as it is from now on."""
        if event.event_id not in self.erased_ids or event.type in ERASING_TYPES:
            return event
        left = self.corrected_payload(event.event_id)
        return replace(event, payload={}, extra={}) if left is None else replace(event, payload=left)

    def corrected_payload(self, event_id: str) -> Mapping[str, Any] | None:
        """The payload that an event has from now on; None where it has its own, or none any more."""
        return self._corrections[event_id][1] if self.is_corrected(event_id) else None
