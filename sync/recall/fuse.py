"""Two opinions about which items answer, words and meaning, made one order. Pure.

Decisions
    Each side is brought to 0..1 among the items that either side proposes, before it is weighted: BM25 and cosines have
    no common scale, and the cosines of one model lie within a tenth of each other.
    An item that one side does not propose has that side's lowest score, so being proposed by both counts.
    `default` was chosen on the development data in two languages; `seed000` and `seed004` are the weights that those
    documents name, with their decay and their number of hits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sync.recall.score import Match

DAY_MS: Final = 86_400_000
IMPORTANT: Final = 1.25
OUTDATED: Final = 0.4
PREFERRED: Final = 1.15  # an item of the time that a long message names


@dataclass(frozen=True, slots=True)
class Preset:
    """`decay`: what a day leaves of a score; `limit`: hits at most, None for as many as asked."""

    keyword: float
    semantic: float
    decay: float = 1.0
    limit: int | None = None


PRESETS: Final[Mapping[str, Preset]] = {
    "default": Preset(0.4, 0.6),
    "seed000": Preset(0.4, 0.6, decay=0.95),
    "seed004": Preset(0.3, 0.7, limit=2),
}


def preset_of(name: str, *, keyword: float | None, semantic: float | None, decay: float | None) -> Preset:
    """A preset with some of its numbers replaced."""
    preset = PRESETS[name]
    return replace(
        preset,
        keyword=preset.keyword if keyword is None else keyword,
        semantic=preset.semantic if semantic is None else semantic,
        decay=preset.decay if decay is None else decay,
    )


@dataclass(frozen=True, slots=True)
class Fused:
    """An item with its place in both opinions, each 0 to 1; `semantic` None where meaning was not asked."""

    item_id: int
    score: float
    keyword: float
    semantic: float | None
    cover: float


def fused(words: Sequence[Match], meaning: Mapping[int, float] | None, preset: Preset) -> list[Fused]:
    """Best first; the newest of equals first. Without meaning the order of the words stands."""
    best = max((match.score for match in words), default=0.0) or 1.0
    if meaning is None:
        return [Fused(match.item_id, match.score / best, match.score / best, None, match.cover) for match in words]
    low, high = min(meaning.values(), default=0.0), max(meaning.values(), default=0.0)
    said = {match.item_id: match for match in words}
    found = []
    for item_id in said.keys() | meaning.keys():
        match = said.get(item_id)
        keyword = match.score / best if match else 0.0
        semantic = (meaning.get(item_id, low) - low) / (high - low) if high > low else 0.0
        weighed = preset.keyword * keyword + preset.semantic * semantic
        found.append(
            Fused(
                item_id,
                weighed / ((preset.keyword + preset.semantic) or 1.0),
                keyword,
                semantic,
                match.cover if match else 0,
            )
        )
    return sorted(found, key=lambda item: (-item.score, -item.item_id))


def factor(*, importance: float, marks: Sequence[str], age_ms: int, preset: Preset, preferred: bool) -> float:
    """What importance, marks and age make of a score: 1 for an ordinary item of today."""
    judged = 0.8 + 0.4 * importance
    marked = (IMPORTANT if "important" in marks else 1.0) * (OUTDATED if "outdated" in marks else 1.0)
    days = max(age_ms, 0) // DAY_MS
    return judged * marked * preset.decay**days * (PREFERRED if preferred else 1.0)
