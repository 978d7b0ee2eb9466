"""Document events of all devices as operations on single entries, in one total order.

Events may come from any program; one that cannot be understood has no operations.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import msgspec

from sync.document.capture.day_compaction import compacted_entry_hashes
from sync.document.capture.exchange_events import (
    exchange_ids,
    is_in_document,
    lines_of_exchange,
    preference_entries_of,
    repeated_exchange_id,
)
from sync.document.markdown.edits import as_single_entry
from sync.document.markdown.entry_ids import derived_entry_id, text_hash
from sync.document.markdown.model import Section
from sync.document.markdown.one_line import one_line
from sync.document.markdown.parse import strip_closing_hashes
from sync.document.markdown.positions import DEEPEST_HEADING_LEVEL
from sync.document.markdown.template import EARLIER, RECORDS, canonical_section
from sync.document.markdown.version_labels import day_label, parse_day
from sync.log.envelope import bounded_hlc, day_of, is_clock_ahead
from sync.log.event_types import ENTRY_ADDED, ENTRY_EDITED, ENTRY_MOVED, ENTRY_REMOVED, EXCHANGE_RECORDED
from sync.log.model import Event

# Kinds of operations beside the event types:
COUNT_REPEAT: Final = "counted"  # the question of a repeated exchange
ADD_ONCE: Final = "noted"  # a line that later mentions do not bring back after its removal
ADD_DERIVED: Final = "derived"  # a line that the program wrote from the log; an addition brings it back, with its text
EDIT_DERIVED: Final = "updated"  # its next text, which only replaces the one before it

DERIVED_FROM_FACT: Final = "fact"  # `derived` in the payload of such a line's events
DERIVED_FROM_USE: Final = "use"  # a task or command that came often; once removed, it stays away

EventOrder = tuple[str, str, str]


class EntryPosition(msgspec.Struct, frozen=True):
    """Where an event puts an entry: at the end of the section, or after an entry (None: first in the section)."""

    order: EventOrder
    section: Section
    after: str | None = None
    at_end: bool = False
    blank_before: bool = False


@dataclass(frozen=True, slots=True, order=True)
class EntryOp:
    """An operation of one event on one entry. `base_hash` is the SHA-256 of the text that it changes."""

    order: EventOrder
    entry_id: str
    event_id: str
    kind: str = field(compare=False)
    device_id: str = field(compare=False)
    text: str = field(compare=False, default="")
    position: EntryPosition | None = field(compare=False, default=None)
    base: str | None = field(compare=False, default=None)
    base_hash: str | None = field(compare=False, default=None)
    shared: bool = field(compare=False, default=False)

    @property
    def is_addition(self) -> bool:
        return self.kind in {ENTRY_ADDED, EXCHANGE_RECORDED}


class EntryPayload(msgspec.Struct):
    """The payload of an entry event; `local_edits.draft_edit_events` writes ours."""

    entry_id: str = ""
    section: list[str] = []
    text: str | None = None
    after: str | None = None
    gap: bool = False
    base: str | None = None
    base_hash: str | None = None
    shared: bool = False
    placed: bool = False
    derived: str = ""


def event_order(event: Event) -> EventOrder:
    """The place of an event in the total order, the same on all devices.

    Replica and number would not do: a home restored from a backup has its own numbers for events that it sent before.
    """
    return bounded_hlc(event), event.hlc, event.event_id


@lru_cache(maxsize=1024)  # every event names one of few sections
def normalised_section(titles: tuple[str, ...]) -> Section:
    """A section as the document can show it: canonical one-line titles, days in our format, at most six levels."""
    shown = tuple(strip_closing_hashes(one_line(title)) for title in titles)[: DEEPEST_HEADING_LEVEL - 1]
    section = canonical_section(shown)
    day = parse_day(section[1]) if len(section) > 1 and section[0] == RECORDS else None
    return section if day is None else (RECORDS, day_label(day), *section[2:])


def conflict_copy_id(entry_id: str, event_id: str) -> str:
    """The id of the line that a conflicting edit adds beside an entry."""
    return derived_entry_id(entry_id, event_id)


def parse_entry_payload(event: Event) -> EntryPayload | None:
    try:
        return msgspec.convert(dict(event.payload), EntryPayload)
    except msgspec.ValidationError:  # an event of another program
        return None


def ops_of_exchange(event: Event, order: EventOrder) -> Iterator[EntryOp]:
    if not is_in_document(event) or not (event.payload.get("question") or event.payload.get("answer")):
        return
    section = (RECORDS, day_label(day_of(event)))
    repeated = repeated_exchange_id(event)
    asked, answered = exchange_ids(event) if repeated is None else (f"{repeated}.q", f"{repeated}.a")
    kinds = (EXCHANGE_RECORDED, EXCHANGE_RECORDED) if repeated is None else (COUNT_REPEAT, ADD_ONCE)
    places = EntryPosition(order, section, at_end=True, blank_before=True), EntryPosition(order, section, after=asked)
    for entry_id, kind, text, place in zip((asked, answered), kinds, lines_of_exchange(event), places, strict=True):
        yield _op(event, order, entry_id, kind, text=text, position=place, shared=repeated is not None)
    for entry in preference_entries_of(event):
        place = EntryPosition(order, entry.section, at_end=True)
        text = as_single_entry(entry.text)
        yield _op(event, order, entry.entry_id, ADD_ONCE, text=text, position=place, shared=True)


def ops_of_day_compaction(event: Event, order: EventOrder) -> Iterator[EntryOp]:
    """A compacted day: remove its lines if they still have the recorded text, and add one line for all of them.

    An event from a clock that is known to be ahead changes nothing. Its line is only registered, so that it does not
    count as a line that no event names.
    """
    payload = parse_entry_payload(event)
    if is_clock_ahead(event):
        if payload is not None and payload.entry_id:
            position = EntryPosition(order, EARLIER)
            yield _op(event, order, payload.entry_id, ENTRY_MOVED, position=position, shared=True)
        return
    for entry_id, seen in compacted_entry_hashes(event).items():
        yield _op(event, order, entry_id, ENTRY_REMOVED, base_hash=seen, shared=True)
    if payload is not None and payload.entry_id and payload.text:
        kind = ENTRY_ADDED if payload.base is None else ENTRY_EDITED
        place = EntryPosition(order, EARLIER, at_end=kind == ENTRY_EDITED)
        text, base = as_single_entry(payload.text), payload.base
        base_hash = None if base is None else text_hash(base)
        named = {"text": text, "position": place, "base": base, "base_hash": base_hash}
        yield _op(event, order, payload.entry_id, kind, **named, shared=True)


def _op(event: Event, order: EventOrder, entry_id: str, kind: str, **more: Any) -> EntryOp:
    return EntryOp(order, entry_id, event.event_id, kind, event.device_id, **more)


def op_of_entry_event(event: Event, payload: EntryPayload, section: Section, order: EventOrder) -> EntryOp | None:
    if not payload.entry_id or (payload.text is None and event.type in {ENTRY_ADDED, ENTRY_EDITED}):
        return None  # malformed, or erased since
    place: EntryPosition | None = EntryPosition(order, section, after=payload.after, blank_before=payload.gap)
    if payload.derived:
        return _op_of_derived_line(event, payload, section, order)
    if event.type == ENTRY_EDITED and not payload.placed:
        place = EntryPosition(order, section, at_end=True)  # applies only if the section changes
    return _op(
        event,
        order,
        payload.entry_id,
        event.type,
        text=as_single_entry(payload.text) if payload.text is not None else "",
        position=None if event.type == ENTRY_REMOVED and not section else place,
        base=payload.base,
        base_hash=text_hash(payload.base) if payload.base is not None else payload.base_hash,
        shared=payload.shared,
    )


def _op_of_derived_line(event: Event, payload: EntryPayload, section: Section, order: EventOrder) -> EntryOp | None:
    """The operation of a line that the program wrote from the log; it never wins against an edit by hand."""
    kinds = {ENTRY_ADDED: ADD_DERIVED, ENTRY_EDITED: EDIT_DERIVED, ENTRY_REMOVED: ENTRY_REMOVED}
    kind = kinds.get(event.type)
    if kind is None:
        return None
    return _op(
        event,
        order,
        payload.entry_id,
        ADD_ONCE if kind == ADD_DERIVED and payload.derived == DERIVED_FROM_USE else kind,
        text="" if payload.text is None else as_single_entry(payload.text),
        position=EntryPosition(order, section, at_end=True) if kind == ADD_DERIVED else None,
        base_hash=payload.base_hash,
        shared=True,
    )
