"""How common words are in Chinese and English texts in general, by the lists of wordfreq.

`words-LICENCE.md` names their source and licence; tests/unit/recall/text/generate_word_frequencies.py makes them.
"""

import gzip
import math
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final

RAREST: Final = 1e-7  # of a word that is in no list
LONGEST: Final = 4  # characters of a Chinese word


@cache
def chinese_words() -> dict[str, float]:
    """The share of each common Chinese word among all words."""
    return _frequencies("words-zh.txt.gz")


@cache
def english_stems() -> dict[str, float]:
    """The share of the words of each common English stem among all words."""
    return _frequencies("words-en.txt.gz")


@cache
def pinyin_readings() -> dict[str, frozenset[str]]:
    """The characters of each syllable, without tones."""
    lines = (line.split(" ") for line in _read("pinyin.txt.gz").splitlines())
    return {syllable: frozenset(characters) for syllable, characters in lines}


def chinese_segments(run: str) -> Iterator[str]:
    """The most probable words of a run of Chinese characters; what is in no list is cut into its characters."""
    words, best = chinese_words(), [(0.0, 0)]
    for end in range(1, len(run) + 1):
        starts = range(max(0, end - LONGEST), end)
        costs = (
            (best[at][0] - math.log(words.get(run[at:end], RAREST)), at)
            for at in starts
            if at == end - 1 or run[at:end] in words
        )
        best.append(min(costs))
    cuts, end = [], len(run)
    while end:
        cuts.append((best[end][1], end))
        end = best[end][1]
    return (run[start:end] for start, end in reversed(cuts))


def _frequencies(name: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in _read(name).splitlines():
        share, *words = line.split(" ")
        found |= dict.fromkeys(words, 10 ** (-int(share) / 100))
    return found


def _read(name: str) -> str:
    return gzip.decompress(files(__package__).joinpath(name).read_bytes()).decode()
