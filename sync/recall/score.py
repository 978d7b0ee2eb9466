"""How well an item's words answer a query's: BM25 over terms of three weights, and what neighbours add. Pure.

Decisions
    A term counts once in an item: what is kept is short, and the index need not hold frequencies.
    A pair of characters weighs 1, a single one a third: it finds 爬 in 爬山 and decides little. A word of Latin letters
    weighs what the pair and both characters of a Chinese word weigh together, a part of an identifier less.
    In a question of few terms an item must hold more than a single character of it: 三点 is not answered by 四点.
    An item longer than `LONGEST_RATIO` times the average is not punished further: a long message is still one message.
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from sync.recall.segment import Shape, Term

K1: Final = 1.2
B: Final = 0.75
LONGEST_RATIO: Final = 4.0
FEW: Final = 12  # terms of a question that is a search, not a message
NEIGHBOUR: Final = 0.3  # what the best neighbour in a conversation adds of its own score
SHAPES: Final[Mapping[Shape, float]] = {Shape.PAIR: 1.0, Shape.SINGLE: 0.3, Shape.WORD: 1.6, Shape.PART: 0.8}


class Match(NamedTuple):
    """An item that holds some of a query's terms. `score` 0 to 1 of what an item with all of them would have."""

    item_id: int
    score: float
    cover: float


def weights(asked: Iterable[Term]) -> dict[str, float]:
    """Each term of a query once, with what it weighs: its shape, as often as it is said."""
    return {term.text: SHAPES[term.shape] * count for term, count in reversed(Counter(asked).items())}


def rarity(holders: int, items: int) -> float:
    """The idf of a term that `holders` of `items` hold; never negative."""
    return math.log(1.0 + (items - min(holders, items) + 0.5) / (holders + 0.5))


def values(asked: Mapping[str, float], counts: Mapping[str, int], *, items: int) -> dict[str, float]:
    """What each term of a query is worth: its weight by how rare it is. `counts`: how many items hold it."""
    return {term: weight * rarity(counts.get(term, 0), items) for term, weight in asked.items()}


def gathered(worth: Mapping[str, float], holders: Mapping[str, Sequence[int]], most: int) -> dict[int, float]:
    """What the best `most` items hold of a query's worth. `holders`: the items that hold a term."""
    found: dict[int, float] = {}
    for term, item_ids in holders.items():
        value = worth[term]
        for item_id in item_ids:
            found[item_id] = found.get(item_id, 0.0) + value
    if len(worth) <= FEW and any(len(term) > 1 for term in worth):
        telling = {item_id for term, item_ids in holders.items() if len(term) > 1 for item_id in item_ids}
        found = {item_id: value for item_id, value in found.items() if item_id in telling}
    if len(found) <= most:
        return found
    least = heapq.nlargest(most, found.values())[-1]  # quicker than by pairs; of equals the newest are taken
    above = {item_id: value for item_id, value in found.items() if value > least}
    equal = sorted((item_id for item_id, value in found.items() if value == least), reverse=True)
    return above | dict.fromkeys(equal[: most - len(above)], least)


def matches(found: Mapping[int, float], lengths: Mapping[int, int], *, whole: float, mean_length: float) -> list[Match]:
    """Items with what they hold of a query that is worth `whole`: best first, the newest of equals first."""
    whole = whole or 1.0
    scored = [
        Match(item_id, value / whole * damped(lengths[item_id], mean_length), value / whole)
        for item_id, value in found.items()
        if item_id in lengths
    ]
    return sorted(scored, key=lambda match: (-match.score, -match.item_id))


def damped(length: int, mean_length: float) -> float:
    """BM25's factor of an item of this length that holds a term once; 1 at average length."""
    ratio = min(length / mean_length, LONGEST_RATIO) if mean_length else 1.0
    return (K1 + 1.0) / (1.0 + K1 * (1.0 - B + B * ratio))
