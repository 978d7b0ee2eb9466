"""How many items hold each term of a question; of the common ones it is remembered. Pure.

Decisions
    To count the common terms is what a question by words spends most of its time on, and they are the same ones again
    and again. What is known of them is an estimate (`store.count`), so it may stand until the index has grown or
    shrunk by a sixty-fourth: that moves an idf by less than the estimate may be wrong by.
    Rare terms are counted for every question: there, one item more is much.
"""

from collections.abc import Callable, Iterable
from typing import Final

COMMON_TERM_ITEMS: Final = 800  # holders of a term up to which they are counted one by one
GROWTH_DIVISOR: Final = 64  # a change of the index by this part of it is one
MAX_CACHED_TERMS: Final = 4_096  # terms


class DocumentFrequencyCache:
    """For one index; it is asked on one thread."""

    def __init__(self) -> None:
        self._cached: dict[str, int] = {}
        self._cached_at_items = 0

    def lookup(self, terms: Iterable[str], items: int, count_items: Callable[[str], int]) -> dict[str, int]:
        """About how many of the index's `items` hold each term; `count` says so, exactly for rare ones."""
        if (
            abs(items - self._cached_at_items) * GROWTH_DIVISOR > self._cached_at_items
            or len(self._cached) > MAX_CACHED_TERMS
        ):
            self._cached, self._cached_at_items = {}, items
        found: dict[str, int] = {}
        for term in terms:
            known = self._cached.get(term)
            found[term] = count_items(term) if known is None else known
            if found[term] >= COMMON_TERM_ITEMS:
                self._cached[term] = found[term]
        return found
