"""The Chinese words that a query in pinyin may mean: huoguo is 火锅. Pure.

Texts are not indexed by their sound: the words of the general list that sound like a word of the query are asked for
beside it.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from sync.recall.text.stemming import stem
from sync.recall.text.tokenizer import normalise
from sync.recall.text.word_frequencies import chinese_words, english_stems, pinyin_readings

MAX_HOMOPHONES: Final = 6  # of one word, the most common ones
MAX_SYLLABLES: Final = 4  # of one word
MAX_WORD_CHARS: Final = 24
COMMON_ENGLISH: Final = 3e-5  # of all words; a more common one is no pinyin

_WORD: Final = re.compile(r"[a-z]+")


def pinyin_words(text: str) -> list[list[str]]:
    """For each word in pinyin of a text the Chinese words that it may be, the most common first."""
    groups = (_words_of(syllables) for syllables in _spoken(text))
    return [group for group in groups if group]


def _spoken(text: str) -> Iterator[tuple[str, ...]]:
    """The syllables of each word in pinyin; single ones in a row are a word."""
    single: tuple[str, ...] = ()
    for word in _WORD.findall(normalise(text).lower()):
        syllables = () if english_stems().get(stem(word), 0.0) > COMMON_ENGLISH else _split(word[:MAX_WORD_CHARS])
        if len(syllables) == 1:
            single += syllables
            continue
        yield single
        yield syllables
        single = ()
    yield single


@lru_cache(maxsize=256)
def _split(word: str) -> tuple[str, ...]:
    """A word as syllables, the longest first; () if it is none."""
    for end in range(min(len(word), 6), 0, -1):
        if word[:end] in pinyin_readings():
            rest = _split(word[end:])
            if rest or end == len(word):
                return (word[:end], *rest)
    return ()


def _words_of(syllables: tuple[str, ...]) -> list[str]:
    """The words with these readings; of a long run those of two syllables in it."""
    size = len(syllables) if len(syllables) <= MAX_SYLLABLES else 2
    if size < 2:
        return []
    readings = [pinyin_readings()[syllable] for syllable in syllables]
    windows = [readings[at : at + size] for at in range(len(readings) - size + 1)]
    found = {
        word: frequency
        for word, frequency in chinese_words().items()
        if len(word) == size and any(all(one in of for one, of in zip(word, window, strict=True)) for window in windows)
    }
    return sorted(found, key=lambda word: -found[word])[: MAX_HOMOPHONES * len(windows)]
