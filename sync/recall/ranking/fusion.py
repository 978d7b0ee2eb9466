"""Two opinions about which items answer, words and meaning, made one order. Pure.

Decisions
    Each side is brought to 0..1 before it is weighted: BM25 and cosines have no common scale. 1 is its best item, 0 an
    ordinary one (`matrix.py`) or one without any word; so being proposed by both counts.
    Of the words' side the root is taken: a long message shares few words even with what answers it, and half the best
    score is much. It raised recall@5 on the development data by .01 to .03.
    How sure the words are counts: where one item holds most of a question (`CONFIDENT_COVER`), as of a name or a
    search, words weigh up to twice (`leaning`). A message of several sentences never gets there.
    `default` was chosen on the development data in two languages; `seed000` and `seed004` are the weights that those
    documents name, with their decay and their number of hits.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from sync.recall.ranking.bm25 import KeywordMatch

DAY_MS: Final = 86_400_000
IMPORTANT_FACTOR: Final = 1.25
OUTDATED_FACTOR: Final = 0.4
CONFIDENT_COVER: Final = (0.3, 0.7)  # cover of the best item from which on words begin to count more, and count in full
PREFERRED_FACTOR: Final = 1.15  # an item of the time that a long message names


@dataclass(frozen=True, slots=True)
class Preset:
    """`decay`: what a day leaves of a score; `limit`: hits at most, None for as many as asked.

    `leaning`: by how much more words count where they are sure.
    """

    keyword: float
    semantic: float
    decay: float = 1.0
    limit: int | None = None
    keyword_boost: float = 0.0


PRESETS: Final[Mapping[str, Preset]] = {
    "default": Preset(0.5, 0.5, keyword_boost=1.0),
    "seed000": Preset(0.4, 0.6, decay=0.95),
    "seed004": Preset(0.3, 0.7, limit=2),
}


def customised_preset(name: str, *, keyword: float | None, semantic: float | None, decay: float | None) -> Preset:
    """A preset with some of its numbers replaced."""
    preset = PRESETS[name]
    return replace(
        preset,
        keyword=preset.keyword if keyword is None else keyword,
        semantic=preset.semantic if semantic is None else semantic,
        decay=preset.decay if decay is None else decay,
    )


class FusedItem(NamedTuple):
    """An item with its place in both opinions, each 0 to 1; `semantic` None where meaning was not asked."""

    item_id: int
    score: float
    keyword: float
    semantic: float | None
    cover: float


def fuse(
    keyword_matches: Sequence[KeywordMatch], semantic_scores: Mapping[int, float] | None, preset: Preset
) -> list[FusedItem]:
    """Best first; the newest of equals first. Without meaning the order of the words stands.

    `meaning`: how far items stand out, 0 for an ordinary one.
    """
    best = max((match.score for match in keyword_matches), default=0.0) or 1.0
    if semantic_scores is None:
        return [
            FusedItem(match.item_id, match.score / best, match.score / best, None, match.cover)
            for match in keyword_matches
        ]
    high = max(semantic_scores.values(), default=0.0)
    said = {match.item_id: match for match in keyword_matches}
    weight = preset.keyword * (1.0 + preset.keyword_boost * _keyword_confidence(keyword_matches))
    whole = (weight + preset.semantic) or 1.0
    found = []
    for item_id in said.keys() | semantic_scores.keys():
        match = said.get(item_id)
        keyword = math.sqrt(match.score / best) if match else 0.0
        semantic = max(semantic_scores.get(item_id, 0.0), 0.0) / high if high > 0 else 0.0
        score = (weight * keyword + preset.semantic * semantic) / whole
        found.append(FusedItem(item_id, score, keyword, semantic, match.cover if match else 0.0))
    return sorted(found, key=lambda item: (-item.score, -item.item_id))


def _keyword_confidence(keyword_matches: Sequence[KeywordMatch]) -> float:
    low, high = CONFIDENT_COVER
    cover = max((match.cover for match in keyword_matches), default=0.0)
    return min(max((cover - low) / (high - low), 0.0), 1.0)


def score_factor(*, importance: float, marks: Sequence[str], age_ms: int, preset: Preset, is_preferred: bool) -> float:
    """What importance, marks and age make of a score: 1 for an ordinary item of today."""
    judged = 0.8 + 0.4 * importance
    marked = (IMPORTANT_FACTOR if "important" in marks else 1.0) * (OUTDATED_FACTOR if "outdated" in marks else 1.0)
    days = max(age_ms, 0) // DAY_MS
    return judged * marked * preset.decay**days * (PREFERRED_FACTOR if is_preferred else 1.0)
