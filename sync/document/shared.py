"""One document for all devices of a person: the fold of everybody's document events, the same for the same set.

The log's order is (min(HLC, server time + 24 h), HLC, event id). An entry's history depends on its own events
alone, so an event that arrives late costs one entry, not the log: nothing is folded again from the start unless the
server's time moves an event in the order (a clock more than a day ahead). What all this decides:

Raw and redacted
    The log holds redacted text, so the shared document is redacted text. A device puts what was typed on it back
    (`sync.document.overlay`): the files of two devices are byte for byte the same after redaction, and exactly the
    same where nothing was redacted.
Joining
    The fold begins with the log: what a device remembered before it shared stands in it once. A line that was typed
    or imported before sharing and reads the same, in the same place, as one of another device (a file that was copied
    by hand) is that line; two exchanges with the same words are two, unless one was recorded as a repeat of the
    other. An operation that does not say `shared` was done
    to a device's own document and counts only for entries of that device.
Leaving
    The document stays as it is and is followed as the device's own from then on. Coming back, the shared one is shown
    again; what was done meanwhile to lines of others stays in the history of versions.
Text
    An edit carries the text it was made from. From another text it is merged by words; where the two meet, the line
    that comes first in the order keeps the identity, the other one stands below it as an entry of its own whose id
    both sides can name, until an edit that comes late leads from one to the other. A removal names what it saw: an
    edit that it did not see stays, whichever comes first. An edit of an entry that nobody added is an entry; a removal
    of one is remembered. The same addition twice is one.
Days
    A day that a clock folded which was more than a day ahead of the server does not count; it folds when it is due.
Place
    Behind the entry it was put behind, also one that is gone or has moved on since; at the end of its section where
    that one never stood there. Exchanges go to the end of their day. A move leaves the old place known to others.
Label
    The time of the newest event, in the zone it was recorded in, and how many events are folded: ``… 15:49:12 · 532``.
    Two states of one device never share a label, two devices at the same state always do. The time alone cannot:
    an event that arrives late changes the document and not the newest time.
Layout
    Blank lines, separators and placeholders are written as we write them everywhere; a blank line between two lines
    of text is kept, and so are headings without lines, each as events of their own. Front matter, title, byte order
    mark, encoding and line endings are the form of one device's file and stay its own, as do lines and headings no
    event knows (an entry too large for one).
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from sync.clock import EPOCH, hlc_parts
from sync.document.capture import EXCHANGE
from sync.document.clean_up import DAY_FOLDED
from sync.document.copies import Copies
from sync.document.deeds import (
    FOLDED,
    SECTION_ADDED,
    SECTION_REMOVED,
    Deed,
    Order,
    entry_deed,
    exchange_deeds,
    folding_deeds,
    order_of,
    said_by,
    sound_section,
    twin,
)
from sync.document.entry_fold import EntryFold, Line, arranged
from sync.document.labels import shared_label
from sync.document.model import Section
from sync.log.model import Event


class SharedFold:
    """Feed it events in any order, as often as one likes; ask for lines and sections."""

    def __init__(self) -> None:
        self.mentioned: dict[Section, Order] = {}  # every section any event names, and the first that did
        self._events: set[str] = set()
        self._newest: tuple[Order, Event] | None = None
        self._deeds: defaultdict[str, list[Deed]] = defaultdict(list)
        self._headings: dict[Section, tuple[Order, bool]] = {}
        self._copies = Copies()
        self._lines: dict[str, list[Line]] = {}  # by root: the entry, then what its conflicts left beside it
        self._owner: dict[str, str] = {}  # of a line that a conflict left: the root of the entry
        self._nodes: defaultdict[Section, dict[str, Line]] = defaultdict(dict)  # every line that ever stood there
        self._arranged: dict[Section, list[Line]] = {}
        self._touched: dict[str, None] = {}  # a set in an order that is the same in each process
        self._unnamed: list[Deed] = []  # of these nobody has asked yet what they would leave beside an entry
        self._beside: set[str] = set()

    @property
    def label(self) -> str | None:
        """What the last line of the document says; None before any event."""
        if self._newest is None:
            return None
        order, event = self._newest
        return shared_label(_local_time(order[0], event.utc_offset), len(self._events))

    @property
    def newest_ts(self) -> str | None:
        return self._newest[1].ts if self._newest else None

    def add(self, event: Event) -> None:
        """Take an event in; one that is known already, or says nothing about the document, changes nothing."""
        if event.event_id in self._events or event.type not in FOLDED:
            return
        self._events.add(event.event_id)
        order = order_of(event)
        if self._newest is None or order > self._newest[0]:
            self._newest = (order, event)
        self._take(event, order)

    def root(self, entry_id: str) -> str:
        """The id under which an entry stands in the document."""
        return self._copies.root(entry_id)

    def line(self, entry_id: str) -> Line | None:
        """An entry, alive or gone; None for one that no event speaks of."""
        root = self.root(entry_id)
        return next((line for line in self.history(entry_id) if line.entry_id == root), None)

    def history(self, entry_id: str) -> Sequence[Line]:
        """An entry, alive or gone, and the lines that conflicts have left beside it."""
        self._settle()
        root = self.root(entry_id)
        return self._lines.get(self._owner.get(root, root), ())

    def left_by_conflict(self, entry_id: str) -> bool:
        """Whether it is the line that one of the events leaves beside an entry where it meets another, or would leave.

        Where such a line stands is for the fold alone: what came later may have settled the conflict.
        """
        while self._unnamed:
            deed = self._unnamed.pop()
            self._beside.add(twin(deed.entry_id, deed.event_id))
        return entry_id in self._beside

    def heading(self, section: Section) -> bool | None:
        """Whether somebody wants this heading, with or without lines; None where nobody has said so."""
        return self._headings[section][1] if section in self._headings else None

    def sections(self) -> list[Section]:
        """Every section with a line in it."""
        self._settle()
        return [section for section in self._nodes if self.lines(section)]

    def lines(self, section: Section) -> list[Line]:
        """The lines of a section, in order."""
        self._settle()
        if section not in self._arranged:
            self._arranged[section] = list(arranged(section, self._nodes.get(section, {}), self.root))
        return self._arranged[section]

    # --- taking in -------------------------------------------------------------------------------------------

    def _take(self, event: Event, order: Order) -> None:
        if event.type in {EXCHANGE, DAY_FOLDED}:
            for deed in (exchange_deeds if event.type == EXCHANGE else folding_deeds)(event, order):
                self._note(deed)
            return
        said = said_by(event)
        if said is None:
            return
        section = sound_section(tuple(said.section))
        if event.type in {SECTION_ADDED, SECTION_REMOVED}:
            self._mention(section, order)
            if section not in self._headings or self._headings[section][0] < order:
                self._headings[section] = (order, event.type == SECTION_ADDED)
            return
        spoken = entry_deed(event, said, section, order)
        if spoken is not None:
            self._note(spoken)

    def _note(self, deed: Deed) -> None:
        insort(self._deeds[deed.entry_id], deed)
        self._unnamed.append(deed)
        if deed.place is not None:
            self._mention(deed.place.section, deed.order)
        self._touched[deed.entry_id] = None
        if deed.is_birth:
            self._touch(self._copies.note(deed))

    def _mention(self, section: Section, order: Order) -> None:
        if section not in self.mentioned or order < self.mentioned[section]:
            self.mentioned[section] = order

    # --- folding ---------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Fold the entries that were spoken of since the last time."""
        while self._touched:
            entry_id, _ = self._touched.popitem()
            root = self.root(entry_id)
            if root != entry_id:
                self._touch(self._clear(entry_id) - {entry_id})
            self._fold(self._owner.get(root, root))

    def _fold(self, root: str) -> None:
        before = self._clear(root)
        lines = EntryFold(root, self._copies.members(root), self._deeds).fold()
        for line in lines:
            before |= self._clear(line.entry_id)  # what it was before it was known to be one of these
        self._lines[root] = lines
        for line in lines:
            for place in line.places:
                self._nodes[place.section][line.entry_id] = line
                self._arranged.pop(place.section, None)
            if line.entry_id != root:
                self._owner[line.entry_id] = root
        self._touch(before - {line.entry_id for line in lines})  # no conflict any more

    def _touch(self, entry_ids: set[str]) -> None:
        """Fold these anew as well, as far as somebody has spoken of them."""
        self._touched.update(dict.fromkeys(sorted(entry_ids & self._deeds.keys())))

    def _clear(self, root: str) -> set[str]:
        """Forget how an entry was folded; which lines that were."""
        lines = self._lines.pop(root, ())
        for line in lines:
            self._owner.pop(line.entry_id, None)
            for place in line.places:
                if self._nodes[place.section].get(line.entry_id) is line:
                    del self._nodes[place.section][line.entry_id]
                self._arranged.pop(place.section, None)
        return {line.entry_id for line in lines}


def _local_time(hlc: str, utc_offset: int) -> datetime:
    """When it was, where it was recorded; the beginning of time where another program wrote one that cannot be."""
    try:
        return EPOCH + timedelta(milliseconds=hlc_parts(hlc)[0], minutes=utc_offset)
    except OverflowError:
        return EPOCH
