"""Reduce the operations on one entry of the shared document, and order the lines of a section.

The rules: `docs/decisions/012-shared-document.md`.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from sync.document.markdown.edits import as_single_entry
from sync.document.markdown.entry_ids import text_hash
from sync.document.markdown.model import Section
from sync.document.markdown.repeat_suffix import increment_repeat_count
from sync.document.merge.word_merge import merge_words
from sync.document.shared.entry_ops import (
    ADD_DERIVED,
    ADD_ONCE,
    COUNT_REPEAT,
    EDIT_DERIVED,
    EntryOp,
    EntryPosition,
    conflict_copy_id,
)
from sync.log.event_types import ENTRY_EDITED, ENTRY_MOVED, ENTRY_REMOVED


class EntryState(msgspec.Struct):
    """The reduced state of an entry.

    `text` is empty before an addition or edit arrives. `positions` are all positions so far; the last one counts.
    `live_ids` are the ids under which it has not been removed.
    """

    entry_id: str
    text: str
    positions: list[EntryPosition]
    live_ids: set[str] = msgspec.field(default_factory=set)
    removed_before_added: set[str] = msgspec.field(default_factory=set)  # removed before the addition arrived
    texts_by_hash: dict[str, str] = msgspec.field(default_factory=dict)  # all its texts so far
    derived_from: set[str] = msgspec.field(default_factory=set)  # hashes of texts that only the program replaced

    @property
    def is_present(self) -> bool:
        return bool(self.live_ids) and bool(self.text)

    @property
    def position(self) -> EntryPosition:
        return self.positions[-1]

    def set_text(self, text: str) -> None:
        self.text = text
        self.texts_by_hash[text_hash(text)] = text


class EntryReducer:
    """Reduces one entry: to its line, and one more line for every conflicting edit."""

    def __init__(self, root: str, members: Iterable[str], ops: Mapping[str, list[EntryOp]]) -> None:
        self._root = root
        self._ops = ops
        self._lines: list[EntryState] = []
        all_ops = [op for member in members for op in ops.get(member, ())]
        added_by = {op.entry_id: op.device_id for op in reversed(all_ops) if op.is_addition}
        self._pending = [op for op in all_ops if op.shared or added_by.get(op.entry_id, op.device_id) == op.device_id]
        heapq.heapify(self._pending)

    def reduce(self) -> list[EntryState]:
        while self._pending:
            op = heapq.heappop(self._pending)
            line = self._target_of(op)
            if op.kind == ENTRY_REMOVED:
                _remove(line, op)
            elif op.kind == ENTRY_MOVED:
                _apply_position(line, op)
            elif op.kind in {COUNT_REPEAT, ADD_ONCE}:
                _apply_repeat(line, op)
            elif op.kind in {ADD_DERIVED, EDIT_DERIVED}:
                _apply_derived(line, op)
            else:
                self._apply_text(line, op)
        return self._lines

    def _target_of(self, op: EntryOp) -> EntryState:
        """The line that an operation is about: the one it names or, after a conflict, the one with its base text."""
        if not self._lines:
            self._lines.append(EntryState(self._root, "", [op.position or EntryPosition(op.order, (), at_end=True)]))
        for line in self._lines[1:]:
            if line.entry_id == op.entry_id:
                return line
        for line in self._lines:
            if op.base_hash == text_hash(line.text):
                return line
        return next((line for line in reversed(self._lines) if op.base_hash in line.texts_by_hash), self._lines[0])

    def _apply_text(self, line: EntryState, op: EntryOp) -> None:
        """Apply an addition or an edit. An edit restores a removed line; an addition does, unless it came before."""
        text = _text_after(line, op)
        if text is None:
            self._add_conflict_copy(line, op)
            return
        if not op.is_addition or not line.is_present:
            first = not line.text
            if first and op.position is not None:
                line.positions[:] = [op.position]
            else:
                _apply_position(line, op)
        line.derived_from.clear()
        line.set_text(text)
        if not op.is_addition or op.entry_id not in line.removed_before_added:
            line.live_ids.add(op.entry_id)

    def _add_conflict_copy(self, line: EntryState, op: EntryOp) -> None:
        section = op.position.section if op.position else line.position.section
        after = line.entry_id if section == line.position.section else None
        place = EntryPosition(op.order, section, after=after, at_end=after is None)
        beside = EntryState(conflict_copy_id(op.entry_id, op.event_id), "", [place], live_ids={op.entry_id})
        beside.set_text(op.text)
        self._lines.append(beside)
        for later in self._ops.get(beside.entry_id, ()):
            if later.shared:
                heapq.heappush(self._pending, later)


def _text_after(line: EntryState, op: EntryOp) -> str | None:
    """The text after an addition or an edit; None if both texts must stay."""
    if not line.text or op.text == line.text or (op.is_addition and not line.is_present):
        return op.text
    base = op.base if op.base is not None else line.texts_by_hash.get(op.base_hash or "")
    if base is not None:
        return _merge_safely(base, line.text, op.text)
    # Edits by the only writer of a document follow each other, even if one of them never arrives.
    return None if op.shared or op.is_addition else op.text


def _remove(line: EntryState, op: EntryOp) -> None:
    """Remove a line, unless its text has changed since the removal was made."""
    if not line.text:
        line.removed_before_added.add(op.entry_id)
    elif not op.shared:
        line.live_ids.discard(op.entry_id)  # only the copy of that device
    elif op.base_hash is None or op.base_hash == text_hash(line.text) or op.base_hash in line.derived_from:
        line.live_ids.clear()


def _apply_repeat(line: EntryState, op: EntryOp) -> None:
    """Apply a repeat. A count restores a removed line; ADD_ONCE does not."""
    first = not line.text
    if first:
        line.set_text(op.text)
        if op.position is not None:
            line.positions[:] = [op.position]
    elif op.kind == COUNT_REPEAT:
        line.set_text(increment_repeat_count(line.text))
    if op.kind == COUNT_REPEAT or (first and op.entry_id not in line.removed_before_added):
        line.live_ids.add(op.entry_id)


def _apply_derived(line: EntryState, op: EntryOp) -> None:
    """Apply what the program derived: add a line that is absent, or replace exactly the text that it knew."""
    if op.kind == EDIT_DERIVED:
        if line.is_present and op.base_hash == text_hash(line.text):
            line.derived_from.add(op.base_hash)
            line.set_text(op.text)
        return
    if line.is_present:
        return
    if not line.text and op.position is not None:
        line.positions[:] = [op.position]
    line.set_text(op.text)
    if op.entry_id not in line.removed_before_added:
        line.live_ids.add(op.entry_id)


def _apply_position(line: EntryState, op: EntryOp) -> None:
    """Move the line to the position of an operation; an edit within its section has none."""
    place = op.position
    if place is None or (op.kind == ENTRY_EDITED and place.at_end and place.section == line.position.section):
        return
    line.positions.append(place)


def _merge_safely(base: str, ours: str, theirs: str) -> str | None:
    text = merge_words(base, ours, theirs)
    return text if text is None or text in {ours, theirs} or text == as_single_entry(text) else None


def order_entries(
    section: Section, lines: dict[str, EntryState], canonical_id: Callable[[str], str]
) -> Iterator[EntryState]:
    """The present lines of a section, in order. Former positions of a line still anchor the lines after them."""
    placed = sorted(
        (place.order, not place.at_end, number, line.entry_id, place)
        for line in lines.values()
        for number, place in enumerate(line.positions)
        if place.section == section
    )
    following: dict[tuple[str, int] | None, tuple[str, int] | None] = {None: None}
    newest: dict[str, tuple[str, int]] = {}
    tail: tuple[str, int] | None = None
    for _, _, number, entry_id, place in placed:
        node = (entry_id, number)
        anchor = None if place.after is None else newest.get(canonical_id(place.after))
        before = tail if place.at_end or (place.after is not None and anchor is None) else anchor
        following[node], following[before] = following[before], node
        tail = node if before == tail else tail
        newest[entry_id] = node
    at = following[None]
    while at is not None:
        line = lines[at[0]]
        if line.is_present and at[1] == len(line.positions) - 1:
            yield line
        at = following[at]
