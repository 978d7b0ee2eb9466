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
from sync.recall.segment import fold

SHORTENED: Final = ("...", "…")
SHORTEST: Final = 12  # characters of a shortened text that are enough to know it by

_SOUND: Final = re.compile(r"[\W_]+")


def folded(hits: Iterable[Hit], *, strictly: bool = False) -> list[Hit]:
    """Of several hits that say the same, and of the two lines of one exchange, the first; it names the others.

    `strictly`: also of those of one kind.
    """
    chosen: list[Hit] = []
    known = _Known()
    for hit in hits:
        key = _key(hit.kept.text)
        twin = next(
            (
                at
                for at in known.alike(hit, key)
                if _is_one(key, known.keys[at], may_be=strictly or hit.kept.kind != chosen[at].kept.kind)
                or _is_exchange(hit, chosen[at])
            ),
            None,
        )
        if twin is None:
            chosen.append(hit)
            known.add(hit, key)
        elif hit.kept.event_id not in (chosen[twin].kept.event_id, *chosen[twin].also):
            chosen[twin] = replace(chosen[twin], also=(*chosen[twin].also, hit.kept.event_id))
    return chosen


class _Known:
    """The hits that were chosen, by what another may share with them: a comparison of all pairs is slow."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, bool]] = []
        self._places: dict[str, list[int]] = {}
        self._cut: list[int] = []

    def alike(self, hit: Hit, key: tuple[str, bool]) -> list[int]:
        """Those that may be one with a hit, the first first; a shortened text may be one with any."""
        if key[1]:
            return list(range(len(self.keys)))
        shared = (self._places.get(key[0], ()), self._places.get(hit.kept.event_id, ()), self._cut)
        return sorted({at for places in shared for at in places})

    def add(self, hit: Hit, key: tuple[str, bool]) -> None:
        at = len(self.keys)
        self.keys.append(key)
        for name in (key[0], hit.kept.event_id):
            self._places.setdefault(name, []).append(at)
        if key[1]:
            self._cut.append(at)


def _key(text: str) -> tuple[str, bool]:
    """The text without what is not said, and whether it was cut."""
    return _SOUND.sub("", fold(text).lower()), text.rstrip().endswith(SHORTENED)


def _is_one(one: tuple[str, bool], other: tuple[str, bool], *, may_be: bool) -> bool:
    (said, cut), (heard, other_cut) = one, other
    if not may_be or said == heard:
        return may_be
    shorter_is_cut = cut if len(said) < len(heard) else other_cut
    short, long = sorted((said, heard), key=len)
    return shorter_is_cut and len(short) >= SHORTEST and long.startswith(short)


def _is_exchange(hit: Hit, other: Hit) -> bool:
    return hit.kept.kind == "exchange" == other.kept.kind and hit.kept.event_id == other.kept.event_id
