"""How well an item's words answer a query's: BM25 over terms of three weights, and what neighbours add. Pure.

Decisions
    A term counts once in an item: what is kept is short, and the index need not hold frequencies.
    A pair of characters weighs 1, a single one a third: it finds 爬 in 爬山 and decides little. A word of Latin letters
    weighs what the pair and both characters of a Chinese word weigh together, a part of an identifier less.
    In a question of few terms an item must hold more than a single character of it: 三点 is not answered by 四点.
    An item longer than `MAX_LENGTH_RATIO` times the average is not punished further: a long message is still one
    message.
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from sync.recall.text.tokenizer import Term, TermKind

K1: Final = 1.2
B: Final = 0.75
MAX_LENGTH_RATIO: Final = 4.0
FEW_TERMS: Final = 12  # terms of a question that is a search, not a message
NEIGHBOUR_SHARE: Final = 0.3  # what the best neighbour in a conversation adds of its own score
KIND_WEIGHTS: Final[Mapping[TermKind, float]] = {
    TermKind.PAIR: 1.0,
    TermKind.SINGLE: 0.3,
    TermKind.WORD: 1.6,
    TermKind.PART: 0.8,
}


class KeywordMatch(NamedTuple):
    """An item that holds some of a query's terms. `score` 0 to 1 of what an item with all of them would have."""

    item_id: int
    score: float
    cover: float


def term_weights(terms: Iterable[Term]) -> dict[str, float]:
    """Each term of a query once, with what it weighs: its shape, as often as it is said."""
    return {term.text: KIND_WEIGHTS[term.kind] * count for term, count in reversed(Counter(terms).items())}


def idf(item_count: int, total_items: int) -> float:
    """The idf of a term that `holders` of `items` hold; never negative."""
    return math.log(1.0 + (total_items - min(item_count, total_items) + 0.5) / (item_count + 0.5))


def term_values(
    weights: Mapping[str, float], document_frequencies: Mapping[str, int], *, items: int
) -> dict[str, float]:
    """What each term of a query is worth: its weight by how rare it is. `counts`: how many items hold it."""
    return {term: weight * idf(document_frequencies.get(term, 0), items) for term, weight in weights.items()}


def collect_candidates(
    term_values: Mapping[str, float], items_by_term: Mapping[str, Sequence[int]], limit: int
) -> dict[int, float]:
    """What the best `most` items hold of a query's worth. `holders`: the items that hold a term."""
    found: dict[int, float] = {}
    for term, item_ids in items_by_term.items():
        value = term_values[term]
        for item_id in item_ids:
            found[item_id] = found.get(item_id, 0.0) + value
    if len(term_values) <= FEW_TERMS and any(len(term) > 1 for term in term_values):
        telling = {item_id for term, item_ids in items_by_term.items() if len(term) > 1 for item_id in item_ids}
        found = {item_id: value for item_id, value in found.items() if item_id in telling}
    if len(found) <= limit:
        return found
    least = heapq.nlargest(limit, found.values())[-1]  # quicker than by pairs; of equals the newest are taken
    above = {item_id: value for item_id, value in found.items() if value > least}
    equal = sorted((item_id for item_id, value in found.items() if value == least), reverse=True)
    return above | dict.fromkeys(equal[: limit - len(above)], least)


def score_candidates(
    candidate_values: Mapping[int, float], lengths: Mapping[int, int], *, query_value: float, mean_length: float
) -> list[KeywordMatch]:
    """Items with what they hold of a query that is worth `whole`: best first, the newest of equals first."""
    query_value = query_value or 1.0
    scored = [
        KeywordMatch(
            item_id, value / query_value * length_normalisation(lengths[item_id], mean_length), value / query_value
        )
        for item_id, value in candidate_values.items()
        if item_id in lengths
    ]
    return sorted(scored, key=lambda match: (-match.score, -match.item_id))


def length_normalisation(length: int, mean_length: float) -> float:
    """BM25's factor of an item of this length that holds a term once; 1 at average length."""
    ratio = min(length / mean_length, MAX_LENGTH_RATIO) if mean_length else 1.0
    return (K1 + 1.0) / (1.0 + K1 * (1.0 - B + B * ratio))
