"""Draft the events of a manual edit of the shared document, as operations that every device can apply.

Beyond the events of a device's own document, an edit carries its base text and a removal the hash of the removed text,
both as in the log. Moved lines and changed headings are events too, or the next rendering would undo them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from sync.document.capture.exchange_events import is_too_large_for_event, language_field
from sync.document.markdown.entry_ids import text_hash
from sync.document.markdown.language import ZH
from sync.document.markdown.model import (
    BlockKind,
    EntryAdded,
    EntryEdited,
    EntryRemoved,
    MergePlan,
    Operation,
    Section,
    Snapshot,
)
from sync.document.markdown.template import QUESTION_PREFIXES, RECORDS, TEMPLATE_SECTIONS, language_of
from sync.document.markdown.version_labels import parse_day
from sync.document.shared.entry_ops import normalised_section
from sync.document.shared.entry_reducer import EntryState
from sync.document.shared.reducer import SharedReducer
from sync.log.event_types import ENTRY_ADDED, ENTRY_EDITED, ENTRY_MOVED, ENTRY_REMOVED, SECTION_ADDED, SECTION_REMOVED
from sync.log.model import MAX_EVENT_BYTES, EventDraft, Origin
from sync.redaction import Redactor
from sync.sequences import longest_increasing_subsequence


def draft_edit_events(
    plan: MergePlan, base: Snapshot | None, reducer: SharedReducer, redactor: Redactor, origin: Origin
) -> list[EventDraft]:
    """Draft events in document order. A line that is too large for an event stays on this device.

    `base`: the version that the editor had loaded; if None, no moves or removed headings are drafted. Additions of an
    import are not `shared`: an imported copy was not made from the shared document.
    """
    drafts: list[EventDraft] = []
    layout = _EntryLayout(plan.merged)
    language = language_field(language_of(plan.merged.document) or ZH)
    for operation in plan.operations:
        kind, value = _event_of_operation(operation, layout, reducer.entry(operation.entry_id), redactor)
        value |= language
        if origin is not Origin.IMPORTED:
            value["shared"] = True
        payload = redactor.clean_payload(value)
        if is_too_large_for_event(str(payload.value.get("text", ""))):
            continue
        if len(msgspec.json.encode(payload.value)) > MAX_EVENT_BYTES:
            payload = redactor.clean_payload({name: field for name, field in value.items() if name != "base"})
        drafts.append(EventDraft(type=kind, payload=payload, origin=origin))
    if base is not None:
        arranged = [*_move_events(base, plan.observed), *_heading_events(base, plan.observed)]
    else:
        arranged = list(_new_heading_events(plan.observed, reducer, redactor))
    drafts += [
        EventDraft(type=kind, payload=redactor.clean_payload({**value, **language, "shared": True}), origin=origin)
        for kind, value in arranged
    ]
    return drafts


class _EntryLayout:
    """The entry before each entry in its section, and which entries have a blank line before them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.after: dict[str, str | None] = {}
        self.blank_before: set[str] = set()
        self.entry_order: defaultdict[Section, list[str]] = defaultdict(list)
        self.section_of: dict[str, Section] = {}
        ids = iter(snapshot.ids)
        blank = False
        for block in snapshot.document.blocks:
            if block.kind is BlockKind.BLANK:
                blank = True
                continue
            if block.kind is BlockKind.ENTRY:
                entry_id = next(ids)
                order = self.entry_order[block.section]
                self.after[entry_id] = order[-1] if order else None
                self.section_of[entry_id] = block.section
                if order and (blank or block.text.startswith(QUESTION_PREFIXES)):  # a question always has one
                    self.blank_before.add(entry_id)
                order.append(entry_id)
            blank = False

    def position_payload(self, entry_id: str) -> dict[str, Any]:
        return {
            "after": self.after[entry_id],
            "gap": entry_id in self.blank_before,
            "section": list(self.section_of[entry_id]),
        }


def _event_of_operation(
    operation: Operation, layout: _EntryLayout, current: EntryState | None, redactor: Redactor
) -> tuple[str, dict[str, Any]]:
    value: dict[str, Any] = {"entry_id": operation.entry_id}
    match operation:
        case EntryAdded():
            return ENTRY_ADDED, {**value, **layout.position_payload(operation.entry_id), "text": operation.text}
        case EntryEdited():
            base = redactor.clean(operation.base_text) if current is None else current.text
            value |= {"base": base, "base_hash": text_hash(base), "section": list(operation.section)}
            if current is not None and current.position.section != normalised_section(
                tuple(map(redactor.clean, operation.section))
            ):
                value |= {**layout.position_payload(operation.entry_id), "placed": True}
            return ENTRY_EDITED, {**value, "text": operation.text}
        case EntryRemoved():
            seen = redactor.clean(operation.text) if current is None else current.text
            return ENTRY_REMOVED, {**value, "base_hash": text_hash(seen), "section": list(operation.section)}


def _move_events(base: Snapshot, observed: Snapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    """Lines that the edit moved within their section, or separated from the line before or joined to it."""
    before, now = _EntryLayout(base), _EntryLayout(observed)
    for section, order in now.entry_order.items():
        old_order = {entry_id: number for number, entry_id in enumerate(before.entry_order.get(section, ()))}
        stayed = [entry_id for entry_id in order if entry_id in old_order]
        unmoved = {stayed[at] for at in longest_increasing_subsequence([old_order[entry_id] for entry_id in stayed])}
        for entry_id in stayed:
            apart = now.after[entry_id] is not None and (entry_id in now.blank_before) != (
                entry_id in before.blank_before
            )
            if entry_id not in unmoved or (apart and before.after[entry_id] is not None):
                yield ENTRY_MOVED, {"entry_id": entry_id, **now.position_payload(entry_id)}


def _heading_events(base: Snapshot, observed: Snapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    """Added and removed headings, without those of days, which come and go with their lines."""
    before, now = _heading_sections(base), _heading_sections(observed)
    for section in now:
        if section not in before:
            yield SECTION_ADDED, {"section": list(section)}
    for section in before:
        if section not in now:
            yield SECTION_REMOVED, {"section": list(section)}


def _new_heading_events(
    observed: Snapshot, reducer: SharedReducer, redactor: Redactor
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Headings that no event names. Without a known base none counts as removed."""
    for section in _heading_sections(observed):
        redacted = normalised_section(tuple(map(redactor.clean, section)))
        if redacted not in TEMPLATE_SECTIONS and redacted not in reducer.first_mentions:
            yield SECTION_ADDED, {"section": list(section)}


def _heading_sections(snapshot: Snapshot) -> dict[Section, None]:
    headings: Iterable[Section] = (
        block.section for block in snapshot.document.blocks if block.kind is BlockKind.HEADING and block.section
    )
    return dict.fromkeys(section for section in headings if section[:-1] != (RECORDS,) or not parse_day(section[-1]))
