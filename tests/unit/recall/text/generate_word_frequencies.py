"""Write the word frequencies and the readings of Chinese characters beside sync/recall/text/word_frequencies.py.

`python -m tests.unit.recall.text.generate_word_frequencies`, with wordfreq, jieba and pypinyin installed: no other part
of the project needs them.
"""

import gzip
import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sync.recall.text import word_frequencies
from sync.recall.text.stemming import stem
from sync.recall.text.tokenizer import normalise

FOLDER: Final = Path(word_frequencies.__file__).parent
WORDS: Final = 30_000  # of each language


def main() -> None:
    from pypinyin import Style, pinyin  # noqa: PLC0415
    from wordfreq import get_frequency_dict, iter_wordlist  # noqa: PLC0415

    chinese: dict[str, float] = defaultdict(float)
    english: dict[str, float] = defaultdict(float)
    for language, found in (("zh", chinese), ("en", english)):
        frequencies = get_frequency_dict(language, "large")
        for word, _ in zip(iter_wordlist(language, "large"), range(WORDS), strict=False):
            folded = normalise(word).lower()
            is_chinese = all("\u4e00" <= character <= "\u9fff" for character in folded)
            if is_chinese if language == "zh" else folded.isascii() and folded.isalpha():
                found[folded if language == "zh" else stem(folded)] += frequencies[word]
        _write(f"words-{language}.txt.gz", found)
    readings: dict[str, set[str]] = defaultdict(set)
    for character in sorted({character for word in chinese for character in word}):
        for reading in pinyin(character, style=Style.NORMAL, heteronym=True, errors="ignore")[0]:
            readings[reading.replace("ü", "v")].add(character)
    lines = (f"{reading} {''.join(sorted(of))}" for reading, of in sorted(readings.items()))
    _pack("pinyin.txt.gz", "\n".join(lines))


def _write(name: str, frequencies: Mapping[str, float]) -> None:
    """A line for each frequency class, in hundredths of a decade below 1."""
    classes: dict[int, list[str]] = defaultdict(list)
    for word, frequency in frequencies.items():
        classes[round(-100 * math.log10(frequency))].append(word)
    _pack(name, "\n".join(" ".join((str(at), *sorted(classes[at]))) for at in sorted(classes)))


def _pack(name: str, text: str) -> None:
    (FOLDER / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
