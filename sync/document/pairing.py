"""Which line on disk is which entry: the file carries no ids, so lines are recognised.

In this order, each step over what the steps before left: equal lines in sequence; equal lines of one section that
changed places; equal lines that moved to another section; similar lines between the same recognised neighbours. The
rest was added or removed. A wrong guess of the last step does little harm: an entry removed and another typed in its
place reads as one edit, and the text on disk is the same either way; but who forgets the one then forgets the other.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice
from typing import Final

from sync.document.model import Section

SIMILAR: Final = 0.5  # share of common letters and letter pairs (Dice) from which two lines are one line edited
NEIGHBOURHOOD: Final = 8  # places by which an edited line may be off among the unrecognised ones around it
COMPARISONS_LIMIT: Final = 50_000  # a file rewritten from end to end is compared for well under a second
SEQUENCE_LIMIT: Final = 200_000  # equal pairs that alignment by sequence may weigh; beyond it, by occurrence
FEATURE_LENGTH: Final = 4_000  # characters of a line that decide about similarity

_PREFIX: Final = re.compile(r"\s*(?:[-*+]|\d+[.)])?\s*(?:(?:用户问|AI 答)\s*[：:])?\s*")

Item = tuple[Section, str]  # where a line stands and what it says
_Key = Callable[[Item], Hashable]


def pair(base: Sequence[Item], lines: Sequence[Item], headings: Container[Section] = frozenset()) -> list[int | None]:
    """For each line on disk the index of the base entry it is, None for a new one.

    `headings`: the sections on disk, those without a line among them.
    """
    pairing = _Pairing(base, lines, headings)
    pairing.in_sequence()
    pairing.by_occurrence(lambda item: item)
    pairing.by_occurrence(lambda item: item[1])
    pairing.by_similarity()
    return pairing.found


class _Pairing:
    def __init__(self, base: Sequence[Item], lines: Sequence[Item], headings: Container[Section]) -> None:
        self._base = base
        self._lines = lines
        self._headings = headings
        self.found: list[int | None] = [None] * len(lines)
        self._anchors: list[tuple[int, int]] = []  # (line, entry) recognised in sequence; both grow
        self._free = set(range(len(base)))

    def in_sequence(self) -> None:
        ours, disk = self._base, self._lines
        head = _common(ours, disk)
        tail = _common(ours[head:][::-1], disk[head:][::-1])
        for at in range(head):
            self._anchor(at, at)
        middle, other = ours[head : len(ours) - tail], disk[head : len(disk) - tail]
        counts = Counter(other)
        if sum(counts[key] for key in middle) <= SEQUENCE_LIMIT:
            for low, at, size in SequenceMatcher(None, middle, other, autojunk=False).get_matching_blocks():
                for step in range(size):
                    self._anchor(head + at + step, head + low + step)
        for step in range(tail, 0, -1):
            self._anchor(len(disk) - step, len(ours) - step)

    def by_occurrence(self, key: _Key) -> None:
        waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for at in sorted(self._free):
            waiting[key(self._base[at])].append(at)
        for line in self._new_lines():
            candidates = waiting.get(key(self._lines[line]))
            if candidates:
                self._match(line, candidates.popleft())

    def by_similarity(self) -> None:
        scores: list[tuple[float, int, int, int]] = []
        for line, entry, distance in islice(self._neighbours(), COMPARISONS_LIMIT):
            score = _similarity(_features(self._lines[line][1]), _features(self._base[entry][1]))
            if score >= SIMILAR:
                scores.append((-score, distance, line, entry))
        for _, _, line, entry in sorted(scores):
            if self.found[line] is None and entry in self._free:
                self._match(line, entry)

    def _neighbours(self) -> Iterator[tuple[int, int, int]]:
        """Line, entry and how many places apart, for all that may be one line edited."""
        for lines, entries in self._gaps():
            for place, line in enumerate(lines):
                first = max(0, place - NEIGHBOURHOOD)
                for other, entry in enumerate(entries[first : place + NEIGHBOURHOOD + 1], start=first):
                    section = self._base[entry][0]
                    # an entry whose section is still there did not come along with a renamed heading
                    if section == self._lines[line][0] or section not in self._headings:
                        yield line, entry, abs(place - other)

    def _gaps(self) -> list[tuple[list[int], list[int]]]:
        """Unrecognised lines and entries that stand between the same two recognised neighbours."""
        gaps: list[tuple[list[int], list[int]]] = []
        last_line = last_entry = -1
        for line, entry in [*self._anchors, (len(self._lines), len(self._base))]:
            fresh = [at for at in range(last_line + 1, line) if self.found[at] is None]
            free = [at for at in range(last_entry + 1, entry) if at in self._free]
            if fresh and free:
                gaps.append((fresh, free))
            last_line, last_entry = line, entry
        return gaps

    def _new_lines(self) -> list[int]:
        return [at for at, entry in enumerate(self.found) if entry is None]

    def _anchor(self, line: int, entry: int) -> None:
        self._anchors.append((line, entry))
        self._match(line, entry)

    def _match(self, line: int, entry: int) -> None:
        self.found[line] = entry
        self._free.discard(entry)


def _common(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """How many items two sequences share at their beginning."""
    count = 0
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            break
        count += 1
    return count


@lru_cache(maxsize=4 * NEIGHBOURHOOD)
def _features(text: str) -> frozenset[str]:
    """Letters and pairs of neighbouring letters of what a line says, its bullet and speaker left out."""
    said = text[:FEATURE_LENGTH]
    match = _PREFIX.match(said)
    said = said[match.end() :] if match else said
    framed = f"\x02{said}\x03"
    return frozenset(said) | {framed[at : at + 2] for at in range(len(framed) - 1)}


def _similarity(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))
