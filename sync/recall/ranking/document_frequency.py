"""Document frequencies of a query's terms, cached for common terms. Pure.

Counting common terms is most of a search's work. Their count is an estimate, so it stays valid until the index has
changed by 1/64, which changes an idf by less than the estimate's error. Rare terms are always counted.
"""

from collections.abc import Callable, Iterable
from typing import Final

COMMON_TERM_ITEMS: Final = 800  # from so many items on, a term's count is estimated
GROWTH_DIVISOR: Final = 64
MAX_CACHED_TERMS: Final = 4_096


class DocumentFrequencyCache:
    """The cache of one index, for one thread."""

    def __init__(self) -> None:
        self._cached: dict[str, int] = {}
        self._cached_at_items = 0

    def lookup(self, terms: Iterable[str], items: int, count_items: Callable[[str], int]) -> dict[str, int]:
        """The number of items with each term, of `items` in the index; exact for rare terms."""
        if (
            abs(items - self._cached_at_items) * GROWTH_DIVISOR > self._cached_at_items
            or len(self._cached) > MAX_CACHED_TERMS
        ):
            self._cached, self._cached_at_items = {}, items
        counts: dict[str, int] = {}
        for term in terms:
            cached = self._cached.get(term)
            counts[term] = count_items(term) if cached is None else cached
            if counts[term] >= COMMON_TERM_ITEMS:
                self._cached[term] = counts[term]
        return counts
