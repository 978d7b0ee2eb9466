"""One document for all devices of a person: the fold of everybody's document events, the same for the same set.

The log's order is (min(HLC, server time + 24 h), HLC, event id). An entry's history depends on its own events
alone, so an event that arrives late costs one entry, not the log: nothing is folded again from the start unless the
server's time moves an event in the order (a clock more than a day ahead). What all this decides:

Raw and redacted
    The log holds redacted text, so the shared document is redacted text. A device puts what was typed on it back
    (`sync.document.shared.local_overlay`): the files of two devices are byte for byte the same after redaction, and
    exactly the same where nothing was redacted.
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

from sync.clock import EPOCH, parse_hlc
from sync.document.markdown.model import Section
from sync.document.markdown.version_labels import shared_label
from sync.document.shared.aliases import EntryAliases
from sync.document.shared.entry_ops import (
    EntryOp,
    EventOrder,
    conflict_copy_id,
    event_order,
    normalised_section,
    op_of_entry_event,
    ops_of_day_compaction,
    ops_of_exchange,
    parse_entry_payload,
)
from sync.document.shared.entry_reducer import EntryReducer, EntryState, order_entries
from sync.log.event_types import DAY_FOLDED, DOCUMENT_EVENT_TYPES, EXCHANGE_RECORDED, SECTION_ADDED, SECTION_REMOVED
from sync.log.model import Event


class SharedReducer:
    """Feed it events in any order, as often as one likes; ask for lines and sections."""

    def __init__(self) -> None:
        self.first_mentions: dict[Section, EventOrder] = {}  # every section any event names, and the first that did
        self._event_ids: set[str] = set()
        self._newest: tuple[EventOrder, Event] | None = None
        self._ops: defaultdict[str, list[EntryOp]] = defaultdict(list)
        self._headings: dict[Section, tuple[EventOrder, bool]] = {}
        self._aliases = EntryAliases()
        self._entries_by_id: dict[
            str, list[EntryState]
        ] = {}  # by root: the entry, then what its conflicts left beside it
        self._conflict_owner: dict[str, str] = {}  # of a line that a conflict left: the root of the entry
        self._entries_by_section: defaultdict[Section, dict[str, EntryState]] = defaultdict(
            dict
        )  # every line that ever stood there
        self._ordered: dict[Section, list[EntryState]] = {}
        self._pending: dict[str, None] = {}  # a set in an order that is the same in each process
        self._ops_without_conflict_id: list[
            EntryOp
        ] = []  # of these nobody has asked yet what they would leave beside an entry
        self._conflict_copy_ids: set[str] = set()

    @property
    def label(self) -> str | None:
        """What the last line of the document says; None before any event."""
        if self._newest is None:
            return None
        order, event = self._newest
        return shared_label(_local_time(order[0], event.utc_offset), len(self._event_ids))

    @property
    def newest_ts(self) -> str | None:
        return self._newest[1].ts if self._newest else None

    def add(self, event: Event) -> None:
        """Take an event in; one that is known already, or says nothing about the document, changes nothing."""
        if event.event_id in self._event_ids or event.type not in DOCUMENT_EVENT_TYPES:
            return
        self._event_ids.add(event.event_id)
        order = event_order(event)
        if self._newest is None or order > self._newest[0]:
            self._newest = (order, event)
        self._apply(event, order)

    def canonical_id(self, entry_id: str) -> str:
        """The id under which an entry stands in the document."""
        return self._aliases.canonical_id(entry_id)

    def entry(self, entry_id: str) -> EntryState | None:
        """An entry, alive or gone; None for one that no event speaks of."""
        root = self.canonical_id(entry_id)
        return next((line for line in self.entry_with_conflicts(entry_id) if line.entry_id == root), None)

    def entry_with_conflicts(self, entry_id: str) -> Sequence[EntryState]:
        """An entry, alive or gone, and the lines that conflicts have left beside it."""
        self._reduce_pending()
        root = self.canonical_id(entry_id)
        return self._entries_by_id.get(self._conflict_owner.get(root, root), ())

    def is_conflict_copy(self, entry_id: str) -> bool:
        """Whether it is the line that one of the events leaves beside an entry where it meets another, or would leave.

        Where such a line stands is for the fold alone: what came later may have settled the conflict.
        """
        while self._ops_without_conflict_id:
            deed = self._ops_without_conflict_id.pop()
            self._conflict_copy_ids.add(conflict_copy_id(deed.entry_id, deed.event_id))
        return entry_id in self._conflict_copy_ids

    def is_heading_wanted(self, section: Section) -> bool | None:
        """Whether somebody wants this heading, with or without lines; None where nobody has said so."""
        return self._headings[section][1] if section in self._headings else None

    def sections_with_entries(self) -> list[Section]:
        """Every section with a line in it."""
        self._reduce_pending()
        return [section for section in self._entries_by_section if self.entries_in(section)]

    def entries_in(self, section: Section) -> list[EntryState]:
        """The lines of a section, in order."""
        self._reduce_pending()
        if section not in self._ordered:
            self._ordered[section] = list(
                order_entries(section, self._entries_by_section.get(section, {}), self.canonical_id)
            )
        return self._ordered[section]

    # --- taking in -------------------------------------------------------------------------------------------

    def _apply(self, event: Event, order: EventOrder) -> None:
        if event.type in {EXCHANGE_RECORDED, DAY_FOLDED}:
            for deed in (ops_of_exchange if event.type == EXCHANGE_RECORDED else ops_of_day_compaction)(event, order):
                self._add_op(deed)
            return
        said = parse_entry_payload(event)
        if said is None:
            return
        section = normalised_section(tuple(said.section))
        if event.type in {SECTION_ADDED, SECTION_REMOVED}:
            self._mention(section, order)
            if section not in self._headings or self._headings[section][0] < order:
                self._headings[section] = (order, event.type == SECTION_ADDED)
            return
        spoken = op_of_entry_event(event, said, section, order)
        if spoken is not None:
            self._add_op(spoken)

    def _add_op(self, op: EntryOp) -> None:
        insort(self._ops[op.entry_id], op)
        self._ops_without_conflict_id.append(op)
        if op.position is not None:
            self._mention(op.position.section, op.order)
        self._pending[op.entry_id] = None
        if op.is_addition:
            self._mark_pending(self._aliases.add(op))

    def _mention(self, section: Section, order: EventOrder) -> None:
        if section not in self.first_mentions or order < self.first_mentions[section]:
            self.first_mentions[section] = order

    # --- folding ---------------------------------------------------------------------------------------------

    def _reduce_pending(self) -> None:
        """Fold the entries that were spoken of since the last time."""
        while self._pending:
            entry_id, _ = self._pending.popitem()
            root = self.canonical_id(entry_id)
            if root != entry_id:
                self._mark_pending(self._discard_reduced(entry_id) - {entry_id})
            self._reduce_entry(self._conflict_owner.get(root, root))

    def _reduce_entry(self, root: str) -> None:
        before = self._discard_reduced(root)
        lines = EntryReducer(root, self._aliases.ids_of(root), self._ops).reduce()
        for line in lines:
            before |= self._discard_reduced(line.entry_id)  # what it was before it was known to be one of these
        self._entries_by_id[root] = lines
        for line in lines:
            for place in line.positions:
                self._entries_by_section[place.section][line.entry_id] = line
                self._ordered.pop(place.section, None)
            if line.entry_id != root:
                self._conflict_owner[line.entry_id] = root
        self._mark_pending(before - {line.entry_id for line in lines})  # no conflict any more

    def _mark_pending(self, entry_ids: set[str]) -> None:
        """Fold these anew as well, as far as somebody has spoken of them."""
        self._pending.update(dict.fromkeys(sorted(entry_ids & self._ops.keys())))

    def _discard_reduced(self, root: str) -> set[str]:
        """Forget how an entry was folded; which lines that were."""
        lines = self._entries_by_id.pop(root, ())
        for line in lines:
            self._conflict_owner.pop(line.entry_id, None)
            for place in line.positions:
                if self._entries_by_section[place.section].get(line.entry_id) is line:
                    del self._entries_by_section[place.section][line.entry_id]
                self._ordered.pop(place.section, None)
        return {line.entry_id for line in lines}


def _local_time(hlc: str, utc_offset: int) -> datetime:
    """When it was, where it was recorded; the beginning of time where another program wrote one that cannot be."""
    try:
        return EPOCH + timedelta(milliseconds=parse_hlc(hlc)[0], minutes=utc_offset)
    except OverflowError:
        return EPOCH
