"""Merge a manual edit of the file with the changes made since the editor loaded it, line by line.

Three states: the base (what the editor loaded), the current version, and the file on disk. How the base is chosen and
which side wins: `docs/decisions/005-three-way-merge.md`. If the base is the current version, the result is the file,
byte for byte.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from sync.document.markdown.edits import as_single_entry
from sync.document.markdown.model import (
    Block,
    BlockKind,
    Entry,
    EntryAdded,
    EntryEdited,
    EntryRemoved,
    MemoryDocument,
    MergePlan,
    Operation,
    Section,
    Snapshot,
    Version,
)
from sync.document.markdown.version_labels import label_sort_key
from sync.document.merge.apply import LineDecision, apply_changes, apply_heading_changes
from sync.document.merge.line_matching import LocatedLine, match_lines
from sync.document.merge.word_merge import merge_words

END_KINDS: Final = frozenset(
    {BlockKind.ENTRY, BlockKind.PLACEHOLDER, BlockKind.HEADING}
)  # a complete file ends with one of these
MASS_REMOVAL_ENTRIES: Final = 5  # fewer are an ordinary edit
MASS_REMOVAL_SHARE: Final = 0.5  # a file that keeps half of its lines was tidied, not lost


def choose_base(disk: MemoryDocument, versions: Sequence[Version]) -> Version | None:
    """The version that the file on disk descends from. `versions` are oldest first; None only if there are none."""
    if not versions:
        return None
    sha256, label = disk.sha256, disk.label
    for version in reversed(versions):
        if (version.sha256 == sha256) if label is None else (version.label == label):
            return version
    found = infer_base(disk, versions)
    loaded = label_sort_key(label)
    before = [] if loaded is None else [one for one in versions if (label_sort_key(one.label) or loaded) < loaded]
    return min(found, before[-1], key=versions.index) if before else found


def infer_base(disk: MemoryDocument, versions: Sequence[Version], *, only_distinct_lines: bool = False) -> Version:
    """The oldest version such that the file lacks every entry that was added after it; else the newest.

    `only_distinct_lines` ignores added entries that read like a line of that version, since many answers read alike. It
    recognises more stale texts, and also takes a truncated text for a stale one, which then removes nothing.
    """
    current = versions[-1]
    present = {entry.text for entry in disk.entries}
    for version in versions:
        known = frozenset(version.snapshot.ids)
        before = {entry.text for entry in version.snapshot.entries} if only_distinct_lines else set()
        arrived = [entry.text for entry in current.snapshot.entries if entry.entry_id not in known]
        told = [text for text in arrived if text not in before]
        if told and present.isdisjoint(told):
            return version
    return current


def looks_like_data_loss(
    current: Version, disk: MemoryDocument, base: Version | None = None, *, recently_written: Sequence[Version] = ()
) -> bool:
    """Whether the file looks lost rather than edited: empty, much shorter, or truncated.

    `base` from `choose_base`, if known: a stale buffer lacks entries that it never contained, which is no loss.
    `recently_written`: versions that the file may have been; a truncated file has no label that names one.
    """
    if disk.is_blank:
        return bool(current.snapshot.ids)
    seen = (base or current).snapshot
    before, after = len(seen.ids), len(disk.entries)
    if before - after >= MASS_REMOVAL_ENTRIES and before - after > before * MASS_REMOVAL_SHARE:
        return True
    return any(
        is_truncated(document, disk)
        for document in (seen.document, *(one.snapshot.document for one in recently_written))
    )


def is_truncated(base: MemoryDocument, disk: MemoryDocument) -> bool:
    """Whether `disk` is the beginning of `base` and lacks more than the footer."""
    if base.label is None or disk.label is not None or not base.text.startswith(disk.text):
        return False
    whole = [entry.text for entry in base.entries]
    return [entry.text for entry in disk.entries] != whole


def may_be_incomplete(base: MemoryDocument, disk: MemoryDocument) -> bool:
    """Whether another program may still be writing the file: the footer is missing.

    A person may have deleted the footer; only waiting tells the two apart.
    """
    return disk.is_blank or (base.label is not None and disk.label is None)


def lacks_end(base: MemoryDocument, disk: MemoryDocument) -> bool:
    """Whether the footer and the end of the file are missing, whatever changed above.

    The last line before the footer is missing from its section, or the file ends within a line.
    """
    if disk.is_blank or not may_be_incomplete(base, disk):
        return False
    last = next((block for block in reversed(base.blocks) if block.kind in END_KINDS), None)
    if last is not None and (last.section, last.text) not in {(block.section, block.text) for block in disk.blocks}:
        return True
    return base.text.endswith(("\n", "\r")) and not disk.text.endswith(("\n", "\r"))


def plan_merge(
    base: Version | None, current: Version | None, disk: MemoryDocument, new_id: Callable[[], str]
) -> MergePlan:
    """Compute the entry operations of an edit and the merged document. `new_id` returns an id for a new line."""
    origin = base.snapshot if base else Snapshot(MemoryDocument())
    known = current.snapshot if current else origin
    merge = _ThreeWayMerge(origin, known, disk, new_id)
    decisions = [merge.decide(line) for line in merge.identify_lines()]
    observed = Snapshot(disk, tuple(decision.entry_id for decision in decisions))
    draft = apply_changes(observed, decisions, merge.entries_to_insert(decisions), known)
    apply_heading_changes(draft, origin, known)
    merged = draft.to_snapshot()
    return MergePlan(_operations(origin, known, merged), merged, tuple(merge.conflicting_ids), observed)


class _DiskLine(msgspec.Struct, frozen=True):
    """An entry on disk, its id, and its state in the base."""

    entry_id: str
    block: Block
    base_entry: Entry | None


class _ThreeWayMerge:
    """Decides line by line what the merged document contains."""

    def __init__(self, base: Snapshot, current: Snapshot, disk: MemoryDocument, new_id: Callable[[], str]) -> None:
        self._base = {entry.entry_id: entry for entry in base.entries}
        self._current = {entry.entry_id: entry for entry in current.entries}
        self._lines = disk.entries
        self._sections = {block.section for block in disk.blocks if block.kind is BlockKind.HEADING} | {()}
        self._new_id = new_id
        self.conflicting_ids: list[str] = []

    def identify_lines(self) -> list[_DiskLine]:
        """Give each entry on disk an id: its own, that of an equal line in the current version, or a new one."""
        entries = tuple(self._base.values())
        matches = match_lines(
            [(entry.section, entry.text) for entry in entries],
            [(line.section, line.text) for line in self._lines],
            self._sections,
        )
        matched_ids = {entries[at].entry_id for at in matches if at is not None}
        ours: defaultdict[LocatedLine, deque[str]] = defaultdict(deque)
        for entry in self._current.values():
            if entry.entry_id not in matched_ids:
                ours[entry.section, entry.text].append(entry.entry_id)
        lines: list[_DiskLine] = []
        for block, at in zip(self._lines, matches, strict=True):
            if at is not None:
                lines.append(_DiskLine(entries[at].entry_id, block, entries[at]))
                continue
            same = ours.get((block.section, block.text))
            lines.append(_DiskLine(same.popleft() if same else self._new_id(), block, None))
        return lines

    def decide(self, line: _DiskLine) -> LineDecision:
        """Decide what the merged document says for a line on disk."""
        disk_text, was, now = line.block.text, line.base_entry, self._current.get(line.entry_id)
        if was is None:
            return LineDecision(line.entry_id, disk_text)
        if now is None:
            moved_by_hand = line.block.section != was.section and was.section in self._sections
            return LineDecision(line.entry_id, disk_text if disk_text != was.text or moved_by_hand else None)
        text = merge_words(was.text, now.text, disk_text)
        if text is None or (text != disk_text and text != as_single_entry(text)):
            copy_id = self._new_id()
            self.conflicting_ids += [line.entry_id, copy_id]
            return LineDecision(copy_id, disk_text, conflicting=now)
        moved_by_us = line.block.section == was.section != now.section
        return LineDecision(line.entry_id, text, follow_move=moved_by_us)

    def entries_to_insert(self, decisions: Sequence[LineDecision]) -> list[Entry]:
        """Current entries that are missing on disk and belong there: added or edited since the editor loaded it."""
        present = {decision.entry_id for decision in decisions}
        present |= {decision.conflicting.entry_id for decision in decisions if decision.conflicting}
        lacking = [entry for entry in self._current.values() if entry.entry_id not in present]
        return [entry for entry in lacking if not self._was_removed_on_disk(entry)]

    def _was_removed_on_disk(self, entry: Entry) -> bool:
        was = self._base.get(entry.entry_id)
        return was is not None and was.text == entry.text


def _operations(base_snapshot: Snapshot, current: Snapshot, merged: Snapshot) -> tuple[Operation, ...]:
    """The operations that lead from the current version to the merged document.

    An entry that is removed in the current version and edited on disk counts as edited, not as added.
    """
    base = {entry.entry_id: entry for entry in base_snapshot.entries}
    left = {entry.entry_id: entry for entry in current.entries}
    last: dict[Section, str] = {}
    operations: list[Operation] = []
    for entry in merged.entries:
        was, now = base.get(entry.entry_id), left.pop(entry.entry_id, None)
        before = was or now
        if before is None:
            operations.append(EntryAdded(entry.entry_id, last.get(entry.section), entry.section, entry.text))
        elif now != entry:
            operations.append(EntryEdited(entry.entry_id, before.text, entry.text, entry.section))
        last[entry.section] = entry.entry_id
    operations.extend(EntryRemoved(entry.entry_id, entry.text, entry.section) for entry in left.values())
    return tuple(operations)
