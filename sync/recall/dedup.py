"""Near duplicates among hits. Pure.

Two texts are one where they say the same words: equal without punctuation and case, or one the shortened other (`...`).
Texts that differ in a name, a number or any other word are two, however alike they look: a memory that is hidden
behind its likeness is lost. So is one that was recorded twice: a search folds only what is the same happening, kept
as message, exchange and line; a context, where room is short, folds all that says the same.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from sync.recall.model import Hit
from sync.recall.text.tokenizer import normalise

ELLIPSES: Final = ("...", "…")
MIN_SHORTENED_CHARS: Final = 12  # characters of a shortened text that are enough to know it by

_NOT_WORD: Final = re.compile(r"[\W_]+")


def deduplicate(hits: Iterable[Hit], *, same_kind_too: bool = False) -> list[Hit]:
    """Of several hits that say the same, and of the two lines of one exchange, the first; it names the others.

    `strictly`: also of those of one kind.
    """
    chosen: list[Hit] = []
    known = _ChosenHits()
    for hit in hits:
        key = _text_key(hit.item.text)
        twin = next(
            (
                at
                for at in known.candidates(hit, key)
                if _is_duplicate(
                    key, known.keys[at], is_candidate=same_kind_too or hit.item.kind != chosen[at].item.kind
                )
                or _is_same_exchange(hit, chosen[at])
            ),
            None,
        )
        if twin is None:
            chosen.append(hit)
            known.add(hit, key)
        elif hit.item.event_id not in (chosen[twin].item.event_id, *chosen[twin].duplicate_event_ids):
            chosen[twin] = replace(
                chosen[twin], duplicate_event_ids=(*chosen[twin].duplicate_event_ids, hit.item.event_id)
            )
    return chosen


class _ChosenHits:
    """The hits that were chosen, by what another may share with them: a comparison of all pairs is slow."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, bool]] = []
        self._indexes: dict[str, list[int]] = {}
        self._shortened: list[int] = []

    def candidates(self, hit: Hit, key: tuple[str, bool]) -> list[int]:
        """Those that may be one with a hit, the first first; a shortened text may be one with any."""
        if key[1]:
            return list(range(len(self.keys)))
        shared = (self._indexes.get(key[0], ()), self._indexes.get(hit.item.event_id, ()), self._shortened)
        return sorted({at for places in shared for at in places})

    def add(self, hit: Hit, key: tuple[str, bool]) -> None:
        at = len(self.keys)
        self.keys.append(key)
        for name in (key[0], hit.item.event_id):
            self._indexes.setdefault(name, []).append(at)
        if key[1]:
            self._shortened.append(at)


def _text_key(text: str) -> tuple[str, bool]:
    """The text without what is not said, and whether it was cut."""
    return _NOT_WORD.sub("", normalise(text).lower()), text.rstrip().endswith(ELLIPSES)


def _is_duplicate(one: tuple[str, bool], other: tuple[str, bool], *, is_candidate: bool) -> bool:
    (said, cut), (heard, other_cut) = one, other
    if not is_candidate or said == heard:
        return is_candidate
    shorter_is_cut = cut if len(said) < len(heard) else other_cut
    short, long = sorted((said, heard), key=len)
    return shorter_is_cut and len(short) >= MIN_SHORTENED_CHARS and long.startswith(short)


def _is_same_exchange(hit: Hit, other: Hit) -> bool:
    return hit.item.kind == "exchange" == other.item.kind and hit.item.event_id == other.item.event_id
