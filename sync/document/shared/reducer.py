"""The document events of all devices reduced to one document: the same events give the same document in any order.

An entry's state depends on its own events alone, so a late event recomputes one entry. The rules:
`docs/decisions/012-shared-document.md`.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from sync.clock import EPOCH
from sync.document.markdown.language import ZH, Language, parse_language
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
from sync.log.envelope import said_ms
from sync.log.event_types import DAY_FOLDED, DOCUMENT_EVENT_TYPES, EXCHANGE_RECORDED, SECTION_ADDED, SECTION_REMOVED
from sync.log.model import Event


class SharedReducer:
    """Accepts events in any order, also repeatedly; returns lines and sections."""

    def __init__(self) -> None:
        self.first_mentions: dict[Section, EventOrder] = {}  # sections, with the first event that names each
        self._event_ids: set[str] = set()
        self._newest: tuple[EventOrder, Event] | None = None
        self._oldest: tuple[EventOrder, Language] | None = None
        self._ops: defaultdict[str, list[EntryOp]] = defaultdict(list)
        self._headings: dict[Section, tuple[EventOrder, bool]] = {}
        self._aliases = EntryAliases()
        self._entries_by_id: dict[str, list[EntryState]] = {}  # canonical id: the entry, then its conflict copies
        self._conflict_owner: dict[str, str] = {}  # conflict copy: canonical id of its entry
        self._entries_by_section: defaultdict[Section, dict[str, EntryState]] = defaultdict(dict)  # also former ones
        self._ordered: dict[Section, list[EntryState]] = {}
        self._pending: dict[str, None] = {}  # an ordered set, so that all processes work in the same order
        self._ops_without_conflict_id: list[EntryOp] = []  # not yet in `_conflict_copy_ids`
        self._conflict_copy_ids: set[str] = set()

    @property
    def label(self) -> str | None:
        """The label in the footer; None before any event."""
        if self._newest is None:
            return None
        event = self._newest[1]
        return shared_label(_local_time(said_ms(event), event.utc_offset), len(self._event_ids))

    @property
    def language(self) -> Language:
        """The language of the headings: that of the first event, so that it is the same on all devices."""
        return self._oldest[1] if self._oldest else ZH

    @property
    def newest_ts(self) -> str | None:
        return self._newest[1].ts if self._newest else None

    def add(self, event: Event) -> None:
        """Add an event. Known events and those of other types change nothing."""
        if event.event_id in self._event_ids or event.type not in DOCUMENT_EVENT_TYPES:
            return
        self._event_ids.add(event.event_id)
        order = event_order(event)
        if self._newest is None or order > self._newest[0]:
            self._newest = (order, event)
        if self._oldest is None or order < self._oldest[0]:
            self._oldest = (order, parse_language(event.payload.get("language")))
        self._apply(event, order)

    def canonical_id(self, entry_id: str) -> str:
        """The id of an entry in the document."""
        return self._aliases.canonical_id(entry_id)

    def entry(self, entry_id: str) -> EntryState | None:
        """An entry, present or removed; None if no event names it."""
        root = self.canonical_id(entry_id)
        return next((line for line in self.entry_with_conflicts(entry_id) if line.entry_id == root), None)

    def entry_with_conflicts(self, entry_id: str) -> Sequence[EntryState]:
        """An entry, present or removed, and its conflict copies."""
        self._reduce_pending()
        root = self.canonical_id(entry_id)
        return self._entries_by_id.get(self._conflict_owner.get(root, root), ())

    def is_conflict_copy(self, entry_id: str) -> bool:
        """Whether some event adds, or would add in a conflict, a line with this id.

        Such a line may be absent now: a later event may have settled the conflict.
        """
        while self._ops_without_conflict_id:
            op = self._ops_without_conflict_id.pop()
            self._conflict_copy_ids.add(conflict_copy_id(op.entry_id, op.event_id))
        return entry_id in self._conflict_copy_ids

    def is_heading_wanted(self, section: Section) -> bool | None:
        """Whether the heading was added (True) or removed (False) by an event; None if no event names it."""
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

    # --- adding -------------------------------------------------------------------------------------------

    def _apply(self, event: Event, order: EventOrder) -> None:
        if event.type in {EXCHANGE_RECORDED, DAY_FOLDED}:
            ops_of = ops_of_exchange if event.type == EXCHANGE_RECORDED else ops_of_day_compaction
            for part in ops_of(event, order):
                self._add_op(part)
            return
        payload = parse_entry_payload(event)
        if payload is None:
            return
        section = normalised_section(tuple(payload.section))
        if event.type in {SECTION_ADDED, SECTION_REMOVED}:
            self._mention(section, order)
            if section not in self._headings or self._headings[section][0] < order:
                self._headings[section] = (order, event.type == SECTION_ADDED)
            return
        op = op_of_entry_event(event, payload, section, order)
        if op is not None:
            self._add_op(op)

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

    # --- reducing ---------------------------------------------------------------------------------------------

    def _reduce_pending(self) -> None:
        """Reduce the entries with new operations."""
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
            before |= self._discard_reduced(line.entry_id)  # it may have been reduced as an entry of its own before
        self._entries_by_id[root] = lines
        for line in lines:
            for place in line.positions:
                self._entries_by_section[place.section][line.entry_id] = line
                self._ordered.pop(place.section, None)
            if line.entry_id != root:
                self._conflict_owner[line.entry_id] = root
        self._mark_pending(before - {line.entry_id for line in lines})  # their conflicts are settled

    def _mark_pending(self, entry_ids: set[str]) -> None:
        """Reduce these again too, if they have operations."""
        self._pending.update(dict.fromkeys(sorted(entry_ids & self._ops.keys())))

    def _discard_reduced(self, root: str) -> set[str]:
        """Drop the reduced state of an entry. Return the ids of its lines."""
        lines = self._entries_by_id.pop(root, ())
        for line in lines:
            self._conflict_owner.pop(line.entry_id, None)
            for place in line.positions:
                if self._entries_by_section[place.section].get(line.entry_id) is line:
                    del self._entries_by_section[place.section][line.entry_id]
                self._ordered.pop(place.section, None)
        return {line.entry_id for line in lines}


def _local_time(unix_ms: int, utc_offset: int) -> datetime:
    """A time at its author's place; the epoch if it is out of range."""
    try:
        return EPOCH + timedelta(milliseconds=unix_ms, minutes=utc_offset)
    except OverflowError:
        return EPOCH
