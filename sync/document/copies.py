"""Which lines of several devices are one line, though each device gave it an id of its own. Pure."""

from bisect import insort
from collections import defaultdict

from sync.document.capture import EXCHANGE
from sync.document.deeds import Deed
from sync.document.model import Section


class Copies:
    """Lines that were typed or imported before sharing and read the same in the same place on several devices."""

    def __init__(self) -> None:
        self._groups: defaultdict[tuple[Section, str], list[Deed]] = defaultdict(list)
        self._born: dict[str, tuple[Section, str]] = {}
        self._odd: set[str] = set()  # ids that were given twice: no two lines of that id are one of another's
        self._root: dict[str, str] = {}
        self._members: defaultdict[str, set[str]] = defaultdict(set)

    def root(self, entry_id: str) -> str:
        return self._root.get(entry_id, entry_id)

    def members(self, root: str) -> list[str]:
        return sorted({root, *self._members.get(root, ())})

    def note(self, deed: Deed) -> set[str]:
        """Take one more addition in; the ids whose identity changed by it."""
        if deed.place is None:
            return set()
        key = (deed.place.section, deed.text)
        if deed.entry_id in self._born:
            self._odd.add(deed.entry_id)
            return self._regroup(self._born[deed.entry_id])
        self._born[deed.entry_id] = key
        if deed.shared:
            return set()
        insort(self._groups[key], deed)
        return self._regroup(key)

    def _regroup(self, key: tuple[Section, str]) -> set[str]:
        group = self._groups[key]
        if len(group) < 2:
            return set()
        same = _same([deed for deed in group if deed.entry_id not in self._odd])
        changed: set[str] = set()
        for deed in group:
            entry_id = deed.entry_id
            old, root = self.root(entry_id), same.get(entry_id, entry_id)
            if old != root:
                changed |= {entry_id, old, root}
                self._members[old].discard(entry_id)
                self._members[root].add(entry_id)
                self._root[entry_id] = root
        return changed


def _same(group: list[Deed]) -> dict[str, str]:
    """For each line of equal ones the line it is: the n-th of one device is the n-th of another."""
    ranks: defaultdict[int, dict[str, Deed]] = defaultdict(dict)
    counts: defaultdict[str, int] = defaultdict(int)
    for deed in group:
        ranks[counts[deed.device]][deed.device] = deed
        counts[deed.device] += 1
    same: dict[str, str] = {}
    for alike in ranks.values():
        first = min(alike.values(), key=lambda deed: (deed.kind != EXCHANGE, deed.order))
        for deed in alike.values():
            same[deed.entry_id] = deed.entry_id if deed.kind == EXCHANGE else first.entry_id
    return same
