"""Merge a manual edit of the file with the changes made since the editor loaded it, line by line.

Three states: the base (what the editor loaded), the current version, and the file on disk. How the base is chosen and
which side wins: `docs/decisions/005-three-way-merge.md`. If the base is the current version, the result is the file,
byte for byte.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Final

from sync.document.markdown.block_editor import BlockEditor
from sync.document.markdown.edits import as_single_entry
from sync.document.markdown.model import (
    KIND_LETTERS,
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
from sync.document.markdown.version_labels import parse_time_label
from sync.document.merge.apply import LineDecision, apply_changes, apply_heading_changes
from sync.document.merge.line_matching import LocatedLine, match_lines
from sync.document.merge.word_merge import merge_words
from sync.sequences import common_ends

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
    loaded = parse_time_label(label)
    before = [] if loaded is None else [one for one in versions if (parse_time_label(one.label) or loaded) < loaded]
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
        distinguishing = [text for text in arrived if text not in before]
        if distinguishing and present.isdisjoint(distinguishing):
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
    decisions = merge.decide_lines()
    observed = Snapshot(disk, tuple(merge.disk_ids))
    draft = apply_changes(observed, decisions, merge.entries_to_insert(decisions), known)
    apply_heading_changes(draft, origin, known)
    _remove_passed_footer(draft, base)
    merged = draft.to_snapshot()
    return MergePlan(operations_between(origin, known, merged), merged, tuple(merge.conflicting_ids), observed)


def _remove_passed_footer(draft: BlockEditor, base: Version | None) -> None:
    """Remove the footer of the base if there is text below it; the merged document gets one at its end."""
    footer = KIND_LETTERS[BlockKind.FOOTER]
    if base is None or footer not in base.snapshot.document.shape or footer in draft.cells.shape:
        return
    passed = (at for at, cell in enumerate(draft.cells) if draft.is_entry(at) and cell.block.title == base.label)
    if (at := next(passed, None)) is not None:
        draft.remove(at)


class _ThreeWayMerge:
    """Decides line by line what the merged document contains. Lines that are equal in all three states need nothing."""

    def __init__(self, base: Snapshot, current: Snapshot, disk: MemoryDocument, new_id: Callable[[], str]) -> None:
        self._base_lines, self._lines = base.document.entries, disk.entries
        self._base_ids, self._base = base.ids, dict(zip(base.ids, self._base_lines, strict=True))
        self._current = dict(zip(current.ids, current.document.entries, strict=True))
        self._sections = {*disk.heading_sections, ()}
        self._new_id = new_id
        self._matches = self._match_lines()
        self.disk_ids = self._identify_lines()  # of the entries on disk
        self.conflicting_ids: list[str] = []

    def decide_lines(self) -> list[LineDecision]:
        """The decisions for the lines on disk that differ from the base or from the current version."""
        decisions: list[LineDecision] = []
        for place, (entry_id, block, at) in enumerate(zip(self.disk_ids, self._lines, self._matches, strict=True)):
            now = self._current.get(entry_id)
            was = None if at is None else self._base_lines[at]
            if (block, block) != (was, now):
                decision = self._decide(entry_id, block, was, now)
                decisions.append(decision)
                self.disk_ids[place] = decision.entry_id
        return decisions

    def entries_to_insert(self, decisions: Sequence[LineDecision]) -> list[Entry]:
        """Current entries that are missing on disk and belong there: added or edited since the editor loaded it."""
        present = set(self.disk_ids)
        present |= {decision.conflicting.entry_id for decision in decisions if decision.conflicting}
        lacking = [entry_id for entry_id in self._current if entry_id not in present]
        return [
            _entry(entry_id, self._current[entry_id]) for entry_id in lacking if not self._was_removed_on_disk(entry_id)
        ]

    def _match_lines(self) -> list[int | None]:
        """For each entry on disk the index of its entry in the base, None for a new one."""
        base, disk = self._base_lines, self._lines
        head, tail = common_ends((base, disk))  # these are most lines, and need no comparison of their texts
        ours, theirs = (
            [(line.section, line.text) for line in lines[head : len(lines) - tail]] for lines in (base, disk)
        )
        middle = match_lines(ours, theirs, self._sections)
        matched = [None if at is None else head + at for at in middle]
        return [*range(head), *matched, *range(len(base) - tail, len(base))]

    def _identify_lines(self) -> list[str]:
        """Give each entry on disk an id: its own, that of an equal line in the current version, or a new one."""
        ids = [None if at is None else self._base_ids[at] for at in self._matches]
        matched = set(ids)
        ours: defaultdict[LocatedLine, deque[str]] = defaultdict(deque)
        for entry_id in (name for name in self._current if name not in matched):
            line = self._current[entry_id]
            ours[line.section, line.text].append(entry_id)

        def id_of(line: Block) -> str:
            same = ours.get((line.section, line.text))
            return same.popleft() if same else self._new_id()

        return [id_of(line) if known is None else known for known, line in zip(ids, self._lines, strict=True)]

    def _decide(self, entry_id: str, line: Block, was: Block | None, now: Block | None) -> LineDecision:
        """Decide what the merged document says for a line on disk, by its base and current states."""
        disk_text = line.text
        if was is None:
            return LineDecision(entry_id, disk_text)
        if now is None:
            moved_by_hand = line.section != was.section and was.section in self._sections
            return LineDecision(entry_id, disk_text if disk_text != was.text or moved_by_hand else None)
        text = merge_words(was.text, now.text, disk_text)
        if text is None or (text != disk_text and text != as_single_entry(text)):
            copy_id = self._new_id()
            self.conflicting_ids += [entry_id, copy_id]
            return LineDecision(copy_id, disk_text, conflicting=_entry(entry_id, now))
        moved_by_us = line.section == was.section != now.section
        return LineDecision(entry_id, text, follow_move=moved_by_us)

    def _was_removed_on_disk(self, entry_id: str) -> bool:
        was = self._base.get(entry_id)
        return was is not None and was.text == self._current[entry_id].text


def _entry(entry_id: str, block: Block) -> Entry:
    return Entry(entry_id, block.text, block.section)


def operations_between(base_snapshot: Snapshot, current: Snapshot, merged: Snapshot) -> tuple[Operation, ...]:
    """The operations that lead from the current version to the merged document.

    An entry that is removed in the current version and edited on disk counts as edited, not as added.
    """
    base = dict(zip(base_snapshot.ids, base_snapshot.document.entries, strict=True))
    left = dict(zip(current.ids, current.document.entries, strict=True))
    last: dict[Section, str] = {}
    operations: list[Operation] = []
    for entry_id, line in zip(merged.ids, merged.document.entries, strict=True):
        now = left.pop(entry_id, None)
        if now is not line:
            before = base.get(entry_id) or now
            if before is None:
                operations.append(EntryAdded(entry_id, last.get(line.section), line.section, line.text))
            elif now is None or (now.text, now.section) != (line.text, line.section):
                operations.append(EntryEdited(entry_id, before.text, line.text, line.section))
        last[line.section] = entry_id
    operations.extend(EntryRemoved(entry_id, line.text, line.section) for entry_id, line in left.items())
    return tuple(operations)
