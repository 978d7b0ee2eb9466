"""Which events the log has retracted: erased ones, and those whose payload was corrected. Pure.

A projection that uses it shows the same before and after the erasure is applied to the log.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.log.devices.signing import decode_key
from sync.log.event_types import (
    DEVICE_REGISTERED,
    ERASING_TYPES,
    FORGET_REQUESTED,
    HOLDING_TYPES,
    PAYLOAD_REDACTED,
)
from sync.log.model import Event, RemoteErasureState, erased_by, named_event_ids, remote_erasure_state
from sync.redaction import KINDS, CleanPayload, Redactor, placeholder

_PLACEHOLDER: Final = re.compile("|".join(re.escape(placeholder(kind)) for kind in KINDS))
_HASH_FIELDS: Final = frozenset({"base_hash", "hash"})  # of a text that was redacted too
_HASH: Final = re.compile("[0-9a-f]+")


def correction_of(event: Event) -> tuple[str, Mapping[str, Any]] | None:
    """Return the id and the new payload that a `payload_redacted` names; None for a refused one, and other events."""
    event_id, payload = event.payload.get("event_id"), event.payload.get("payload")
    if event.type != PAYLOAD_REDACTED or not isinstance(event_id, str) or not isinstance(payload, dict):
        return None
    return None if remote_erasure_state(event) is RemoteErasureState.REFUSED else (event_id, payload)


def is_redacted(before: object, after: object) -> bool:
    """Return whether a value is another one with spans replaced by placeholders, and nothing else."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_is_redacted_field(k, before[k], after[k]) for k in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(is_redacted, before, after))
    if isinstance(before, str) and isinstance(after, str):
        return before == after or _has_only_spans_replaced(before, _PLACEHOLDER.split(after))
    return before == after or (isinstance(after, str) and _PLACEHOLDER.fullmatch(after) is not None)


def _is_redacted_field(name: str, before: object, after: object) -> bool:
    is_hash = name in _HASH_FIELDS and isinstance(before, str) and isinstance(after, str) and len(before) == len(after)
    return is_redacted(before, after) or (is_hash and _HASH.fullmatch(str(after)) is not None)


def _has_only_spans_replaced(text: str, parts: list[str]) -> bool:
    """Whether a text begins with the first part, ends with the last, and has the others in order between them."""
    if len(parts) == 1 or not text.startswith(parts[0]) or not text[len(parts[0]) :].endswith(parts[-1]):
        return False
    first, *middle, last = parts
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def redacted_payload(event: Event, redactor: Redactor) -> CleanPayload:
    """Return an event's payload under the current redaction rules; the event ids in it stay as they are."""
    field, ids = ("event_ids", named_event_ids(event)) if named_event_ids(event) else ("event_id", ())
    correction = correction_of(event)
    named = correction[0] if correction is not None else ids
    if event.type == DEVICE_REGISTERED and decode_key(str(event.payload.get("public_key")).encode()) is not None:
        field, named = "public_key", event.payload["public_key"]
    if not named:
        return redactor.clean_payload(event.payload)
    return redactor.clean_payload_with_ids(
        field, named, {name: item for name, item in event.payload.items() if name != field}
    )


class ForgetRequest(msgspec.Struct, frozen=True):
    """What the user asked to forget: the events, and the time (ISO) at which they are erased."""

    request_id: str
    event_ids: frozenset[str]
    due: str


class Retractions(msgspec.Struct):
    """The retractions of the events applied so far. `requests`: what waits to be forgotten, and is hidden."""

    erased_ids: set[str] = msgspec.field(default_factory=set)
    requests: dict[str, ForgetRequest] = msgspec.field(default_factory=dict)
    _corrections: dict[str, tuple[str, Mapping[str, Any]]] = msgspec.field(
        default_factory=dict
    )  # with the id of the correction

    def apply(self, events: Iterable[Event]) -> None:
        """Add events in log order; only `HIDING_TYPES` have an effect."""
        for event in events:
            if event.type in HOLDING_TYPES:
                self._hold(event)
            self.erased_ids.update(erased_by(event))
            if (correction := correction_of(event)) is not None:
                self._corrections[correction[0]] = event.event_id, correction[1]

    def _hold(self, event: Event) -> None:
        """Note a part of a request to forget, or its end."""
        request_id = event.event_id.partition(".")[0]
        known = self.requests.pop(request_id, None)
        if event.type == FORGET_REQUESTED:
            named = frozenset(named_event_ids(event)).union(known.event_ids if known else ())
            self.requests[request_id] = ForgetRequest(request_id, named, str(event.payload.get("due")))

    @property
    def held_ids(self) -> frozenset[str]:
        """Return the ids of the events that wait to be forgotten."""
        return frozenset().union(*(one.event_ids for one in self.requests.values()))

    def is_corrected(self, event_id: str) -> bool:
        """Return whether an event has a corrected payload."""
        return event_id in self._corrections and self._corrections[event_id][0] not in self.erased_ids

    def effective_event(self, event: Event) -> Event:
        """Return the event with its corrected payload, or without one if it is erased or waits to be forgotten."""
        if any(event.event_id in one.event_ids for one in self.requests.values()):
            return replace(event, payload={}, extra={})
        if event.event_id not in self.erased_ids or event.type in ERASING_TYPES:
            return event
        payload = self.corrected_payload(event.event_id)
        return replace(event, payload={}, extra={}) if payload is None else replace(event, payload=payload)

    def corrected_payload(self, event_id: str) -> Mapping[str, Any] | None:
        """Return the corrected payload of an event; None if it has its own, or none."""
        return self._corrections[event_id][1] if self.is_corrected(event_id) else None
