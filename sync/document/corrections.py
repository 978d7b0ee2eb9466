"""What corrected payloads come to: the lines that change with them, and what speaks of those lines. Pure.

A `payload_redacted` event holds the payload that an event has from now on; the `payload_forgotten` that follows it
takes the old one away, also on the server and from builds that know no corrections. See `sync.document.rescan`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sync.document.capture import ADDED, EDITED, EXCHANGE, exchange_ids, exchange_lines, preferences_of
from sync.document.clean_up import DAY_FOLDED
from sync.document.deeds import hashed, twin
from sync.document.edit import edit_entry, entry_text
from sync.document.likeness import counted, parted
from sync.document.model import Snapshot
from sync.log.model import Event


@dataclass(frozen=True, slots=True)
class Rewording:
    """A line that says something else from now on."""

    entry_id: str
    before: str
    after: str


def reworded(event: Event, payload: Mapping[str, Any]) -> Iterator[Rewording]:
    """The lines that change when an event has this payload instead of its own."""
    after = dict(_lines(replace(event, payload=payload)))
    for entry_id, text in _lines(event):
        if entry_id in after and after[entry_id] != text:
            yield Rewording(entry_id, text, after[entry_id])


def with_lines(snapshot: Snapshot, rewordings: Iterable[Rewording]) -> Snapshot:
    """The document with the new words wherever the old ones stand; a line that was changed by hand stays."""
    for change in rewordings:
        if change.entry_id in snapshot.ids:
            text, count = parted(snapshot.text_of(change.entry_id))
            if text == change.before:
                snapshot = edit_entry(snapshot, change.entry_id, counted(change.after, count))
    return snapshot


def hashes(event: Event, payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Old and new hash of each text that changes: other events name the state of a line by its hash."""
    for change in reworded(event, payload):
        yield hashed(change.before), hashed(change.after)
    base, now = event.payload.get("base"), payload.get("base")
    if isinstance(base, str) and isinstance(now, str) and base != now:
        yield hashed(base), hashed(now)


def rehashed(payload: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
    """The payload with the new hashes in the place of the old ones."""
    changed = dict(payload)
    if isinstance(changed.get("base_hash"), str):
        changed["base_hash"] = known.get(changed["base_hash"], changed["base_hash"])
    listed = changed.get("entries")
    if isinstance(listed, list):
        changed["entries"] = [
            {**item, "hash": known.get(item["hash"], item["hash"])}
            if isinstance(item, dict) and isinstance(item.get("hash"), str)
            else item
            for item in listed
        ]
    return changed


def _lines(event: Event) -> Iterator[tuple[str, str]]:
    if event.type == EXCHANGE:
        if (lines := exchange_lines(event)) is not None:
            yield from zip(exchange_ids(event), lines, strict=True)
        yield from ((entry.entry_id, entry.text) for entry in preferences_of(event))
    elif event.type in {ADDED, EDITED, DAY_FOLDED}:
        entry_id, text = event.payload.get("entry_id"), event.payload.get("text")
        if isinstance(entry_id, str) and isinstance(text, str):
            yield entry_id, entry_text(text)
            yield twin(entry_id, event.event_id), entry_text(text)  # where it stands beside what another edit says
