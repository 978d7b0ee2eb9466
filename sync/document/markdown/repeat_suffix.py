"""The repeat count at the end of a line: ``（×3）``, in English `` (×3)``. It is not part of the line's text."""

import re
from typing import Final

from sync.document.markdown.words import WORDS
from sync.texts.language import EN, ZH, Language

_REPEAT_COUNT: Final = re.compile(r"(?:（×([1-9][0-9]{0,5})）| \(×([1-9][0-9]{0,5})\))\Z")


def split_repeat_count(text: str) -> tuple[str, int]:
    """A line without its count, and the count; 1 if it has none."""
    match = _REPEAT_COUNT.search(text)
    return (text, 1) if match is None else (text[: match.start()], int(match[1] or match[2]))


def with_repeat_count(text: str, count: int, language: Language = ZH) -> str:
    """A line with its count appended; a count of 1 is not shown."""
    return text if count < 2 else text + WORDS[language].repeat_count.format(count=count)


def increment_repeat_count(text: str) -> str:
    """The question's line with the next count, in the language of the line."""
    core, count = split_repeat_count(text)
    language = EN if core.startswith(WORDS[EN].question_prefix.rstrip()) else ZH
    return with_repeat_count(core, count + 1, language)
