"""Make hits of ranked items: their texts, scores, relevance and neighbours."""

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sync.db.engine import Transaction
from sync.recall.dedup import deduplicate
from sync.recall.index import store
from sync.recall.model import Hit, ScoreParts, StoredItem
from sync.recall.query import ParsedQuery, matches_phrases
from sync.recall.ranking.conversations import group_conversations
from sync.recall.ranking.fusion import FusedItem, Preset, score_factor
from sync.recall.relevance.calibration import gather_evidence, load_calibration, rare_weights
from sync.recall.relevance.message_signals import read_signals
from sync.recall.semantic.embedder import ModelPart
from sync.recall.semantic.embedding_worker import model_parts

if TYPE_CHECKING:
    from sync.recall.semantic.vector_index import VectorQuery

MAX_RANKED_ITEMS: Final = 120  # candidates whose text is read


def with_relevance(
    hits: Sequence[Hit], query: ParsedQuery, vector_query: "VectorQuery | None", model: str
) -> list[Hit]:
    """The hits with their absolute relevance."""
    calibration, signals = load_calibration(), read_signals(query.text)
    rare = rare_weights(query.text)
    parts = [ModelPart(*part) for part in model_parts(model)]
    cosines = {} if vector_query is None else vector_query.cosines_of([hit.item.item_id for hit in hits], parts)
    weighed = []
    for hit in hits:
        evidence = gather_evidence(rare, hit.item.text, cosines.get(hit.item.item_id, {}))
        relevance, threshold = calibration.relevance(signals, evidence), calibration.threshold(signals, evidence)
        weighed.append(replace(hit, relevance=relevance, threshold=threshold, evidence=evidence))
    return weighed


def rank_hits(
    connection: Transaction, ranked: Sequence[FusedItem], query: ParsedQuery, preset: Preset, *, limit: int, now_ms: int
) -> list[Hit]:
    """The best items as hits, best first; those with the quoted phrases before the others."""
    first = ranked[: max(MAX_RANKED_ITEMS, limit * 3)]
    loaded = {item.item_id: item for item in store.load_items(connection, [item.item_id for item in first])}
    hits = [_score_hit(item, loaded[item.item_id], query, preset, now_ms) for item in first if item.item_id in loaded]
    hits.sort(key=lambda hit: (not matches_phrases(hit.item.text, query.phrases), -hit.score, -hit.item.item_id))
    return add_neighbours(connection, group_conversations(deduplicate(hits))[:limit])


def add_neighbours(connection: Transaction, hits: list[Hit]) -> list[Hit]:
    """Add the turns before and after each hit, such as the question to an answer."""
    near = store.neighbouring_turns(connection, [hit.item.item_id for hit in hits])
    texts = store.item_texts(connection, [item_id for beside in near.values() for item_id in beside])
    return [
        replace(hit, neighbour_texts=tuple(texts[at] for at in near.get(hit.item.item_id, ()) if at in texts))
        for hit in hits
    ]


def _score_hit(fused_item: FusedItem, stored_item: StoredItem, query: ParsedQuery, preset: Preset, now_ms: int) -> Hit:
    preferred = (
        query.is_preference
        and query.since_ms is not None
        and query.since_ms <= stored_item.ts_ms < (inf if query.until_ms is None else query.until_ms)
    )
    times = score_factor(
        importance=stored_item.importance,
        marks=stored_item.marks,
        age_ms=now_ms - stored_item.ts_ms,
        preset=preset,
        is_preferred=preferred,
    )
    return Hit(
        stored_item,
        fused_item.score * times,
        ScoreParts(fused_item.keyword, fused_item.semantic, fused_item.cover, times),
    )
