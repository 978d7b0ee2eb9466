"""What is known of the account's devices from their events: how they are called, and what they remember. Pure.

A name that a person gave outranks every name a device gives itself, as on the server; the newest of each kind counts.
Both are events, so that labels are right offline and on a device that never saw the server's list. Hiding is an event
that stays on this device.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sync.document.capture.exchange_events import (
    exchange_ids,
    is_in_document,
    local_day_of,
    preference_entries_of,
    repeated_exchange_id,
)
from sync.document.markdown.template import PREFERENCES
from sync.document.read.device_digest import (
    DEFAULT_WEIGHT,
    ID_LENGTH,
    PREFERENCE_WEIGHT,
    DeviceDigest,
    DigestLine,
    active_devices,
    select_lines,
)
from sync.log.event_types import (
    DEVICE_REGISTERED,
    DEVICE_RENAMED,
    DEVICE_REVOKED,
    ENTRY_ADDED,
    ENTRY_EDITED,
    ENTRY_REMOVED,
    EXCHANGE_RECORDED,
)
from sync.log.model import Event, Origin

EDIT_EVENTS: Final = (
    ENTRY_ADDED,
    ENTRY_EDITED,
    ENTRY_REMOVED,
)  # read apart from exchanges: a preference outlives many conversations
EXCHANGE_EVENTS: Final = (EXCHANGE_RECORDED,)
MAX_EVENTS: Final = 400  # newest events of each sort looked at: far more than a digest shows
SHARED_DOCUMENT: Final = ""  # in the place of a device's id: the document that all have in common

OwnedEntryId = tuple[str, str]  # whose document, and the entry's id


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One device, as events tell. `given`: the name a person gave it; `calls_itself`: its own, often the host's."""

    given_name: str | None = None
    own_name: str | None = None
    platform: str | None = None
    app_version: str | None = None
    revoked: bool = False
    hidden: bool = False

    @property
    def name(self) -> str | None:
        return self.given_name or self.own_name


def device_infos(events: Sequence[Event]) -> dict[str, DeviceInfo]:
    """What events of `DEVICE_EVENT_TYPES`, newest first, say about each device."""
    found: dict[str, DeviceInfo] = {}
    for event in reversed(events):
        device_id = event.device_id if event.type == DEVICE_REGISTERED else _text(event, "device_id")
        if device_id is not None:
            found[device_id] = _with_event(found.get(device_id, DeviceInfo()), event)
    return found


def hidden_devices(infos: Mapping[str, DeviceInfo]) -> frozenset[str]:
    return frozenset(device_id for device_id, known in infos.items() if known.hidden)


def device_digests(
    exchanges: Sequence[Event], edits: Sequence[Event], infos: Mapping[str, DeviceInfo]
) -> tuple[DeviceDigest, ...]:
    """What each device is shown with, the last heard device first.

    `said` are exchanges, `by_hand` edits; both newest first, without those of this device and of hidden ones. Edits
    and removals are newer than what they change, so they are met before it. A device's document is its own: a copy of
    its home has the same entries, and what is done to them there is not done here. All speak of a shared one.
    """
    lines: dict[str, list[DigestLine]] = {}
    edited: dict[OwnedEntryId, str] = {}
    removed: set[OwnedEntryId] = set()
    everything = sorted((*exchanges, *edits), key=lambda event: (event.hlc, event.replica_id, event.replica_seq))
    for event in reversed(everything):
        for entry_id, text, origin, weight in _entries_of(event, edited, removed):
            meant = ((event.device_id, entry_id), (SHARED_DOCUMENT, entry_id))
            if removed.isdisjoint(meant):
                now = next((edited[entry] for entry in meant if entry in edited), text)
                line = DigestLine(local_day_of(event), now, weight, _sort_key(event), origin)
                lines.setdefault(event.device_id, []).append(line)
    return active_devices(
        DeviceDigest(device_id, infos.get(device_id, DeviceInfo()).name or device_id[:ID_LENGTH], select_lines(found))
        for device_id, found in lines.items()
    )


def _with_event(info: DeviceInfo, event: Event) -> DeviceInfo:
    if event.type == DEVICE_REGISTERED:
        return replace(
            info,
            own_name=_text(event, "name"),
            platform=_text(event, "platform"),
            app_version=_text(event, "app_version"),
        )
    if event.type == DEVICE_RENAMED:
        return replace(info, given_name=_text(event, "name"))
    if event.type == DEVICE_REVOKED:
        return replace(info, revoked=True)
    return replace(info, hidden=event.payload.get("hidden") is True)


def _text(event: Event, field: str) -> str | None:
    """A field of a payload that another program may have written."""
    value = event.payload.get(field)
    return value if isinstance(value, str) and value.strip() else None


def _weight(event: Event) -> float:
    if event.type == ENTRY_ADDED:
        section = event.payload.get("section")
        return (
            PREFERENCE_WEIGHT
            if isinstance(section, Sequence) and section and section[0] == PREFERENCES
            else DEFAULT_WEIGHT
        )
    importance = event.payload.get("importance")
    known = isinstance(importance, int | float) and not isinstance(importance, bool) and 0 <= importance <= 1
    return float(importance) if known and importance is not None else DEFAULT_WEIGHT


def _sort_key(event: Event) -> str:
    return f"{event.hlc}/{event.replica_id}/{event.replica_seq:020d}"


def _entries_of(
    event: Event, edited: dict[OwnedEntryId, str], removed: set[OwnedEntryId]
) -> list[tuple[str, str, Origin, float]]:
    """The entries an event brings, who said them, their weight; what it changes is noted for the older events."""
    payload = event.payload
    if not is_in_document(event) or repeated_exchange_id(event) is not None:
        return []
    if event.type == EXCHANGE_RECORDED:
        asked, answered = exchange_ids(event)
        question, answer = f"用户问：{payload.get('question', '')}", f"AI 答：{payload.get('answer', '')}"
        weight = _weight(event)
        stated = [
            (noted.entry_id, noted.text, Origin.USER, PREFERENCE_WEIGHT) for noted in preference_entries_of(event)
        ]
        return [(asked, question, Origin.USER, weight), (answered, answer, Origin.MODEL, weight), *stated]
    entry_id = str(payload.get("entry_id", ""))
    if event.type == ENTRY_ADDED:
        told = event.origin in set(Origin)  # another program may have written anything
        return [(entry_id, str(payload.get("text", "")), Origin(event.origin) if told else Origin.PEER, _weight(event))]
    meant = (SHARED_DOCUMENT if payload.get("shared") is True else event.device_id, entry_id)
    if event.type == ENTRY_EDITED:
        edited.setdefault(meant, str(payload.get("text", "")))
    elif event.type == ENTRY_REMOVED:
        removed.add(meant)
    return []
