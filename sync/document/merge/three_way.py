"""What a person did to the file, and what the file must say next: entry operations instead of text merge.

Three states meet: the base (what the editor had loaded), the current version (what we know), and the disk. What
happened between base and disk is the hand's; what happened between base and current is ours; both are kept.

Which base
    An editor that saves an old buffer has not deleted what it never saw. The label in the footer names the version
    the editor loaded; of the versions that bear it the newest counts, since a hand edit seen earlier is a version with
    the label of the one we wrote, and an editor that saves twice holds its own earlier save: a line it typed and then
    deleted must stay deleted. That holds even if undoing brings back the very bytes of an older version, so the label
    comes before the hash, which decides only for a file without one. Where the label is gone or unknown we ask what
    the file can tell: if every entry that came since some version is missing, the file descends from that version;
    the oldest such version explains it with the fewest assumptions. Otherwise it descends from the current one. This
    rule by itself would ignore a person who deletes exactly the newest lines; the label, fresh then, tells them apart.
    A label that is a time and no version's may be that of a version which damage took: the base is then no later than
    the last version before that time, so nothing that came later is taken for a removal.

How the two sides fold
    edit against removal: the edit stays, whoever made it. Edit against edit: merged by words; where they meet, the
    known line keeps its identity and the line from disk stays next to it as an entry of its own, both flagged.
    The same line added on both sides is one entry. A line the hand moved to another section while we removed it
    stays; one that merely went along with a renamed heading goes. Where a line stands, and headings, are the disk's
    unless only we changed them.

With the base current the merged document is the disk, byte for byte.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

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
)  # what the end of a whole file is known by
MASS_REMOVAL_ENTRIES: Final = 5  # a person removes a few lines at a time; fewer than these is daily work
MASS_REMOVAL_SHARE: Final = 0.5  # and a file that keeps half of its lines was tidied, not lost


def choose_base(disk: MemoryDocument, versions: Sequence[Version]) -> Version | None:
    """The version the file on disk descends from; `ring` runs from oldest to newest. None only for an empty ring."""
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
    """The oldest version of which the file lacks everything that came since; the newest where there is none such.

    `distinctive`: what reads like a line of that version tells nothing, since many answers read alike. Finds more stale
    texts, and takes a text that was cut off for one: nothing is removed then.
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
    """Whether the file looks lost rather than edited: emptied, mostly shrunk, or cut off.

    Give the `base` from `choose_base` where it is known: a stale buffer lacks what it never saw, and that is no loss.
    And the versions `written` that the file may have been: one that was cut off has no label to tell which.
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
    """Whether `disk` is the beginning of what was seen, and what is missing is more than the footer."""
    if base.label is None or disk.label is not None or not base.text.startswith(disk.text):
        return False
    whole = [entry.text for entry in base.entries]
    return [entry.text for entry in disk.entries] != whole


def may_be_incomplete(base: MemoryDocument, disk: MemoryDocument) -> bool:
    """Whether a writer that empties the file and fills it again may not have come to its end: the footer is gone.

    A person may have deleted it; only time tells the two apart.
    """
    return disk.is_blank or (base.label is not None and disk.label is None)


def lacks_end(base: MemoryDocument, disk: MemoryDocument) -> bool:
    """Whether the footer is gone and the end of the file is cut off, whatever changed above it.

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
    """The hand's operations and the merged document. `new_id` gives a fresh id for each line not seen before."""
    origin = base.snapshot if base else Snapshot(MemoryDocument())
    known = current.snapshot if current else origin
    fold = _ThreeWayMerge(origin, known, disk, new_id)
    verdicts = [fold.decide(line) for line in fold.identify_lines()]
    observed = Snapshot(disk, tuple(verdict.entry_id for verdict in verdicts))
    draft = apply_changes(observed, verdicts, fold.entries_to_insert(verdicts), known)
    apply_heading_changes(draft, origin, known)
    merged = draft.to_snapshot()
    return MergePlan(_operations(origin, known, merged), merged, tuple(fold.conflicting_ids), observed)


@dataclass(frozen=True, slots=True)
class _DiskLine:
    """An entry on disk, what it was in the base, and the id it goes by."""

    entry_id: str
    block: Block
    base_entry: Entry | None


class _ThreeWayMerge:
    """The rules of folding, line by line."""

    def __init__(self, base: Snapshot, current: Snapshot, disk: MemoryDocument, new_id: Callable[[], str]) -> None:
        self._base = {entry.entry_id: entry for entry in base.entries}
        self._current = {entry.entry_id: entry for entry in current.entries}
        self._lines = disk.entries
        self._sections = {block.section for block in disk.blocks if block.kind is BlockKind.HEADING} | {()}
        self._new_id = new_id
        self.conflicting_ids: list[str] = []

    def identify_lines(self) -> list[_DiskLine]:
        """Every entry on disk with an id: the one it had, the one of the same line added by us, or a new one."""
        entries = tuple(self._base.values())
        found = match_lines(
            [(entry.section, entry.text) for entry in entries],
            [(line.section, line.text) for line in self._lines],
            self._sections,
        )
        taken = {entries[at].entry_id for at in found if at is not None}
        ours: defaultdict[LocatedLine, deque[str]] = defaultdict(deque)
        for entry in self._current.values():
            if entry.entry_id not in taken:
                ours[entry.section, entry.text].append(entry.entry_id)
        lines: list[_DiskLine] = []
        for block, at in zip(self._lines, found, strict=True):
            if at is not None:
                lines.append(_DiskLine(entries[at].entry_id, block, entries[at]))
                continue
            same = ours.get((block.section, block.text))
            lines.append(_DiskLine(same.popleft() if same else self._new_id(), block, None))
        return lines

    def decide(self, line: _DiskLine) -> LineDecision:
        """What becomes of a line on disk."""
        said, was, now = line.block.text, line.base_entry, self._current.get(line.entry_id)
        if was is None:
            return LineDecision(line.entry_id, said)
        if now is None:
            moved_by_hand = line.block.section != was.section and was.section in self._sections
            return LineDecision(line.entry_id, said if said != was.text or moved_by_hand else None)
        text = merge_words(was.text, now.text, said)
        if text is None or (text != said and text != as_single_entry(text)):
            twin = self._new_id()
            self.conflicting_ids += [line.entry_id, twin]
            return LineDecision(twin, said, conflicting=now)
        regroup = line.block.section == was.section != now.section
        return LineDecision(line.entry_id, text, follow_move=regroup)

    def entries_to_insert(self, decisions: Sequence[LineDecision]) -> list[Entry]:
        """Our entries that are not on disk and belong there: ours are new to the hand, or edited since it saw them."""
        present = {verdict.entry_id for verdict in decisions}
        present |= {verdict.conflicting.entry_id for verdict in decisions if verdict.conflicting}
        lacking = [entry for entry in self._current.values() if entry.entry_id not in present]
        return [entry for entry in lacking if not self._was_removed_on_disk(entry)]

    def _was_removed_on_disk(self, entry: Entry) -> bool:
        was = self._base.get(entry.entry_id)
        return was is not None and was.text == entry.text


def _operations(base_snapshot: Snapshot, current: Snapshot, merged: Snapshot) -> tuple[Operation, ...]:
    """What leads from what we know to the merged document: exactly what the hand did, whatever the fold decided.

    An entry that we had removed and the hand edited is an edit, since it never was a new one.
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
