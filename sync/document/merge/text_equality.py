"""Recognise the same message said again, and an answer that only gives memory back.

Texts are the same if they differ only in case, width, spaces, punctuation and words of courtesy. There is no measure of
distance: 打开 and 关闭 differ by two characters of thirty, and a line that is counted as another is no longer visible.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from sync.document.markdown.repeat_suffix import split_repeat_count

RECALLED_SHARE: Final = 0.6  # of the letters of an answer that are lines of the memory
MIN_LINE_LENGTH: Final = 8  # letters; shorter lines are not looked for in an answer
MIN_RECALLED_LENGTH: Final = 24  # letters of an answer; shorter phrases are common
CACHED_LINES: Final = 1_024  # results

_COURTESY: Final = re.compile(
    r"请问|请|麻烦|帮我|给我|一下|你好|您好|吗|呢|吧|啊|呀|哦|嘛|哈|的|了|您|\b(?:please|can you|could you"
    r"|would you|the|a|an|hi|hello)\b"
)
_LABEL: Final = re.compile(r"\A[-*+] (?:用户问：|AI 答：|User asked: ?|AI answered: ?)?")


def have_same_words(one: str, other: str) -> bool:
    """Whether two messages have the same words."""
    return comparison_key(one) == comparison_key(other)


def comparison_key(text: str) -> str:
    """The words by which messages are compared, or the whole message if it has none."""
    return core_words(text) or text


@lru_cache(maxsize=CACHED_LINES)
def core_words(text: str) -> str:
    """The letters and digits of a text, without words of courtesy unless nothing else is left."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _alphanumerics(_COURTESY.sub(" ", folded)) or _alphanumerics(folded)


def is_recalled_answer(answer: str, lines: Iterable[str]) -> bool:
    """Whether most of an answer is lines of the document (`line_letters`).

    An answer that equals one line is a phrase that the model often uses, and does not count.
    """
    letters = answer_letters(answer)
    if len(letters) < MIN_RECALLED_LENGTH:
        return False
    covered = bytearray(len(letters))
    for line in lines:
        at = letters.find(line) if MIN_LINE_LENGTH <= len(line) < len(letters) else -1
        if at >= 0:
            covered[at : at + len(line)] = b"\1" * len(line)
    return sum(covered) >= RECALLED_SHARE * len(letters)


def is_echo(sentence: str, lines: Iterable[str]) -> bool:
    """Whether most of a sentence is one line of the memory (`line_letters`)."""
    letters = answer_letters(sentence)
    return any(
        len(line) >= MIN_LINE_LENGTH and line in letters and len(line) >= RECALLED_SHARE * len(letters)
        for line in lines
    )


@lru_cache(maxsize=CACHED_LINES)
def line_letters(line: str) -> str:
    """The letters and digits of a line of the document, without bullet, speaker, count and trailing dots."""
    core = _LABEL.sub("", split_repeat_count(line)[0]).removesuffix("...")
    return _alphanumerics(unicodedata.normalize("NFKC", core).casefold())


def answer_letters(answer: str) -> str:
    return _alphanumerics(unicodedata.normalize("NFKC", answer).casefold())


def _alphanumerics(text: str) -> str:
    return "".join(char for char in text if char.isalnum())
