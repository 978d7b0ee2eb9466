"""What the document events of all devices say, one entry at a time, and the order in which it counts. Pure.

An event of any writer comes through here; one that cannot be understood says nothing and stops nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Final

import msgspec

from sync.document.capture.day_compaction import EARLIER_SECTION, compacted_entry_hashes
from sync.document.capture.exchange_events import (
    exchange_ids,
    is_in_document,
    local_day_of,
    preference_entries_of,
    repeated_exchange_id,
)
from sync.document.markdown.edits import as_single_entry
from sync.document.markdown.entry_ids import derived_entry_id
from sync.document.markdown.model import Section
from sync.document.markdown.one_line import one_line
from sync.document.markdown.parse import strip_closing_hashes
from sync.document.markdown.positions import DEEPEST_HEADING_LEVEL
from sync.document.markdown.template import ANSWER_PREFIX, QUESTION_PREFIX, RECORDS
from sync.document.markdown.version_labels import day_label, parse_day
from sync.log.envelope import bounded_hlc, is_clock_ahead
from sync.log.event_types import ENTRY_ADDED, ENTRY_EDITED, ENTRY_MOVED, ENTRY_REMOVED, EXCHANGE_RECORDED
from sync.log.model import Event

COUNT_REPEAT: Final = "counted"  # said once more: of a deed, not of an event
ADD_ONCE: Final = "noted"  # likewise: stands there from the first time on, and is not brought back by the next

EventOrder = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class EntryPosition:
    """Where an event put an entry. `last`: at the end of the section; else behind `after`, None for its beginning."""

    order: EventOrder
    section: Section
    after: str | None = None
    at_end: bool = False
    blank_before: bool = False


@dataclass(frozen=True, slots=True, order=True)
class EntryOp:
    """One event's say about one entry. `base` is a text, `base_hash` its SHA-256, where the event has them."""

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
    """The entry operation of an event of any writer; ours come from `local_edits.draft_edit_events`."""

    entry_id: str = ""
    section: list[str] = []
    text: str | None = None
    after: str | None = None
    gap: bool = False
    base: str | None = None
    base_hash: str | None = None
    shared: bool = False
    placed: bool = False


def event_order(event: Event) -> EventOrder:
    """The event's place in the total order of all devices, by what is the same on each of them.

    Not by replica and number: a restored home keeps its own for what its former life has sent under others.
    """
    return bounded_hlc(event), event.hlc, event.event_id


@lru_cache(maxsize=1024)  # a document has few sections, and every event names one
def normalised_section(titles: tuple[str, ...]) -> Section:
    """A section as it can stand in the document: one line a title, days the way we write them, levels that exist."""
    section = tuple(strip_closing_hashes(one_line(title)) for title in titles)[: DEEPEST_HEADING_LEVEL - 1]
    day = parse_day(section[1]) if len(section) > 1 and section[0] == RECORDS else None
    return section if day is None else (RECORDS, day_label(day), *section[2:])


def text_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def conflict_copy_id(entry_id: str, event_id: str) -> str:
    """The id of the line that an edit left beside an entry."""
    return derived_entry_id(entry_id, event_id)


def parse_entry_payload(event: Event) -> EntryPayload | None:
    try:
        return msgspec.convert(dict(event.payload), EntryPayload)
    except msgspec.ValidationError:  # another program's idea of such an event
        return None


def ops_of_exchange(event: Event, order: EventOrder) -> Iterator[EntryOp]:
    if not is_in_document(event) or not (event.payload.get("question") or event.payload.get("answer")):
        return
    section = (RECORDS, day_label(local_day_of(event)))
    repeated = repeated_exchange_id(event)
    asked, answered = exchange_ids(event) if repeated is None else (f"{repeated}.q", f"{repeated}.a")
    kinds = (EXCHANGE_RECORDED, EXCHANGE_RECORDED) if repeated is None else (COUNT_REPEAT, ADD_ONCE)
    for entry_id, kind, mark, said, place in (
        (
            asked,
            kinds[0],
            QUESTION_PREFIX,
            event.payload.get("question", ""),
            EntryPosition(order, section, at_end=True, blank_before=True),
        ),
        (
            answered,
            kinds[1],
            ANSWER_PREFIX,
            event.payload.get("answer", ""),
            EntryPosition(order, section, after=asked),
        ),
    ):
        text = (mark + one_line(str(said))).rstrip()
        shared = repeated is not None
        yield EntryOp(order, entry_id, event.event_id, kind, event.device_id, text, place, shared=shared)
    for entry in preference_entries_of(event):
        place = EntryPosition(order, entry.section, at_end=True)
        text = as_single_entry(entry.text)
        yield EntryOp(order, entry.entry_id, event.event_id, ADD_ONCE, event.device_id, text, place, shared=True)


def ops_of_day_compaction(event: Event, order: EventOrder) -> Iterator[EntryOp]:
    """A folded day: its lines go where they still say what was seen, and one line stands for them.

    Not if it was folded by a clock that is known to be ahead: then its line is only known, or it would be taken for one
    that no event has.
    """
    said = parse_entry_payload(event)
    if is_clock_ahead(event):
        if said is not None and said.entry_id:
            known = EntryPosition(order, EARLIER_SECTION)
            yield EntryOp(
                order, said.entry_id, event.event_id, ENTRY_MOVED, event.device_id, position=known, shared=True
            )
        return
    for entry_id, seen in compacted_entry_hashes(event).items():
        yield EntryOp(order, entry_id, event.event_id, ENTRY_REMOVED, event.device_id, base_hash=seen, shared=True)
    if said is not None and said.entry_id and said.text:
        kind = ENTRY_ADDED if said.base is None else ENTRY_EDITED
        place = EntryPosition(order, EARLIER_SECTION, at_end=kind == ENTRY_EDITED)
        base_hash = None if said.base is None else text_hash(said.base)
        yield EntryOp(
            order,
            said.entry_id,
            event.event_id,
            kind,
            event.device_id,
            as_single_entry(said.text),
            place,
            said.base,
            base_hash,
            shared=True,
        )


def op_of_entry_event(event: Event, payload: EntryPayload, section: Section, order: EventOrder) -> EntryOp | None:
    if not payload.entry_id or (payload.text is None and event.type in {ENTRY_ADDED, ENTRY_EDITED}):
        return None  # nothing is said, or it has been forgotten since
    place: EntryPosition | None = EntryPosition(order, section, after=payload.after, blank_before=payload.gap)
    if event.type == ENTRY_EDITED and not payload.placed:
        place = EntryPosition(order, section, at_end=True)  # counts only where the section is another one
    return EntryOp(
        order,
        payload.entry_id,
        event.event_id,
        event.type,
        event.device_id,
        as_single_entry(payload.text) if payload.text is not None else "",
        None if event.type == ENTRY_REMOVED and not section else place,
        payload.base,
        text_hash(payload.base) if payload.base is not None else payload.base_hash,
        payload.shared,
    )
