"""Put what holds now before what it replaced. Pure.

Two hits that hold the same rare words of a question about the present are two answers to it (我住在北京,
我现在住在上海): the newer one comes first.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from sync.recall.model import Hit
from sync.recall.query import ParsedQuery
from sync.recall.relevance.message_signals import read_signals

STATEMENT_KINDS: Final = frozenset({"fact", "entry", "exchange", "message"})
MIN_SHARE: Final = 0.3  # of a question's rare words, which both hold
EQUAL_VALUE: Final = 0.8  # of the older one's rare words, which the newer one holds at least
NEAR_SCORE: Final = 0.6  # of the older one's score
COMPARED: Final = 10  # first hits


def present_first(hits: Sequence[Hit], query: ParsedQuery) -> list[Hit]:
    """The hits, best first, where an older answer gives its place and score to a newer one."""
    signals, ordered = read_signals(query.text), list(hits)
    if query.since_ms is not None or signals.refers_to_past or not signals.self_mentions:
        return ordered
    for at in range(min(len(ordered), COMPARED)):
        later = range(at + 1, min(len(ordered), COMPARED))
        newest = max(
            (other for other in later if _replaces(ordered[other], ordered[at])),
            key=lambda other: ordered[other].item.ts_ms,
            default=None,
        )
        if newest is not None:
            one, other = ordered[at], ordered[newest]
            ordered[at] = replace(other, score=one.score)
            ordered[newest] = replace(one, score=other.score)
    return ordered


def _replaces(newer: Hit, older: Hit) -> bool:
    return (
        newer.item.ts_ms > older.item.ts_ms
        and {newer.item.kind, older.item.kind} <= STATEMENT_KINDS
        and older.evidence.rare_share >= MIN_SHARE
        and newer.evidence.rare_value >= EQUAL_VALUE * older.evidence.rare_value
        and newer.score >= NEAR_SCORE * older.score
    )
