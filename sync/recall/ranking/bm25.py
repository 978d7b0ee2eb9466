"""Score items by a query's words: BM25 over terms with weights. Pure.

A term counts once an item. A pair of characters weighs 1, a single one 0.3: it finds 爬 in 爬山 and decides little. A
Latin word weighs as much as a Chinese word's pair and both characters. A short query's hit needs more than one
character: 四点 does not answer 三点. Items above `MAX_LENGTH_RATIO` of the average length get no further penalty.
"""

import heapq
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from sync.recall.text.tokenizer import Term, TermKind

K1: Final = 1.2
B: Final = 0.75
MAX_LENGTH_RATIO: Final = 4.0
FEW_TERMS: Final = 12  # up to so many terms, a query is a search and not a message
BEST_SENTENCE: Final = 0.4  # added for an item with all of the best sentence of a long query
LAST_SENTENCE: Final = 0.8  # and of the last one, which has its current subject
NEIGHBOUR_SHARE: Final = 0.3  # of the score of the best neighbouring turn, which is added
KIND_WEIGHTS: Final[Mapping[TermKind, float]] = {
    TermKind.PAIR: 1.0,
    TermKind.SINGLE: 0.3,
    TermKind.WORD: 1.6,
    TermKind.PART: 0.8,
}


class KeywordMatch(NamedTuple):
    """An item with some of a query's terms. `score`: 1 for an item of average length with all of them."""

    item_id: int
    score: float
    cover: float


def term_weights(terms: Iterable[Term]) -> dict[str, float]:
    """Each term of a query with its weight: by its kind, times its occurrences."""
    return {term.text: KIND_WEIGHTS[term.kind] * count for term, count in reversed(Counter(terms).items())}


def idf(item_count: int, total_items: int) -> float:
    """The inverse document frequency of a term; never negative."""
    return math.log(1.0 + (total_items - min(item_count, total_items) + 0.5) / (item_count + 0.5))


def term_values(
    weights: Mapping[str, float], document_frequencies: Mapping[str, int], *, items: int
) -> dict[str, float]:
    """The value of each term: its weight times its inverse document frequency."""
    return {term: weight * idf(document_frequencies.get(term, 0), items) for term, weight in weights.items()}


def collect_candidates(
    term_values: Mapping[str, float], items_by_term: Mapping[str, Sequence[int]], limit: int
) -> dict[int, float]:
    """The best `limit` items, with the summed values of their terms."""
    totals: dict[int, float] = {}
    for term, item_ids in items_by_term.items():
        value = term_values[term]
        for item_id in item_ids:
            totals[item_id] = totals.get(item_id, 0.0) + value
    if len(term_values) <= FEW_TERMS and any(len(term) > 1 for term in term_values):
        significant = {item_id for term, item_ids in items_by_term.items() if len(term) > 1 for item_id in item_ids}
        totals = {item_id: value for item_id, value in totals.items() if item_id in significant}
    if len(totals) <= limit:
        return totals
    least = heapq.nlargest(limit, totals.values())[-1]  # faster than comparing pairs; of equals the newest are taken
    above = {item_id: value for item_id, value in totals.items() if value > least}
    equal = sorted((item_id for item_id, value in totals.items() if value == least), reverse=True)
    return above | dict.fromkeys(equal[: limit - len(above)], least)


def score_candidates(
    candidate_values: Mapping[int, float], lengths: Mapping[int, int], *, query_value: float, mean_length: float
) -> list[KeywordMatch]:
    """Candidates as matches of a query whose terms are worth `query_value`: best first, of equals the newest."""
    query_value = query_value or 1.0
    scored = [
        KeywordMatch(
            item_id, value / query_value * length_normalisation(lengths[item_id], mean_length), value / query_value
        )
        for item_id, value in candidate_values.items()
        if item_id in lengths
    ]
    return sorted(scored, key=lambda match: (-match.score, -match.item_id))


def with_sentences(
    matches: Sequence[KeywordMatch],
    sentences: Sequence[Collection[str]],
    term_values: Mapping[str, float],
    items_by_term: Mapping[str, Sequence[int]],
) -> list[KeywordMatch]:
    """The matches with the scores of a long query's sentences, best first, of equals the newest."""
    factors = sentence_factors(sentences, term_values, items_by_term)
    raised = (match._replace(score=match.score * factors.get(match.item_id, 1.0)) for match in matches)
    return sorted(raised, key=lambda match: (-match.score, -match.item_id))


def sentence_factors(
    sentences: Sequence[Collection[str]], term_values: Mapping[str, float], items_by_term: Mapping[str, Sequence[int]]
) -> dict[int, float]:
    """How much more an item counts that answers one sentence of a long query: the best one, and the last."""
    best, last = dict[int, float](), dict[int, float]()
    for sentence in sentences:
        terms = [term for term in sentence if term in term_values]
        value, last = sum(term_values[term] for term in terms) or 1.0, {}
        for term in terms:
            for item_id in items_by_term.get(term, ()):
                last[item_id] = last.get(item_id, 0.0) + term_values[term] / value
        for item_id, share in last.items():
            best[item_id] = max(best.get(item_id, 0.0), share)
    return {
        item_id: 1.0 + BEST_SENTENCE * share + LAST_SENTENCE * last.get(item_id, 0.0) for item_id, share in best.items()
    }


def length_normalisation(length: int, mean_length: float) -> float:
    """BM25's factor for a term that occurs once in an item of this length; 1 at average length."""
    ratio = min(length / mean_length, MAX_LENGTH_RATIO) if mean_length else 1.0
    return (K1 + 1.0) / (1.0 + K1 * (1.0 - B + B * ratio))
