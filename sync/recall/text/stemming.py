"""Stop words of English and Chinese, and English stems. Pure.

Queries drop stop words, the index keeps them: a query of stop words alone still finds something.
In Chinese they also cut a run of characters into words, so that no pair of characters spans two words.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

MIN_STEMMED_CHARS: Final = 4
MAX_CACHED_STEMS: Final = 16_384


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


_ENGLISH, _PHRASES, _PARTICLES = _read("stop-words.txt").strip().split("\n\n")
ENGLISH_STOP_WORDS: Final = frozenset(_ENGLISH.split())
CHINESE_STOP_WORDS: Final = re.compile("|".join((*sorted(_PHRASES.split(), key=len, reverse=True), f"[{_PARTICLES}]")))

_IRREGULAR: Final = {  # forms that no suffix rule of a stemmer reaches
    form: stem
    for stem, forms in (line.split(":") for line in _read("irregular-forms.txt").splitlines())
    for form in forms.split()
}


@lru_cache(maxsize=MAX_CACHED_STEMS)
def stem(word: str) -> str:
    """The form under which the index keeps a lower-case Latin word. A word with digits or marks stays as it is."""
    word = _IRREGULAR.get(word, word)
    if len(word) < MIN_STEMMED_CHARS or not (word.isascii() and word.isalpha()):
        return word
    stemmed: str = _stemmer()(word)
    return stemmed


@cache
def _stemmer() -> Callable[[str], Any]:
    from snowballstemmer.english_stemmer import EnglishStemmer  # noqa: PLC0415  # imports all languages, 10 ms

    return lambda word: EnglishStemmer().stemWord(word)  # one for each word: it has state, and threads share this
