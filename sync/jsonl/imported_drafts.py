"""Make an event of a file that nothing proves into a draft of this device. Pure.

The id is a hash of the source's device, id, HLC and payload, so the same line, or a copy of it that another import
made, is the same event on every device.
Ids that the payload names become others too: a file can refer to what is in it and never to what was here before.
"""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.log.event_catalogue import INTERNAL_TYPES
from sync.log.event_types import RETRACTING_TYPES
from sync.log.ingest import DraftBuilder
from sync.log.model import IMPORTED_FROM_FIELD, MAX_EVENT_ID_LENGTH, Door, Event, EventDraft, Origin

_REFERENCES: Final = frozenset({"after", "evidence", "repeats", "of", "undoes", "into"})
_NO_REFERENCES: Final = frozenset({"session_id", "source_session_id", "project_id", "device_id"})
_PREFIX: Final = re.compile("[a-z]{1,8}[-_]|")


class ImportNames(msgspec.Struct, frozen=True):
    """The new event ids of the lines so far, by the ids in the file. `is_blank`: for an id, payloads name nothing."""

    new_ids: dict[str, str]
    is_blank: bool = False

    def renamed(self, name: str) -> str:
        """Return the id here of something that a payload of the file names."""
        if self.is_blank:
            return ""
        base, dot, rest = name.partition(".")
        for known, suffix in ((name, ""), (base, dot + rest)):
            if known in self.new_ids:
                return self.new_ids[known] + suffix
        prefix = _PREFIX.match(name)
        return (prefix[0] if prefix else "") + _digest("name", name) if name else ""

    def payload(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return a payload with the ids here, and with no preference that claims to be the user's own word."""
        return {name: self._field(name, item) for name, item in value.items()}

    def _field(self, name: str, value: Any) -> Any:
        is_reference = name in _REFERENCES or (name.endswith(("_id", "_ids")) and name not in _NO_REFERENCES)
        if isinstance(value, Mapping):
            return self.payload(value)
        if isinstance(value, list):
            return [self._field(name, one) for one in value]
        if name == "origin" and isinstance(value, str):
            return str(Origin.IMPORTED)
        return self.renamed(value) if is_reference and isinstance(value, str) else value


def source_line(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a line that another import made as the line that it was made of, so that both make one event."""
    source = value.get(IMPORTED_FROM_FIELD)
    names = ("event_id", "device_id", "hlc")
    if not isinstance(source, Mapping) or not all(isinstance(source.get(name), str) for name in names):
        return value
    return {**value, **{name: source[name] for name in names}, "origin": source.get("origin")}


def draft_import(
    value: Mapping[str, Any], event: Event | None, intake: DraftBuilder, names: ImportNames
) -> EventDraft | None:
    """Return the draft of a line; None for what only its own device may say. Raises InvalidInput, RedactionFailed.

    `event`: that of the line, if its envelope is whole.
    """
    if value.get("type") in RETRACTING_TYPES or value.get("type") in INTERNAL_TYPES:
        return None
    payload = value.get("payload", {})
    identity: tuple[object, ...] = (dict(value),)
    if event is not None:  # another import gives what the payload names other ids
        identity = (event.device_id, event.event_id, event.hlc, ImportNames({}, is_blank=True).payload(event.payload))
    event_id = "evt_" + _digest(*identity)
    if isinstance(given := value.get("event_id"), str):
        names.new_ids[given] = event_id
    fields = {name: item for name, item in value.items() if name not in ("session_id", "event_id") or item}
    if isinstance(payload, dict):
        fields["payload"] = names.payload(payload)
    safe = intake.with_safe_ids({**fields, "origin": str(Origin.IMPORTED)})
    came = safe.pop("event_id", None)
    draft = intake.build(safe)
    claimed = {"event_id": came, "origin": value.get("origin") if value.get("origin") in tuple(Origin) else None}
    if event is not None:
        claimed |= {"device_id": intake.safe_session_id(event.device_id), "hlc": event.hlc}
    source = {name: item[:MAX_EVENT_ID_LENGTH] for name, item in claimed.items() if isinstance(item, str)}
    return replace(draft, event_id=event_id, door=Door.IMPORT, imported_from=source)


def _digest(*parts: object) -> str:
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]
