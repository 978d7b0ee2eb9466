"""One hit for a conversation that was kept in several ways: as exchange, as messages, as daily record. Pure.

Several exchanges of one session stay several hits, because they say different things; so does a daily record that has
hardly a word in common with them, because the session of a process has several conversations.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from sync.recall.index.extraction import DAILY_RECORD, TURN_KINDS
from sync.recall.model import Hit, TalkPart
from sync.recall.text.tokenizer import index_terms

KINDS: Final = TURN_KINDS | {DAILY_RECORD}
MIN_COMMON: Final = 0.3  # of the shorter text's terms


def group_conversations(hits: Sequence[Hit]) -> list[Hit]:
    """The hits, best first; one of another kind of the same session becomes a part of the better one."""
    grouped: list[Hit] = []
    places: dict[tuple[str, str], list[int]] = {}
    for hit in hits:
        item = hit.item
        key = (item.session_id, item.date)
        place = next((at for at in places.get(key, ()) if _is_other_kind(hit, grouped[at])), None)
        if item.kind not in KINDS or place is None:
            if item.kind in KINDS:
                places.setdefault(key, []).append(len(grouped))
            grouped.append(hit)
            continue
        part = TalkPart(item.event_id, item.kind, item.text)
        grouped[place] = replace(grouped[place], talk_parts=(*grouped[place].talk_parts, part))
    return grouped


def _is_other_kind(hit: Hit, best: Hit) -> bool:
    """Whether a hit is its conversation as a kind that it does not have yet. One of the two is the daily record."""
    kinds = {best.item.kind, *(part.kind for part in best.talk_parts)}
    if hit.item.kind in kinds or DAILY_RECORD not in {hit.item.kind, *kinds}:
        return False
    one, other = _terms(hit.item.text), _terms(best.item.text)
    return len(one & other) >= MIN_COMMON * min(len(one), len(other))


def _terms(text: str) -> set[str]:
    return {term for term in index_terms(text) if len(term) > 1}
