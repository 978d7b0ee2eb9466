"""What says the same: two messages, a line and its counted repeats, an answer that gives memory back. Pure.

Decisions
    Alike is what differs in nothing but case, width, spaces, punctuation and words of courtesy. No measure of distance:
    打开 and 关闭 are two characters in thirty, and what is folded into another line is no longer seen by anybody.
    A count stands at the end of the question's line, as `（×3）`. It is no word of it: edits are merged without it.
    An answer gives memory back when most of it are lines of the document. An answer that is one line of old word for
    word is a phrase the model is used to, and stays.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from sync.document.markdown.repeat_suffix import split_repeat_count

RECALLED_SHARE: Final = 0.6  # of an answer that are lines of the memory
MIN_LINE_LENGTH: Final = 8  # letters of a line that is looked for in an answer
MIN_RECALLED_LENGTH: Final = 24  # letters of an answer; below it every phrase is somebody's line
CACHED_LINES: Final = 1_024  # lines whose bare words are kept

_COURTESY: Final = re.compile(
    r"请问|请|麻烦|帮我|给我|一下|你好|您好|吗|呢|吧|啊|呀|哦|嘛|哈|的|了|您|\b(?:please|can you|could you"
    r"|would you|the|a|an|hi|hello)\b"
)
_LABEL: Final = re.compile(r"\A[-*+] (?:用户问：|AI 答：)?")


def have_same_words(one: str, other: str) -> bool:
    """Whether two messages say the same in the same words."""
    return comparison_key(one) == comparison_key(other)


def comparison_key(text: str) -> str:
    """What messages that are `alike` have in common: their bare words, or all of one that has none."""
    return core_words(text) or text


@lru_cache(maxsize=CACHED_LINES)
def core_words(text: str) -> str:
    """The letters and digits of a text, without words of courtesy where something else is left."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _alphanumerics(_COURTESY.sub(" ", folded)) or _alphanumerics(folded)


def is_recalled_answer(answer: str, lines: Iterable[str]) -> bool:
    """Whether an answer mostly consists of lines whose `letters` are known, and is more than one phrase of old."""
    said = answer_letters(answer)
    if len(said) < MIN_RECALLED_LENGTH:
        return False
    covered = bytearray(len(said))
    for line in lines:
        at = said.find(line) if MIN_LINE_LENGTH <= len(line) < len(said) else -1
        if at >= 0:
            covered[at : at + len(line)] = b"\1" * len(line)
    return sum(covered) >= RECALLED_SHARE * len(said)


@lru_cache(maxsize=CACHED_LINES)
def line_letters(line: str) -> str:
    """The letters and digits of a line of the document, without bullet, label, count and the dots of a cut."""
    core = _LABEL.sub("", split_repeat_count(line)[0]).removesuffix("...")
    return _alphanumerics(unicodedata.normalize("NFKC", core).casefold())


def answer_letters(answer: str) -> str:
    return _alphanumerics(unicodedata.normalize("NFKC", answer).casefold())


def _alphanumerics(text: str) -> str:
    return "".join(char for char in text if char.isalnum())
