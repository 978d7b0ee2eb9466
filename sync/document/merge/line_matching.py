"""Recognise which line on disk is which entry, since the file contains no ids.

Each step looks at what the steps before it left: equal lines in sequence; equal lines of one section in another order;
equal lines in another section; similar lines between the same matched neighbours. A wrong guess of the last step reads
as an edit instead of a removal and an addition; the text on disk is the same, but an erasure of one erases the other.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice
from typing import Final

from sync.document.markdown.model import Section
from sync.sequences import common_ends

SIMILARITY_THRESHOLD: Final = (
    0.5  # share of common letters and letter pairs (Dice) from which two lines are one line edited
)
MAX_LINE_SHIFT: Final = 8  # places between an edited line and its entry among the unmatched ones around it
MAX_COMPARISONS: Final = 50_000  # a file rewritten from end to end is compared for well under a second
MAX_SEQUENCE_PAIRS: Final = 200_000  # equal pairs to align; with more, lines are paired by occurrence
MAX_FEATURE_LENGTH: Final = 4_000  # characters of a line that are compared

_PREFIX: Final = re.compile(r"\s*(?:[-*+]|\d+[.)])?\s*(?:(?:用户问|AI 答|User asked|AI answered)\s*[：:])?\s*")

LocatedLine = tuple[Section, str]  # section and text of a line
_Key = Callable[[LocatedLine], Hashable]


def match_lines(
    base: Sequence[LocatedLine], lines: Sequence[LocatedLine], headings: Container[Section] = frozenset()
) -> list[int | None]:
    """For each line on disk the index of its entry in the base, None for a new line.

    `headings`: the sections on disk, with those that have no lines.
    """
    pairing = _LineMatcher(base, lines, headings)
    pairing.match_in_sequence()
    pairing.match_equal(lambda item: item)
    pairing.match_equal(lambda item: item[1])
    pairing.match_similar()
    return pairing.matches


class _LineMatcher:
    def __init__(self, base: Sequence[LocatedLine], lines: Sequence[LocatedLine], headings: Container[Section]) -> None:
        self._base = base
        self._lines = lines
        self._headings = headings
        self.matches: list[int | None] = [None] * len(lines)
        self._anchors: list[tuple[int, int]] = []  # (line, entry) matched in sequence; both grow
        self._unmatched_base = set(range(len(base)))

    def match_in_sequence(self) -> None:
        ours, disk = self._base, self._lines
        head, tail = common_ends((ours, disk))
        for at in range(head):
            self._match_anchor(at, at)
        middle, other = ours[head : len(ours) - tail], disk[head : len(disk) - tail]
        counts = Counter(other)
        if sum(counts[key] for key in middle) <= MAX_SEQUENCE_PAIRS:
            for low, at, size in SequenceMatcher(None, middle, other, autojunk=False).get_matching_blocks():
                for step in range(size):
                    self._match_anchor(head + at + step, head + low + step)
        for step in range(tail, 0, -1):
            self._match_anchor(len(disk) - step, len(ours) - step)

    def match_equal(self, key: _Key) -> None:
        waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for at in sorted(self._unmatched_base):
            waiting[key(self._base[at])].append(at)
        for line in self._unmatched_lines():
            candidates = waiting.get(key(self._lines[line]))
            if candidates:
                self._match(line, candidates.popleft())

    def match_similar(self) -> None:
        scores: list[tuple[float, int, int, int]] = []
        for line, entry, distance in islice(self._candidates(), MAX_COMPARISONS):
            score = _dice_similarity(_features(self._lines[line][1]), _features(self._base[entry][1]))
            if score >= SIMILARITY_THRESHOLD:
                scores.append((-score, distance, line, entry))
        for _, _, line, entry in sorted(scores):
            if self.matches[line] is None and entry in self._unmatched_base:
                self._match(line, entry)

    def _candidates(self) -> Iterator[tuple[int, int, int]]:
        """Line, entry and distance of all pairs that may be one edited line."""
        for lines, entries in self._gaps():
            for place, line in enumerate(lines):
                first = max(0, place - MAX_LINE_SHIFT)
                for other, entry in enumerate(entries[first : place + MAX_LINE_SHIFT + 1], start=first):
                    section = self._base[entry][0]
                    # its section still exists, so the entry was not moved by a renamed heading
                    if section == self._lines[line][0] or section not in self._headings:
                        yield line, entry, abs(place - other)

    def _gaps(self) -> list[tuple[list[int], list[int]]]:
        """Unmatched lines and entries between the same two matched neighbours."""
        gaps: list[tuple[list[int], list[int]]] = []
        last_line = last_entry = -1
        for line, entry in [*self._anchors, (len(self._lines), len(self._base))]:
            fresh = [at for at in range(last_line + 1, line) if self.matches[at] is None]
            free = [at for at in range(last_entry + 1, entry) if at in self._unmatched_base]
            if fresh and free:
                gaps.append((fresh, free))
            last_line, last_entry = line, entry
        return gaps

    def _unmatched_lines(self) -> list[int]:
        return [at for at, entry in enumerate(self.matches) if entry is None]

    def _match_anchor(self, line: int, entry: int) -> None:
        self._anchors.append((line, entry))
        self._match(line, entry)

    def _match(self, line: int, entry: int) -> None:
        self.matches[line] = entry
        self._unmatched_base.discard(entry)


@lru_cache(maxsize=4 * MAX_LINE_SHIFT)
def _features(text: str) -> frozenset[str]:
    """The letters and letter pairs of a line, without bullet and speaker."""
    said = text[:MAX_FEATURE_LENGTH]
    match = _PREFIX.match(said)
    said = said[match.end() :] if match else said
    framed = f"\x02{said}\x03"
    return frozenset(said) | {framed[at : at + 2] for at in range(len(framed) - 1)}


def _dice_similarity(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))
