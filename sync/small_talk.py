"""Whether a message is small talk, by one list for the document and for recall. Pure.

`small_talk.txt` has the Chinese pieces of such messages, an empty line, and the English words.
"""

import re
import unicodedata
from functools import cache
from importlib.resources import files
from typing import Final

MAX_CHARS: Final = 80  # a longer message has a subject

_MARKS: Final = re.compile(r"[\W_]+")
_LATIN_WORD: Final = re.compile(r"[a-z']+")


def is_small_talk(message: str) -> bool:
    """Whether a message has no subject: greetings, thanks, reactions, short commands; also marks and numbers alone."""
    text = message.strip()
    if not 0 < len(text) <= MAX_CHARS:
        return False
    folded = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    chinese, english = _lists()
    words = _LATIN_WORD.findall(folded)
    rest = _MARKS.sub("", _LATIN_WORD.sub("", re.sub(r"\d+", "", folded)))
    is_social = all(word.partition("'")[0] in english for word in words)
    return is_social and chinese.fullmatch(rest) is not None and not _is_number_task(folded)


def _is_number_task(folded: str) -> bool:
    """Whether digits are the subject: a calculation or a number of several digits."""
    return len(re.findall(r"\d", folded)) > 3 or re.search(r"\d\s*[-+*/^×÷=%]", folded) is not None


@cache
def _lists() -> tuple[re.Pattern[str], frozenset[str]]:
    chinese, english = files(__package__).joinpath("small_talk.txt").read_text("utf-8").split("\n\n")
    pieces = sorted(set(chinese.split()), key=len, reverse=True)
    return re.compile(f"(?:{'|'.join(map(re.escape, pieces))})*"), frozenset(english.split())
