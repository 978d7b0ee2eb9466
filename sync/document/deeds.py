"""What the document events of all devices say, one entry at a time, and the order in which it counts. Pure.

An event of any writer comes through here; one that cannot be understood says nothing and stops nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Final

import msgspec

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
from sync.document.clean_up import DAY_FOLDED, EARLIER, folded_ids
from sync.document.edit import entry_text
from sync.document.labels import day_label, parse_day
from sync.document.model import Section
from sync.document.parse import without_closing_marks
from sync.document.places import DEEPEST
from sync.document.reading_back import derived
from sync.document.summary import one_line
from sync.document.template import ANSWER, QUESTION, RECORDS
from sync.log.envelope import bounded_hlc, is_ahead
from sync.log.model import Event

MOVED: Final = "entry_moved"  # another place among the lines of its section; the text is as it was
COUNTED: Final = "counted"  # said once more: of a deed, not of an event
NOTED: Final = "noted"  # likewise: stands there from the first time on, and is not brought back by the next
SECTION_ADDED: Final = "section_added"
SECTION_REMOVED: Final = "section_removed"
FOLDED: Final = (EXCHANGE, ADDED, EDITED, REMOVED, MOVED, SECTION_ADDED, SECTION_REMOVED, DAY_FOLDED)

Order = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event put an entry. `last`: at the end of the section; else behind `after`, None for its beginning."""

    order: Order
    section: Section
    after: str | None = None
    last: bool = False
    gap: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Deed:
    """One event's say about one entry. `base` is a text, `base_hash` its SHA-256, where the event has them."""

    order: Order
    entry_id: str
    event_id: str
    kind: str = field(compare=False)
    device: str = field(compare=False)
    text: str = field(compare=False, default="")
    place: Place | None = field(compare=False, default=None)
    base: str | None = field(compare=False, default=None)
    base_hash: str | None = field(compare=False, default=None)
    shared: bool = field(compare=False, default=False)

    @property
    def is_birth(self) -> bool:
        return self.kind in {ADDED, EXCHANGE}


class Said(msgspec.Struct):
    """What an entry event of any writer may say; see `sync.document.hand.shared_drafts` for what ours do."""

    entry_id: str = ""
    section: list[str] = []
    text: str | None = None
    after: str | None = None
    gap: bool = False
    base: str | None = None
    base_hash: str | None = None
    shared: bool = False
    placed: bool = False


def order_of(event: Event) -> Order:
    """The event's place in the total order of all devices, by what is the same on each of them.

    Not by replica and number: a restored home keeps its own for what its former life has sent under others.
    """
    return bounded_hlc(event), event.hlc, event.event_id


@lru_cache(maxsize=1024)  # a document has few sections, and every event names one
def sound_section(titles: tuple[str, ...]) -> Section:
    """A section as it can stand in the document: one line a title, days the way we write them, levels that exist."""
    section = tuple(without_closing_marks(one_line(title)) for title in titles)[: DEEPEST - 1]
    day = parse_day(section[1]) if len(section) > 1 and section[0] == RECORDS else None
    return section if day is None else (RECORDS, day_label(day), *section[2:])


def hashed(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def twin(entry_id: str, event_id: str) -> str:
    """The id of the line that an edit left beside an entry."""
    return derived(entry_id, event_id)


def said_by(event: Event) -> Said | None:
    try:
        return msgspec.convert(dict(event.payload), Said)
    except msgspec.ValidationError:  # another program's idea of such an event
        return None


def exchange_deeds(event: Event, order: Order) -> Iterator[Deed]:
    if not is_shown(event) or not (event.payload.get("question") or event.payload.get("answer")):
        return
    section = (RECORDS, day_label(day_of(event)))
    repeated = repeated_by(event)
    asked, answered = exchange_ids(event) if repeated is None else (f"{repeated}.q", f"{repeated}.a")
    kinds = (EXCHANGE, EXCHANGE) if repeated is None else (COUNTED, NOTED)
    for entry_id, kind, mark, said, place in (
        (asked, kinds[0], QUESTION, event.payload.get("question", ""), Place(order, section, last=True, gap=True)),
        (answered, kinds[1], ANSWER, event.payload.get("answer", ""), Place(order, section, after=asked)),
    ):
        text = (mark + one_line(str(said))).rstrip()
        shared = repeated is not None
        yield Deed(order, entry_id, event.event_id, kind, event.device_id, text, place, shared=shared)
    for entry in preferences_of(event):
        place = Place(order, entry.section, last=True)
        text = entry_text(entry.text)
        yield Deed(order, entry.entry_id, event.event_id, NOTED, event.device_id, text, place, shared=True)


def folding_deeds(event: Event, order: Order) -> Iterator[Deed]:
    """A folded day: its lines go where they still say what was seen, and one line stands for them.

    Not if it was folded by a clock that is known to be ahead: then its line is only known, or it would be taken for one
    that no event has.
    """
    said = said_by(event)
    if is_ahead(event):
        if said is not None and said.entry_id:
            known = Place(order, EARLIER)
            yield Deed(order, said.entry_id, event.event_id, MOVED, event.device_id, place=known, shared=True)
        return
    for entry_id, seen in folded_ids(event).items():
        yield Deed(order, entry_id, event.event_id, REMOVED, event.device_id, base_hash=seen, shared=True)
    if said is not None and said.entry_id and said.text:
        kind = ADDED if said.base is None else EDITED
        place = Place(order, EARLIER, last=kind == EDITED)
        base_hash = None if said.base is None else hashed(said.base)
        yield Deed(
            order,
            said.entry_id,
            event.event_id,
            kind,
            event.device_id,
            entry_text(said.text),
            place,
            said.base,
            base_hash,
            shared=True,
        )


def entry_deed(event: Event, said: Said, section: Section, order: Order) -> Deed | None:
    if not said.entry_id or (said.text is None and event.type in {ADDED, EDITED}):
        return None  # nothing is said, or it has been forgotten since
    place: Place | None = Place(order, section, after=said.after, gap=said.gap)
    if event.type == EDITED and not said.placed:
        place = Place(order, section, last=True)  # counts only where the section is another one
    return Deed(
        order,
        said.entry_id,
        event.event_id,
        event.type,
        event.device_id,
        entry_text(said.text) if said.text is not None else "",
        None if event.type == REMOVED and not section else place,
        said.base,
        hashed(said.base) if said.base is not None else said.base_hash,
        said.shared,
    )
