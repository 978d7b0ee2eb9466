"""The repeat count at the end of a question's line: `（×3）`. It is not part of the line's text."""

import re
from typing import Final

_REPEAT_COUNT: Final = re.compile(r"（×([1-9][0-9]{0,5})）\Z")


def split_repeat_count(text: str) -> tuple[str, int]:
    """A line without its count, and the count; 1 if it has none."""
    match = _REPEAT_COUNT.search(text)
    return (text, 1) if match is None else (text[: match.start()], int(match[1]))


def with_repeat_count(text: str, count: int) -> str:
    """A line with its count appended; a count of 1 is not shown."""
    return text if count < 2 else f"{text}（×{count}）"


def increment_repeat_count(text: str) -> str:
    core, count = split_repeat_count(text)
    return with_repeat_count(core, count + 1)
