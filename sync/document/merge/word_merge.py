"""Merge two edits of one line by words.

A word is a run of Latin letters and digits, or one other character, so Chinese merges by character. Changes that touch
conflict even if they do not overlap: from 红茶, the edits 绿茶 and 红酒 would make 绿酒, which no one wrote. A side
that replaced most of the line conflicts too. In a conflict both lines stay (`three_way`).
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

import msgspec

from sync.document.markdown.repeat_suffix import split_repeat_count, with_repeat_count

MAX_WORDS: Final = 2_000  # words in one line; comparing costs their square, and no message is that long
REWRITE_SHARE: Final = 0.5  # share of the base's words; a side that removes more rewrote the line

_WORD: Final = re.compile(r"[0-9A-Za-z_\u00c0-\u024f]+|\s+|.", re.DOTALL)


class _WordChange(msgspec.Struct, frozen=True):
    """The words of the base from `low` to before `high` became `words`."""

    low: int
    high: int
    words: tuple[str, ...]


def merge_words(base: str, ours: str, theirs: str) -> str | None:
    """The line with both edits, None if they conflict. A repeat count is merged apart from the words.

    `ours` is the program's current line and `theirs` the line on disk.
    """
    if theirs in {ours, base}:
        return ours
    if ours == base:
        return theirs
    (base, before), (ours, here), (theirs, there) = (
        split_repeat_count(base),
        split_repeat_count(ours),
        split_repeat_count(theirs),
    )
    merged = _merge_texts(base, ours, theirs)
    return None if merged is None else with_repeat_count(merged, here if there == before else max(here, there))


def _merge_texts(base: str, ours: str, theirs: str) -> str | None:
    if theirs in {ours, base}:
        return ours
    if ours == base:
        return theirs
    words, here, there = _words(base), _words(ours), _words(theirs)
    if max(len(words), len(here), len(there)) > MAX_WORDS:
        return None
    mine, yours = _changes(words, here), _changes(words, there)
    if _is_rewrite(words, mine) or _is_rewrite(words, yours):
        return None
    if any(_do_conflict(one, other) for one in mine for other in yours if one != other):
        return None
    return _apply(words, sorted({*mine, *yours}, key=lambda change: (change.low, change.high)))


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _changes(base: Sequence[str], edited: Sequence[str]) -> list[_WordChange]:
    codes = SequenceMatcher(None, base, edited, autojunk=False).get_opcodes()
    return [_WordChange(low, high, tuple(edited[at:end])) for tag, low, high, at, end in codes if tag != "equal"]


def _is_rewrite(base: Sequence[str], changes: Sequence[_WordChange]) -> bool:
    return sum(change.high - change.low for change in changes) > REWRITE_SHARE * len(base)


def _do_conflict(one: _WordChange, other: _WordChange) -> bool:
    return one.low <= other.high and other.low <= one.high


def _apply(base: Sequence[str], changes: Sequence[_WordChange]) -> str:
    parts: list[str] = []
    at = 0
    for change in changes:
        parts.extend(base[at : change.low])
        parts.extend(change.words)
        at = change.high
    return "".join((*parts, *base[at:]))
