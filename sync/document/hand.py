"""What a hand did to the shared document, as drafts: entry operations that every device can fold. Pure.

Beyond what a device's own events say, an edit carries its base and a removal the hash of what it took away, both as
the log knows the entry; lines that changed places and headings are told too, or the next rendering would undo them.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from sync.document.canonical import TEMPLATE
from sync.document.capture import ADDED, EDITED, REMOVED, is_large
from sync.document.deeds import MOVED, SECTION_ADDED, SECTION_REMOVED, hashed, sound_section
from sync.document.entry_fold import Line
from sync.document.labels import parse_day
from sync.document.model import EntryAdded, EntryEdited, EntryRemoved, Kind, Operation, Plan, Section, Snapshot
from sync.document.shared import SharedFold
from sync.document.template import QUESTION, RECORDS
from sync.log.model import EVENT_BYTES, Draft, Origin
from sync.redaction import Redactor


def shared_drafts(
    planned: Plan, base: Snapshot | None, fold: SharedFold, redactor: Redactor, origin: Origin
) -> list[Draft]:
    """Drafts in document order; what is too large for an event stays this device's alone.

    `base` is what the editor had loaded, None where nobody knows: then nothing was moved or taken away. Additions of an
    import do not say `shared`: whoever imports a copy of the document has not seen the shared one.
    """
    drafts: list[Draft] = []
    stands = _Standing(planned.snapshot)
    for operation in planned.operations:
        kind, value = _told(operation, stands, fold.line(operation.entry_id), redactor)
        if origin is not Origin.IMPORTED:
            value["shared"] = True
        payload = redactor.payload(value)
        if is_large(str(payload.value.get("text", ""))):
            continue
        if len(msgspec.json.encode(payload.value)) > EVENT_BYTES:
            payload = redactor.payload({name: given for name, given in value.items() if name != "base"})
        drafts.append(Draft(type=kind, payload=payload, origin=origin))
    if base is not None:
        arranged = [*_moves(base, planned.observed), *_headings(base, planned.observed)]
    else:
        arranged = list(_new_headings(planned.observed, fold, redactor))
    drafts += [
        Draft(type=kind, payload=redactor.payload({**value, "shared": True}), origin=origin) for kind, value in arranged
    ]
    return drafts


class _Standing:
    """Behind which entry of its section each entry stands, and which have a blank line before them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.after: dict[str, str | None] = {}
        self.apart: set[str] = set()
        self.orders: defaultdict[Section, list[str]] = defaultdict(list)
        self.sections: dict[str, Section] = {}
        ids = iter(snapshot.ids)
        blank = False
        for block in snapshot.document.blocks:
            if block.kind is Kind.BLANK:
                blank = True
                continue
            if block.kind is Kind.ENTRY:
                entry_id = next(ids)
                order = self.orders[block.section]
                self.after[entry_id] = order[-1] if order else None
                self.sections[entry_id] = block.section
                if order and (blank or block.text.startswith(QUESTION)):  # a question always stands apart
                    self.apart.add(entry_id)
                order.append(entry_id)
            blank = False

    def place(self, entry_id: str) -> dict[str, Any]:
        return {
            "after": self.after[entry_id],
            "gap": entry_id in self.apart,
            "section": list(self.sections[entry_id]),
        }


def _told(
    operation: Operation, stands: _Standing, known: Line | None, redactor: Redactor
) -> tuple[str, dict[str, Any]]:
    value: dict[str, Any] = {"entry_id": operation.entry_id}
    match operation:
        case EntryAdded():
            return ADDED, {**value, **stands.place(operation.entry_id), "text": operation.text}
        case EntryEdited():
            base = redactor.clean(operation.base_text) if known is None else known.text
            value |= {"base": base, "base_hash": hashed(base), "section": list(operation.section)}
            if known is not None and known.place.section != sound_section(
                tuple(map(redactor.clean, operation.section))
            ):
                value |= {**stands.place(operation.entry_id), "placed": True}
            return EDITED, {**value, "text": operation.text}
        case EntryRemoved():
            seen = redactor.clean(operation.text) if known is None else known.text
            return REMOVED, {**value, "base_hash": hashed(seen), "section": list(operation.section)}


def _moves(base: Snapshot, observed: Snapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    """Lines that stand elsewhere in their section than the editor found them, or apart from the line before."""
    before, now = _Standing(base), _Standing(observed)
    for section, order in now.orders.items():
        places = {entry_id: number for number, entry_id in enumerate(before.orders.get(section, ()))}
        stayed = [entry_id for entry_id in order if entry_id in places]
        kept = {stayed[at] for at in _longest_rise([places[entry_id] for entry_id in stayed])}
        for entry_id in stayed:
            apart = now.after[entry_id] is not None and (entry_id in now.apart) != (entry_id in before.apart)
            if entry_id not in kept or (apart and before.after[entry_id] is not None):
                yield MOVED, {"entry_id": entry_id, **now.place(entry_id)}


def _headings(base: Snapshot, observed: Snapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    """Headings that came and went; those of days come and go with their lines."""
    before, now = _titles(base), _titles(observed)
    for section in now:
        if section not in before:
            yield SECTION_ADDED, {"section": list(section)}
    for section in before:
        if section not in now:
            yield SECTION_REMOVED, {"section": list(section)}


def _new_headings(observed: Snapshot, fold: SharedFold, redactor: Redactor) -> Iterator[tuple[str, dict[str, Any]]]:
    """Headings that no event has named yet, where nobody knows what the editor had loaded; so none was taken away."""
    for section in _titles(observed):
        told = sound_section(tuple(map(redactor.clean, section)))
        if told not in TEMPLATE and told not in fold.mentioned:
            yield SECTION_ADDED, {"section": list(section)}


def _titles(snapshot: Snapshot) -> dict[Section, None]:
    headings: Iterable[Section] = (
        block.section for block in snapshot.document.blocks if block.kind is Kind.HEADING and block.section
    )
    return dict.fromkeys(section for section in headings if section[:-1] != (RECORDS,) or not parse_day(section[-1]))


def _longest_rise(numbers: Sequence[int]) -> list[int]:
    """The places of a longest increasing run (not necessarily of neighbours): what need not have been moved."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for at, number in enumerate(numbers):
        length = bisect_left(tails, number)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [number]
        ends[length : length + 1] = [at]
    rise: list[int] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        rise.append(at)
        at = before[at]
    return rise[::-1]
