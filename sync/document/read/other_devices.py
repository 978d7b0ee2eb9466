"""The lines that the account's other devices remember, computed from their events. Pure."""

from collections.abc import Sequence
from typing import Final

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
    PREFERENCE_WEIGHT,
    DeviceDigest,
    DigestLine,
    active_devices,
    select_lines,
)
from sync.log.authorship import ANSWER, Author, author_of, short_name
from sync.log.devices.device_registry import DeviceRegistry
from sync.log.envelope import day_of
from sync.log.event_types import (
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


def device_digests(
    exchanges: Sequence[Event], edits: Sequence[Event], registry: DeviceRegistry
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
        DeviceDigest(
            device_id,
            short_name(registry.device(device_id).name, device_id),
            select_lines(found),
            is_new=registry.is_new(device_id),
        )
        for device_id, found in lines.items()
    )


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
