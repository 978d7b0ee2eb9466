"""Recognise lines that several devices added under different ids before they shared one document."""

from bisect import insort
from collections import defaultdict

from sync.document.markdown.model import Section
from sync.document.shared.entry_ops import EntryOp
from sync.log.event_types import EXCHANGE_RECORDED


class EntryAliases:
    """Lines typed or imported before sharing that are equal, in the same section, on several devices."""

    def __init__(self) -> None:
        self._groups: defaultdict[tuple[Section, str], list[EntryOp]] = defaultdict(list)
        self._added_at: dict[str, tuple[Section, str]] = {}
        self._duplicate_ids: set[str] = set()  # ids that were added twice; they match no line of another device
        self._canonical_ids: dict[str, str] = {}
        self._aliases: defaultdict[str, set[str]] = defaultdict(set)

    def canonical_id(self, entry_id: str) -> str:
        return self._canonical_ids.get(entry_id, entry_id)

    def ids_of(self, root: str) -> list[str]:
        return sorted({root, *self._aliases.get(root, ())})

    def add(self, op: EntryOp) -> set[str]:
        """Add an addition. Return the ids whose canonical id changes."""
        if op.position is None:
            return set()
        key = (op.position.section, op.text)
        if op.entry_id in self._added_at:
            self._duplicate_ids.add(op.entry_id)
            return self._regroup(self._added_at[op.entry_id])
        self._added_at[op.entry_id] = key
        if op.shared:
            return set()
        insort(self._groups[key], op)
        return self._regroup(key)

    def _regroup(self, key: tuple[Section, str]) -> set[str]:
        group = self._groups[key]
        if len(group) < 2:
            return set()
        same = _match_by_rank([op for op in group if op.entry_id not in self._duplicate_ids])
        changed: set[str] = set()
        for op in group:
            entry_id = op.entry_id
            old, root = self.canonical_id(entry_id), same.get(entry_id, entry_id)
            if old != root:
                changed |= {entry_id, old, root}
                self._aliases[old].discard(entry_id)
                self._aliases[root].add(entry_id)
                self._canonical_ids[entry_id] = root
        return changed


def _match_by_rank(group: list[EntryOp]) -> dict[str, str]:
    """The canonical id of each of some equal lines: the n-th of one device is the n-th of another."""
    ranks: defaultdict[int, dict[str, EntryOp]] = defaultdict(dict)
    counts: defaultdict[str, int] = defaultdict(int)
    for op in group:
        ranks[counts[op.device_id]][op.device_id] = op
        counts[op.device_id] += 1
    same: dict[str, str] = {}
    for equal in ranks.values():
        first = min(equal.values(), key=lambda op: (op.kind != EXCHANGE_RECORDED, op.order))
        for op in equal.values():
            same[op.entry_id] = op.entry_id if op.kind == EXCHANGE_RECORDED else first.entry_id
    return same
