"""Remove recalled context from a text, so that it is not indexed again as if it were new. Pure."""

import re
from typing import Final

LINE_PREFIX: Final = "【忆 "  # begins every line of a context, perhaps after quotation marks
_FENCED_BLOCK: Final = re.compile(r"<memory-([0-9a-f]{6,32})>.*?(?:</memory-\1>|\Z)", re.DOTALL)
_RECALLED_LINE: Final = re.compile(rf"^[ \t>*+-]*{re.escape(LINE_PREFIX)}[^\n】]*】.*$\n?", re.MULTILINE)


def strip_recalled_context(text: str) -> str:
    """The text without the lines of a recalled context and without the memory block of a system prompt."""
    if LINE_PREFIX not in text and "<memory-" not in text:
        return text
    return _RECALLED_LINE.sub("", _FENCED_BLOCK.sub("", text)).strip()
