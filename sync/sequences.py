"""Algorithms over sequences and sets."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any


def common_prefix_length(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many items two sequences of one type share at their beginning. Compares slices, which C code does."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix_length(one: Sequence[Any], other: Sequence[Any], limit: int) -> int:
    """How many items two sequences share at their end, at most `limit`."""
    low, high = 0, min(len(one), len(other), limit)
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def common_ends(*pairs: tuple[Sequence[Any], Sequence[Any]]) -> tuple[int, int]:
    """How many items a sequence and its successor share at the beginning and, of the rest, at the end.

    Several pairs are parallel sequences: a place counts if it is equal in all of them.
    """
    head = min(common_prefix_length(one, other) for one, other in pairs)
    tail = min(len(part) for pair in pairs for part in pair) - head
    for one, other in pairs:
        tail = common_suffix_length(one, other, tail)
    return head, tail


def longest_increasing_subsequence(values: Sequence[Any]) -> list[int]:
    """The indices of a longest strictly increasing subsequence (patience sorting)."""
    tails: list[Any] = []  # the lowest value in which a subsequence of each length can end, and its index
    tail_indices: list[int] = []
    previous: list[int] = []
    for index, value in enumerate(values):
        length = bisect_left(tails, value)
        previous.append(tail_indices[length - 1] if length else -1)
        tails[length : length + 1] = [value]
        tail_indices[length : length + 1] = [index]
    subsequence: list[int] = []
    index = tail_indices[-1] if tail_indices else -1
    while index >= 0:
        subsequence.append(index)
        index = previous[index]
    return subsequence[::-1]


def is_mostly_others(lines: frozenset[str], own: frozenset[str], other: frozenset[str]) -> bool:
    """Whether the other one's text has most of these lines, and ours has not (docs/decisions/008-handover.md).

    The other alone must have more of them than we alone, half of those that not both have, and a quarter of all.
    """
    theirs, of_one = len(lines & other - own), len(lines - (own & other))
    return theirs > len(lines & own - other) and 2 * theirs >= of_one and 4 * theirs >= len(lines)
