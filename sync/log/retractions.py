"""Which events the log has retracted: erased ones, and those whose payload was corrected. Pure.

A projection that uses it shows the same before and after the erasure is applied to the log.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from sync.log.event_types import ERASING_TYPES, PAYLOAD_REDACTED
from sync.log.model import Event, erased_by, named_event_ids
from sync.redaction import CleanPayload, Redactor


def correction_of(event: Event) -> tuple[str, Mapping[str, Any]] | None:
    """Return the id and the new payload that a `payload_redacted` names; None for any other event."""
    event_id, payload = event.payload.get("event_id"), event.payload.get("payload")
    if event.type != PAYLOAD_REDACTED or not isinstance(event_id, str) or not isinstance(payload, dict):
        return None
    return event_id, payload


def redacted_payload(event: Event, redactor: Redactor) -> CleanPayload:
    """Return an event's payload under the current redaction rules; the event ids in it stay as they are."""
    field, ids = ("event_ids", named_event_ids(event)) if event.type in ERASING_TYPES else ("event_id", ())
    correction = correction_of(event)
    named = correction[0] if correction is not None else ids
    if not named:
        return redactor.clean_payload(event.payload)
    return redactor.clean_payload_with_ids(
        field, named, {name: item for name, item in event.payload.items() if name != field}
    )


class Retractions(msgspec.Struct):
    """The retractions of the events applied so far."""

    erased_ids: set[str] = msgspec.field(default_factory=set)
    _corrections: dict[str, tuple[str, Mapping[str, Any]]] = msgspec.field(
        default_factory=dict
    )  # with the id of the correction

    def apply(self, events: Iterable[Event]) -> None:
        """Add events in log order; only `RETRACTING_TYPES` have an effect."""
        for event in events:
            self.erased_ids.update(erased_by(event))
            if (correction := correction_of(event)) is not None:
                self._corrections[correction[0]] = event.event_id, correction[1]

    def is_corrected(self, event_id: str) -> bool:
        """Return whether an event has a corrected payload."""
        return event_id in self._corrections and self._corrections[event_id][0] not in self.erased_ids

    def effective_event(self, event: Event) -> Event:
        """Return the event with its corrected payload, or without one if it is erased."""
        if event.event_id not in self.erased_ids or event.type in ERASING_TYPES:
            return event
        payload = self.corrected_payload(event.event_id)
        return replace(event, payload={}, extra={}) if payload is None else replace(event, payload=payload)

    def corrected_payload(self, event_id: str) -> Mapping[str, Any] | None:
        """Return the corrected payload of an event; None if it has its own, or none."""
        return self._corrections[event_id][1] if self.is_corrected(event_id) else None
