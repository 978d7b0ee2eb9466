"""What the other devices of the account remember, from their events. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from sync.document.capture import ADDED, EDITED, EXCHANGE, REMOVED, day_of, exchange_ids
from sync.document.digest import DeviceDigest, DigestLine
from sync.log.model import Event

REGISTERED: Final = "device_registered"
FOLLOWED: Final = (EXCHANGE, ADDED, EDITED, REMOVED)
MOST_EVENTS: Final = 400  # newest events looked at: far more than a digest shows


def digests(events: Sequence[Event], names: dict[str, str]) -> list[DeviceDigest]:
    """One digest a device, newest entries first, from events in their order newest first.

    Edits and removals are newer than what they change, so they are met before it.
    """
    lines: dict[str, list[DigestLine]] = {}
    edited: dict[str, str] = {}
    removed: set[str] = set()
    for event in events:
        for entry_id, text in _said(event, edited, removed):
            if entry_id not in removed:
                line = DigestLine(day_of(event), edited.get(entry_id, text))
                lines.setdefault(event.device_id, []).append(line)
    return [DeviceDigest(device, names.get(device, device[:8]), tuple(found)) for device, found in lines.items()]


def device_names(events: Iterable[Event]) -> dict[str, str]:
    """The newest name each device gave itself, from events newest first."""
    names: dict[str, str] = {}
    for event in events:
        names.setdefault(event.device_id, str(event.payload.get("name") or event.device_id[:8]))
    return names


def _said(event: Event, edited: dict[str, str], removed: set[str]) -> list[tuple[str, str]]:
    """The entries an event brings; what it changes is noted for the older events to come."""
    payload = event.payload
    if event.type == EXCHANGE:
        asked, answered = exchange_ids(event)
        answer, question = payload.get("answer", ""), payload.get("question", "")
        return [(answered, f"AI 答：{answer}"), (asked, f"用户问：{question}")]
    entry_id = str(payload.get("entry_id", ""))
    if event.type == ADDED:
        return [(entry_id, str(payload.get("text", "")))]
    if event.type == EDITED:
        edited.setdefault(entry_id, str(payload.get("text", "")))
    elif event.type == REMOVED:
        removed.add(entry_id)
    return []
