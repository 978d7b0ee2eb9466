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

RECALLED_SHARE: Final = 0.6  # of an answer that are lines of the memory
SHORTEST_RECALLED: Final = 24  # letters of an answer; below it every phrase is somebody's line
SHORTEST_LINE: Final = 8  # letters of a line that is looked for in an answer
REMEMBERED: Final = 16_384  # lines whose bare words are kept: a document has a few thousand

_COUNT: Final = re.compile(r"（×([1-9][0-9]{0,5})）\Z")
_COURTESY: Final = re.compile(
    r"请问|请|麻烦|帮我|给我|一下|你好|您好|吗|呢|吧|啊|呀|哦|嘛|哈|的|了|您|\b(?:please|can you|could you"
    r"|would you|the|a|an|hi|hello)\b"
)
_LABEL: Final = re.compile(r"\A[-*+] (?:用户问：|AI 答：)?")


def alike(one: str, other: str) -> bool:
    """Whether two messages say the same in the same words."""
    return likened(one) == likened(other)


def likened(text: str) -> str:
    """What messages that are `alike` have in common: their bare words, or all of one that has none."""
    return bare(text) or text


@lru_cache(maxsize=REMEMBERED)
def bare(text: str) -> str:
    """The letters and digits of a text, without words of courtesy where something else is left."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _letters(_COURTESY.sub(" ", folded)) or _letters(folded)


def gives_back(answer: str, known: Iterable[str]) -> bool:
    """Whether an answer mostly consists of lines whose `letters` are known, and is more than one phrase of old."""
    said = _letters(unicodedata.normalize("NFKC", answer).casefold())
    if len(said) < SHORTEST_RECALLED:
        return False
    covered = bytearray(len(said))
    for line in known:
        at = said.find(line) if SHORTEST_LINE <= len(line) < len(said) else -1
        if at >= 0:
            covered[at : at + len(line)] = b"\1" * len(line)
    return sum(covered) >= RECALLED_SHARE * len(said)


def parted(text: str) -> tuple[str, int]:
    """A line without its count, and the count; 1 where it has none."""
    found = _COUNT.search(text)
    return (text, 1) if found is None else (text[: found.start()], int(found[1]))


def counted(text: str, count: int) -> str:
    """A line with a count behind it; a single one is not counted."""
    return text if count < 2 else f"{text}（×{count}）"


def once_more(text: str) -> str:
    core, count = parted(text)
    return counted(core, count + 1)


@lru_cache(maxsize=REMEMBERED)
def letters(line: str) -> str:
    """The letters and digits of a line of the document, without bullet, label, count and the dots of a cut."""
    core = _LABEL.sub("", parted(line)[0]).removesuffix("...")
    return _letters(unicodedata.normalize("NFKC", core).casefold())


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isalnum())
