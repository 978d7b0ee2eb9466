"""The account's devices, computed from their events: names, states, and the lines that each remembers. Pure.

A name that the user gave outranks a device's own name, as on the server; the newest of each kind counts. Both are
events, so names are right offline. Hiding a device is an event that stays on this device.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.document.capture.exchange_events import (
    exchange_ids,
    is_in_document,
    lines_of_exchange,
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
from sync.log.authorship import ANSWER, Author, author_of
from sync.log.envelope import day_of
from sync.log.event_types import (
    DEVICE_REGISTERED,
    DEVICE_RENAMED,
    DEVICE_REVOKED,
    ENTRY_ADDED,
    ENTRY_EDITED,
    ENTRY_REMOVED,
    EXCHANGE_RECORDED,
)
from sync.log.model import Event

EDIT_EVENTS: Final = (ENTRY_ADDED, ENTRY_EDITED, ENTRY_REMOVED)  # read apart: preferences outlive conversations
EXCHANGE_EVENTS: Final = (EXCHANGE_RECORDED,)
MAX_EVENTS: Final = 400  # newest events of each kind that are read: far more than a digest shows
ALL_DOCUMENTS: Final = ""  # in place of a device's id

OwnedEntryId = tuple[str, str]  # the device whose document has it, and the entry's id


class DeviceInfo(msgspec.Struct, frozen=True):
    """One device. `given_name`: from the user; `own_name`: from the device, often the host's name."""

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
    """Each device, from events of `DEVICE_EVENT_TYPES`, newest first."""
    infos: dict[str, DeviceInfo] = {}
    for event in reversed(events):
        device_id = event.device_id if event.type == DEVICE_REGISTERED else _text(event, "device_id")
        if device_id is not None:
            infos[device_id] = _with_event(infos.get(device_id, DeviceInfo()), event)
    return infos


def hidden_devices(infos: Mapping[str, DeviceInfo]) -> frozenset[str]:
    return frozenset(device_id for device_id, known in infos.items() if known.hidden)


def device_digests(
    exchanges: Sequence[Event], edits: Sequence[Event], infos: Mapping[str, DeviceInfo]
) -> tuple[DeviceDigest, ...]:
    """The lines of each device that are shown, the last active device first.

    `exchanges` and `edits`: newest first, without those of this device and of hidden ones. Edits and removals are
    newer than what they change, so they come before it. Each device edits its own document: a copied data directory
    has the same entry ids. A `shared` edit, which earlier versions wrote, concerns all documents.
    """
    lines: dict[str, list[DigestLine]] = {}
    edited: dict[OwnedEntryId, str] = {}
    removed: set[OwnedEntryId] = set()
    everything = sorted((*exchanges, *edits), key=lambda event: (event.hlc, event.replica_id, event.replica_seq))
    for event in (event for event in reversed(everything) if event.is_proven):
        for entry_id, text, author, weight in _entries_of(event, edited, removed):
            owned_ids = ((event.device_id, entry_id), (ALL_DOCUMENTS, entry_id))
            if removed.isdisjoint(owned_ids):
                newest = next((edited[owned] for owned in owned_ids if owned in edited), text)
                line = DigestLine(day_of(event), newest, weight, _sort_key(event), author)
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
) -> list[tuple[str, str, Author, float]]:
    """The entries that an event adds, with author and weight. What it changes is noted for older events."""
    payload, author = event.payload, author_of(event).seen_from(())
    if not is_in_document(event) or repeated_exchange_id(event) is not None:
        return []
    if event.type == EXCHANGE_RECORDED:
        question_id, answer_id = exchange_ids(event)
        question, answer = (line.removeprefix("- ") for line in lines_of_exchange(event))
        weight = _weight(event)
        stated = [(noted.entry_id, noted.text, author, PREFERENCE_WEIGHT) for noted in preference_entries_of(event)]
        answered_by = author_of(event, ANSWER).seen_from(())
        return [(question_id, question, author, weight), (answer_id, answer, answered_by, weight), *stated]
    entry_id = str(payload.get("entry_id", ""))
    if event.type == ENTRY_ADDED:
        return [(entry_id, str(payload.get("text", "")), author, _weight(event))]
    owned = (ALL_DOCUMENTS if payload.get("shared") is True else event.device_id, entry_id)
    if event.type == ENTRY_EDITED:
        edited.setdefault(owned, str(payload.get("text", "")))
    elif event.type == ENTRY_REMOVED:
        removed.add(owned)
    return []
