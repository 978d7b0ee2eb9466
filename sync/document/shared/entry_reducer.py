"""The history of one entry of the shared document, folded; and how the lines of a section stand. Pure.

The rules are those of `sync.document.shared.reducer`.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sync.document.markdown.edits import as_single_entry
from sync.document.markdown.model import Section
from sync.document.markdown.repeat_suffix import increment_repeat_count
from sync.document.merge.word_merge import merge_words
from sync.document.shared.entry_ops import ADD_ONCE, COUNT_REPEAT, EntryOp, EntryPosition, conflict_copy_id, text_hash
from sync.log.event_types import ENTRY_EDITED, ENTRY_MOVED, ENTRY_REMOVED


@dataclass(slots=True)
class EntryState:
    """An entry as the fold has it. `places` are all it ever had, the last one counts; `flagged`: two edits met.

    `text` is empty while nobody has said it. `copies` are the ids under which it still stands somewhere.
    """

    entry_id: str
    text: str
    positions: list[EntryPosition]
    has_conflict: bool = False
    live_ids: set[str] = field(default_factory=set)
    removed_before_added: set[str] = field(default_factory=set)  # removed before anybody added them
    texts_by_hash: dict[str, str] = field(default_factory=dict)  # every text it has had, by its hash

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
    """The history of one entry, folded: the line, and a line beside it for every edit that met another one."""

    def __init__(self, root: str, members: Iterable[str], ops: Mapping[str, list[EntryOp]]) -> None:
        self._root = root
        self._ops = ops
        self._lines: list[EntryState] = []
        known = [deed for member in members for deed in ops.get(member, ())]
        born = {deed.entry_id: deed.device_id for deed in reversed(known) if deed.is_addition}
        self._pending = [
            deed for deed in known if deed.shared or born.get(deed.entry_id, deed.device_id) == deed.device_id
        ]
        heapq.heapify(self._pending)

    def reduce(self) -> list[EntryState]:
        while self._pending:
            deed = heapq.heappop(self._pending)
            line = self._target_of(deed)
            if deed.kind == ENTRY_REMOVED:
                _remove(line, deed)
            elif deed.kind == ENTRY_MOVED:
                _apply_position(line, deed)
            elif deed.kind in {COUNT_REPEAT, ADD_ONCE}:
                _apply_repeat(line, deed)
            else:
                self._apply_text(line, deed)
        return self._lines

    def _target_of(self, op: EntryOp) -> EntryState:
        """The line an event speaks of: the one it names or, after a conflict, the one that has said its base."""
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
        """An addition or an edit. What is edited comes back; what is added comes back where it was not known gone."""
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
        line.set_text(text)
        if not op.is_addition or op.entry_id not in line.removed_before_added:
            line.live_ids.add(op.entry_id)

    def _add_conflict_copy(self, line: EntryState, op: EntryOp) -> None:
        section = op.position.section if op.position else line.position.section
        after = line.entry_id if section == line.position.section else None
        place = EntryPosition(op.order, section, after=after, at_end=after is None)
        beside = EntryState(
            conflict_copy_id(op.entry_id, op.event_id), "", [place], has_conflict=True, live_ids={op.entry_id}
        )
        beside.set_text(op.text)
        line.has_conflict = True
        self._lines.append(beside)
        for later in self._ops.get(beside.entry_id, ()):
            if later.shared:
                heapq.heappush(self._pending, later)


def _text_after(line: EntryState, op: EntryOp) -> str | None:
    """What the line says after an addition or an edit; None where both texts have to stay."""
    if not line.text or op.text == line.text or (op.is_addition and not line.is_present):
        return op.text
    base = op.base if op.base is not None else line.texts_by_hash.get(op.base_hash or "")
    if base is not None:
        return _merge_safely(base, line.text, op.text)
    # An edit by the only writer of its own document follows from the one before, also where that one never came.
    return None if op.shared or op.is_addition else op.text


def _remove(line: EntryState, op: EntryOp) -> None:
    """Take a line away, unless it says something by now that whoever took it away had not seen."""
    if not line.text:
        line.removed_before_added.add(op.entry_id)
    elif not op.shared:
        line.live_ids.discard(op.entry_id)  # the device's own copy of it
    elif op.base_hash is None or op.base_hash == text_hash(line.text):
        line.live_ids.clear()


def _apply_repeat(line: EntryState, op: EntryOp) -> None:
    """Said once, or once more. A count brings back what was taken away; what was merely noted before stays gone."""
    first = not line.text
    if first:
        line.set_text(op.text)
        if op.position is not None:
            line.positions[:] = [op.position]
    elif op.kind == COUNT_REPEAT:
        line.set_text(increment_repeat_count(line.text))
    if op.kind == COUNT_REPEAT or (first and op.entry_id not in line.removed_before_added):
        line.live_ids.add(op.entry_id)


def _apply_position(line: EntryState, op: EntryOp) -> None:
    """Give the line the place an event names; an edit in place names none of its own."""
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
    """The living lines whose last place is in this section; each place ever taken is known to those behind it."""
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
