"""Sets of event numbers: for each replica the ranges of its numbers, both ends included. Pure.

Ranges are sorted, do not overlap and do not touch, so equal sets are equal values.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final

Range = tuple[int, int]
NumberRanges = Mapping[str, tuple[Range, ...]]

NO_NUMBERS: Final[NumberRanges] = {}


def union(left: Mapping[str, Sequence[Range]], right: Mapping[str, Sequence[Range]]) -> NumberRanges:
    """The numbers in either set."""
    return {replica: _merge([*left.get(replica, ()), *right.get(replica, ())]) for replica in {**left, **right}}


def subtract(left: NumberRanges, right: NumberRanges) -> NumberRanges:
    """The numbers in `left` that are not in `right`."""
    rest = {replica: tuple(_subtract(ranges, right.get(replica, ()))) for replica, ranges in left.items()}
    return {replica: ranges for replica, ranges in rest.items() if ranges}


def intersect(left: NumberRanges, right: NumberRanges) -> NumberRanges:
    """The numbers in both sets."""
    return subtract(left, subtract(left, right))


def count(numbers: NumberRanges) -> int:
    """How many numbers a set has."""
    return sum(last - first + 1 for ranges in numbers.values() for first, last in ranges)


def first_numbers(numbers: NumberRanges, most: int) -> NumberRanges:
    """At most the first `most` numbers of a set, replica by replica."""
    taken: dict[str, list[Range]] = {}
    for replica, ranges in sorted(numbers.items()):
        for first, last in ranges:
            if most <= 0:
                break
            end = min(last, first + most - 1)
            taken.setdefault(replica, []).append((first, end))
            most -= end - first + 1
    return {replica: tuple(ranges) for replica, ranges in taken.items()}


def contains(numbers: NumberRanges, replica: str, number: int) -> bool:
    """Whether a set has a number."""
    ranges = numbers.get(replica, ())
    at = bisect_right(ranges, number, key=itemgetter(0))
    return at > 0 and number <= ranges[at - 1][1]


def _merge(ranges: Iterable[Range]) -> tuple[Range, ...]:
    merged: list[Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def _subtract(ranges: tuple[Range, ...], holes: tuple[Range, ...]) -> Iterator[Range]:
    """Walk both in step: each is sorted."""
    at = 0
    for first, last in ranges:
        start = first
        while at < len(holes) and holes[at][1] < start:
            at += 1
        ahead = at
        while ahead < len(holes) and holes[ahead][0] <= last:
            if holes[ahead][0] > start:
                yield start, holes[ahead][0] - 1
            start = max(start, holes[ahead][1] + 1)
            ahead += 1
        if start <= last:
            yield start, last
