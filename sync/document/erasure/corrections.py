"""The effect of corrected payloads: the lines that change with them, and the hashes that name those lines. Pure.

A `payload_redacted` event holds the new payload of an event. The `payload_forgotten` that follows it erases the old
one, also on the server and in builds that do not know corrections. See `sync.document.versions.rescan`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from sync.document.capture.exchange_events import exchange_ids, own_lines_of, preference_entries_of
from sync.document.markdown.edits import as_single_entry, edit_entry
from sync.document.markdown.entry_ids import conflict_copy_id, text_hash
from sync.document.markdown.model import Snapshot
from sync.document.markdown.repeat_suffix import split_repeat_count, with_repeat_count
from sync.log.event_types import DAY_FOLDED, ENTRY_ADDED, ENTRY_EDITED, EXCHANGE_RECORDED
from sync.log.model import Event


class TextRewrite(msgspec.Struct, frozen=True):
    """A line whose text changes."""

    entry_id: str
    before: str
    after: str


def rewrites_of(event: Event, payload: Mapping[str, Any]) -> Iterator[TextRewrite]:
    """The lines that change when an event has this payload instead of its own."""
    after = dict(_lines_of(replace(event, payload=payload)))
    for entry_id, text in _lines_of(event):
        if entry_id in after and after[entry_id] != text:
            yield TextRewrite(entry_id, text, after[entry_id])


def apply_rewrites(snapshot: Snapshot, rewrites: Iterable[TextRewrite]) -> Snapshot:
    """The document with the new text in place of the old; a line that a user has changed stays."""
    for change in rewrites:
        if change.entry_id in snapshot.ids:
            text, count = split_repeat_count(snapshot.text_of(change.entry_id))
            if text == change.before:
                snapshot = edit_entry(snapshot, change.entry_id, with_repeat_count(change.after, count))
    return snapshot


def changed_hashes(event: Event, payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The old and new hash of each text that changes: other events name the state of a line by its hash."""
    for change in rewrites_of(event, payload):
        yield text_hash(change.before), text_hash(change.after)
    base, now = event.payload.get("base"), payload.get("base")
    if isinstance(base, str) and isinstance(now, str) and base != now:
        yield text_hash(base), text_hash(now)


def replace_hashes(payload: Mapping[str, Any], new_by_old: Mapping[str, str]) -> dict[str, Any]:
    """The payload with the new hashes in place of the old ones."""
    changed = dict(payload)
    if isinstance(changed.get("base_hash"), str):
        changed["base_hash"] = new_by_old.get(changed["base_hash"], changed["base_hash"])
    listed = changed.get("entries")
    if isinstance(listed, list):
        changed["entries"] = [
            {**item, "hash": new_by_old.get(item["hash"], item["hash"])}
            if isinstance(item, dict) and isinstance(item.get("hash"), str)
            else item
            for item in listed
        ]
    return changed


def _lines_of(event: Event) -> Iterator[tuple[str, str]]:
    if event.type == EXCHANGE_RECORDED:
        if (lines := own_lines_of(event)) is not None:
            yield from zip(exchange_ids(event), lines, strict=True)
        yield from ((entry.entry_id, entry.text) for entry in preference_entries_of(event))
    elif event.type in {ENTRY_ADDED, ENTRY_EDITED, DAY_FOLDED}:
        entry_id, text = event.payload.get("entry_id"), event.payload.get("text")
        if isinstance(entry_id, str) and isinstance(text, str):
            yield entry_id, as_single_entry(text)
            yield conflict_copy_id(entry_id, event.event_id), as_single_entry(text)  # beside a conflicting edit
