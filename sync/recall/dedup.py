"""Merge near duplicates among hits. Pure.

Two texts are duplicates if they have the same words, or if one is the other shortened with an ellipsis. One different
name, number or word makes them distinct. A search merges only different kinds of the same event (message, exchange,
entry), so that a text recorded twice stays visible; a context, which has little space, merges all duplicates.
"""

import re
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from sync.recall.model import Hit
from sync.recall.text.tokenizer import normalise

ELLIPSES: Final = ("...", "…")
MIN_SHORTENED_CHARS: Final = 12  # a shorter text is not recognised as a shortened one

_NOT_WORD: Final = re.compile(r"[\W_]+")


def deduplicate(hits: Iterable[Hit], *, same_kind_too: bool = False) -> list[Hit]:
    """Keep the first of several duplicates, and of the two items of an exchange; it names the others.

    `same_kind_too`: also merge duplicates of the same kind.
    """
    chosen: list[Hit] = []
    index = _ChosenHits()
    for hit in hits:
        key = _text_key(hit.item.text)
        same = next(
            (
                at
                for at in index.candidates(hit, key)
                if _is_duplicate(
                    key, index.keys[at], is_candidate=same_kind_too or hit.item.kind != chosen[at].item.kind
                )
                or _is_same_exchange(hit, chosen[at])
            ),
            None,
        )
        if same is None:
            chosen.append(hit)
            index.add(hit, key)
        elif hit.item.event_id not in (chosen[same].item.event_id, *chosen[same].duplicate_event_ids):
            duplicates = (*chosen[same].duplicate_event_ids, hit.item.event_id)
            chosen[same] = replace(chosen[same], duplicate_event_ids=duplicates)
    return chosen


class _ChosenHits:
    """The chosen hits, indexed by text and event, because comparing all pairs is slow."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, bool]] = []
        self._indexes: dict[str, list[int]] = {}
        self._shortened: list[int] = []

    def candidates(self, hit: Hit, key: tuple[str, bool]) -> list[int]:
        """The chosen hits that may be duplicates, in order; for a shortened text, all of them."""
        if key[1]:
            return list(range(len(self.keys)))
        shared = (self._indexes.get(key[0], ()), self._indexes.get(hit.item.event_id, ()), self._shortened)
        return sorted({at for positions in shared for at in positions})

    def add(self, hit: Hit, key: tuple[str, bool]) -> None:
        at = len(self.keys)
        self.keys.append(key)
        for name in (key[0], hit.item.event_id):
            self._indexes.setdefault(name, []).append(at)
        if key[1]:
            self._shortened.append(at)


def _text_key(text: str) -> tuple[str, bool]:
    """The letters and digits of a text, and whether it ends with an ellipsis."""
    return _NOT_WORD.sub("", normalise(text).lower()), text.rstrip().endswith(ELLIPSES)


def _is_duplicate(one: tuple[str, bool], other: tuple[str, bool], *, is_candidate: bool) -> bool:
    (text, is_cut), (other_text, other_is_cut) = one, other
    if not is_candidate or text == other_text:
        return is_candidate
    shorter_is_cut = is_cut if len(text) < len(other_text) else other_is_cut
    short, long = sorted((text, other_text), key=len)
    return shorter_is_cut and len(short) >= MIN_SHORTENED_CHARS and long.startswith(short)


def _is_same_exchange(hit: Hit, other: Hit) -> bool:
    return hit.item.kind == "exchange" == other.item.kind and hit.item.event_id == other.item.event_id
