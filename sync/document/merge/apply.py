"""Put the changes of the current version into a document that a person saved: new lines, edits, removals, headings.

A line goes after the line that it follows in the current version, if that is still in its section; else before the one
that it precedes; else at the end of the section. A line that opens a paragraph goes after its neighbour's whole
paragraph, so that lines typed there stay together.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from sync.document.markdown.block_editor import BlockEditor
from sync.document.markdown.edits import as_single_entry, section_end
from sync.document.markdown.model import KIND_LETTERS, BlockKind, Entry, Section, Snapshot
from sync.document.markdown.positions import content_end, extent_of


class LineDecision(msgspec.Struct, frozen=True):
    """The result for one entry on disk.

    `text`: its new text, None if it is removed. `conflicting`: the current entry that stays before it, because both
    sides changed the same words. `follow_move`: the current version moved it to another section and the edit did not.
    """

    entry_id: str
    text: str | None
    conflicting: Entry | None = None
    follow_move: bool = False


def apply_changes(
    observed: Snapshot, decisions: Sequence[LineDecision], to_insert: Iterable[Entry], current: Snapshot
) -> BlockEditor:
    """Carry out the decisions, of the lines that change, and insert the missing entries of the current version.

    Removals come last, so that a day that loses one line and gets another keeps its heading.
    """
    draft = BlockEditor(observed)
    arrivals = {entry.entry_id: entry for entry in to_insert}
    before = dict(zip(observed.ids, observed.document.entries, strict=True))
    for verdict in decisions:
        is_changed = verdict.text != before[verdict.entry_id].text or verdict.conflicting or verdict.follow_move
        at = draft.index_of(verdict.entry_id) if is_changed else None
        if at is None or verdict.text is None:
            continue
        draft.set_text(at, verdict.text)
        if verdict.conflicting is not None:
            rival = verdict.conflicting
            section = draft.cells[at].block.section
            draft.insert(at, [draft.new_cell(as_single_entry(rival.text), section=section, entry_id=rival.entry_id)])
        if verdict.follow_move:
            arrivals[verdict.entry_id] = Entry(verdict.entry_id, verdict.text)
            draft.remove(at)
    if arrivals:
        _EntryPlacer(draft, current, arrivals).insert_all()
    for verdict in decisions:
        at = draft.index_of(verdict.entry_id) if verdict.text is None else None
        if at is not None:
            draft.remove_entry(at)
    return draft


def apply_heading_changes(editor: BlockEditor, base: Snapshot, current: Snapshot) -> None:
    """Apply heading changes of the current version: new empty headings appear, removed ones go if they are empty."""
    before, now = base.document.heading_sections, current.document.heading_sections
    sections = {entry.section for entry in current.document.entries}
    full = {section[:depth] for section in sections for depth in range(len(section) + 1)}
    for section in now:
        if section and section not in before and section not in full:
            editor.ensure_section(section)
    for at in range(len(editor.cells) - 1, -1, -1):
        block = editor.cells[at].block if at < len(editor.cells) else None
        if block is None or block.kind is not BlockKind.HEADING or block.section in now or block.section not in before:
            continue
        if content_end(editor.cells, at + 1, extent_of(editor.cells, at)) == at + 1:
            editor.remove(at)


class _EntryPlacer:
    """Places entries of the current version in an edited document."""

    def __init__(self, editor: BlockEditor, current: Snapshot, arrivals: Mapping[str, Entry]) -> None:
        self._editor, self._arrivals = editor, arrivals
        self._opening, self._closing = _paragraph_ends(current, arrivals)
        self._order: list[tuple[str, Section]] = []  # of the arrivals
        self._peers: defaultdict[Section, list[str]] = defaultdict(list)
        for entry_id, block in zip(current.ids, current.document.entries, strict=True):
            self._peers[block.section].append(entry_id)
            if entry_id in arrivals:
                self._order.append((entry_id, block.section))

    def insert_all(self) -> None:
        """Insert the arrivals in the order of the current version."""
        for entry_id, section in self._order:
            self._insert_entry(Entry(entry_id, as_single_entry(self._arrivals[entry_id].text), section))

    def _insert_entry(self, entry: Entry) -> None:
        draft = self._editor
        at, section = self._insertion_point(entry)
        opens = entry.entry_id in self._opening and draft.is_entry(at - 1)
        closes = entry.entry_id in self._closing or not draft.is_entry(at)
        draft.insert(
            at,
            [draft.new_cell(entry.text, section=section, entry_id=entry.entry_id)],
            blank_before=opens,
            blank_after=closes,
        )

    def _insertion_point(self, entry: Entry) -> tuple[int, Section]:
        peers = self._peers[entry.section]
        own = peers.index(entry.entry_id)
        for peer in reversed(peers[:own]):
            at = self._index_in_section(peer, entry.section)
            if at is not None:
                at += 1
                while entry.entry_id in self._opening and self._editor.is_entry(at):
                    at += 1
                return at, entry.section
        for peer in peers[own + 1 :]:
            at = self._index_in_section(peer, entry.section)
            if at is not None:
                return at, entry.section
        return section_end(self._editor, entry.section)

    def _index_in_section(self, entry_id: str, section: Section) -> int | None:
        at = self._editor.index_of(entry_id)
        return at if at is not None and self._editor.cells[at].block.section == section else None


def _paragraph_ends(snapshot: Snapshot, entry_ids: Container[str]) -> tuple[set[str], set[str]]:
    """Those of these entries with a blank line before them, and those with one after them."""
    shape, blank = snapshot.document.shape, KIND_LETTERS[BlockKind.BLANK]
    places = [at for at, letter in enumerate(shape) if letter == KIND_LETTERS[BlockKind.ENTRY]]
    opening: set[str] = set()
    closing: set[str] = set()
    for entry_id, at in zip(snapshot.ids, places, strict=True):
        if entry_id in entry_ids:
            if at > 0 and shape[at - 1] == blank:
                opening.add(entry_id)
            if shape.startswith(blank, at + 1):
                closing.add(entry_id)
    return opening, closing
