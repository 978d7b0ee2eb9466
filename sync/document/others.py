"""What is known of the account's devices from their events: how they are called, and what they remember. Pure.

A name that a person gave outranks every name a device gives itself, as on the server; the newest of each kind counts.
Both are events, so that labels are right offline and on a device that never saw the server's list. Hiding is an event
that stays on this device.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sync.document.capture import (
    ADDED,
    EDITED,
    EXCHANGE,
    REMOVED,
    day_of,
    exchange_ids,
    is_shown,
    preferences_of,
    repeated_by,
)
from sync.document.digest import ID_LENGTH, PREFERENCE, UNMARKED, DeviceDigest, DigestLine, chosen, in_use
from sync.document.template import PREFERENCES
from sync.log.model import Event, Origin

REGISTERED: Final = "device_registered"
RENAMED: Final = "device_renamed"
REVOKED: Final = "device_revoked"
HIDDEN: Final = "device_hidden"
ABOUT_DEVICES: Final = (REGISTERED, RENAMED, REVOKED, HIDDEN)
BY_HAND: Final = (ADDED, EDITED, REMOVED)  # read apart from exchanges: a preference outlives many conversations
SAID: Final = (EXCHANGE,)
MOST_EVENTS: Final = 400  # newest events of each sort looked at: far more than a digest shows
SHARED: Final = ""  # in the place of a device's id: the document that all have in common

WhoseEntry = tuple[str, str]  # whose document, and the entry's id


@dataclass(frozen=True, slots=True)
class About:
    """One device, as events tell. `given`: the name a person gave it; `calls_itself`: its own, often the host's."""

    given: str | None = None
    calls_itself: str | None = None
    platform: str | None = None
    app_version: str | None = None
    revoked: bool = False
    hidden: bool = False

    @property
    def name(self) -> str | None:
        return self.given or self.calls_itself


def about_devices(events: Sequence[Event]) -> dict[str, About]:
    """What events of `ABOUT_DEVICES`, newest first, say about each device."""
    found: dict[str, About] = {}
    for event in reversed(events):
        device_id = event.device_id if event.type == REGISTERED else _text(event, "device_id")
        if device_id is not None:
            found[device_id] = _learned(found.get(device_id, About()), event)
    return found


def hidden_devices(about: Mapping[str, About]) -> frozenset[str]:
    return frozenset(device_id for device_id, known in about.items() if known.hidden)


def digests(said: Sequence[Event], by_hand: Sequence[Event], about: Mapping[str, About]) -> tuple[DeviceDigest, ...]:
    """What each device is shown with, the last heard device first.

    `said` are exchanges, `by_hand` edits; both newest first, without those of this device and of hidden ones. Edits
    and removals are newer than what they change, so they are met before it. A device's document is its own: a copy of
    its home has the same entries, and what is done to them there is not done here. All speak of a shared one.
    """
    lines: dict[str, list[DigestLine]] = {}
    edited: dict[WhoseEntry, str] = {}
    removed: set[WhoseEntry] = set()
    everything = sorted((*said, *by_hand), key=lambda event: (event.hlc, event.replica_id, event.replica_seq))
    for event in reversed(everything):
        for entry_id, text, origin, weight in _entries(event, edited, removed):
            meant = ((event.device_id, entry_id), (SHARED, entry_id))
            if removed.isdisjoint(meant):
                now = next((edited[entry] for entry in meant if entry in edited), text)
                line = DigestLine(day_of(event), now, weight, _moment(event), origin)
                lines.setdefault(event.device_id, []).append(line)
    return in_use(
        DeviceDigest(device_id, about.get(device_id, About()).name or device_id[:ID_LENGTH], chosen(found))
        for device_id, found in lines.items()
    )


def _learned(known: About, event: Event) -> About:
    if event.type == REGISTERED:
        return replace(
            known,
            calls_itself=_text(event, "name"),
            platform=_text(event, "platform"),
            app_version=_text(event, "app_version"),
        )
    if event.type == RENAMED:
        return replace(known, given=_text(event, "name"))
    if event.type == REVOKED:
        return replace(known, revoked=True)
    return replace(known, hidden=event.payload.get("hidden") is True)


def _text(event: Event, field: str) -> str | None:
    """A field of a payload that another program may have written."""
    value = event.payload.get(field)
    return value if isinstance(value, str) and value.strip() else None


def _weight(event: Event) -> float:
    if event.type == ADDED:
        section = event.payload.get("section")
        return PREFERENCE if isinstance(section, Sequence) and section and section[0] == PREFERENCES else UNMARKED
    importance = event.payload.get("importance")
    known = isinstance(importance, int | float) and not isinstance(importance, bool) and 0 <= importance <= 1
    return float(importance) if known and importance is not None else UNMARKED


def _moment(event: Event) -> str:
    return f"{event.hlc}/{event.replica_id}/{event.replica_seq:020d}"


def _entries(
    event: Event, edited: dict[WhoseEntry, str], removed: set[WhoseEntry]
) -> list[tuple[str, str, Origin, float]]:
    """The entries an event brings, who said them, their weight; what it changes is noted for the older events."""
    payload = event.payload
    if not is_shown(event) or repeated_by(event) is not None:
        return []
    if event.type == EXCHANGE:
        asked, answered = exchange_ids(event)
        question, answer = f"用户问：{payload.get('question', '')}", f"AI 答：{payload.get('answer', '')}"
        weight = _weight(event)
        stated = [(noted.entry_id, noted.text, Origin.USER, PREFERENCE) for noted in preferences_of(event)]
        return [(asked, question, Origin.USER, weight), (answered, answer, Origin.MODEL, weight), *stated]
    entry_id = str(payload.get("entry_id", ""))
    if event.type == ADDED:
        told = event.origin in set(Origin)  # another program may have written anything
        return [(entry_id, str(payload.get("text", "")), Origin(event.origin) if told else Origin.PEER, _weight(event))]
    meant = (SHARED if payload.get("shared") is True else event.device_id, entry_id)
    if event.type == EDITED:
        edited.setdefault(meant, str(payload.get("text", "")))
    elif event.type == REMOVED:
        removed.add(meant)
    return []
