"""Which lines of several devices are one line, though each device gave it an id of its own. Pure."""

from bisect import insort
from collections import defaultdict

from sync.document.markdown.model import Section
from sync.document.shared.entry_ops import EntryOp
from sync.log.event_types import EXCHANGE_RECORDED


class EntryAliases:
    """Lines that were typed or imported before sharing and read the same in the same place on several devices."""

    def __init__(self) -> None:
        self._groups: defaultdict[tuple[Section, str], list[EntryOp]] = defaultdict(list)
        self._added_at: dict[str, tuple[Section, str]] = {}
        self._duplicate_ids: set[str] = set()  # ids that were given twice: no two lines of that id are one of another's
        self._canonical_ids: dict[str, str] = {}
        self._aliases: defaultdict[str, set[str]] = defaultdict(set)

    def canonical_id(self, entry_id: str) -> str:
        return self._canonical_ids.get(entry_id, entry_id)

    def ids_of(self, root: str) -> list[str]:
        return sorted({root, *self._aliases.get(root, ())})

    def add(self, op: EntryOp) -> set[str]:
        """Take one more addition in; the ids whose identity changed by it."""
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
        same = _match_by_rank([deed for deed in group if deed.entry_id not in self._duplicate_ids])
        changed: set[str] = set()
        for deed in group:
            entry_id = deed.entry_id
            old, root = self.canonical_id(entry_id), same.get(entry_id, entry_id)
            if old != root:
                changed |= {entry_id, old, root}
                self._aliases[old].discard(entry_id)
                self._aliases[root].add(entry_id)
                self._canonical_ids[entry_id] = root
        return changed


def _match_by_rank(group: list[EntryOp]) -> dict[str, str]:
    """For each line of equal ones the line it is: the n-th of one device is the n-th of another."""
    ranks: defaultdict[int, dict[str, EntryOp]] = defaultdict(dict)
    counts: defaultdict[str, int] = defaultdict(int)
    for deed in group:
        ranks[counts[deed.device_id]][deed.device_id] = deed
        counts[deed.device_id] += 1
    same: dict[str, str] = {}
    for alike in ranks.values():
        first = min(alike.values(), key=lambda deed: (deed.kind != EXCHANGE_RECORDED, deed.order))
        for deed in alike.values():
            same[deed.entry_id] = deed.entry_id if deed.kind == EXCHANGE_RECORDED else first.entry_id
    return same
