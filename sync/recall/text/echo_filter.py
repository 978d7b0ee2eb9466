"""Text that recall has handed out, recognised when it comes back: it is never kept as if it were new. Pure."""

import re
from typing import Final

LINE_PREFIX: Final = "【忆 "  # every line that recall hands out begins with it, after whatever quotes it
_FENCED_BLOCK: Final = re.compile(r"<memory-([0-9a-f]{6,32})>.*?(?:</memory-\1>|\Z)", re.DOTALL)
_RECALLED_LINE: Final = re.compile(rf"^[ \t>*+-]*{re.escape(LINE_PREFIX)}[^\n】]*】.*$\n?", re.MULTILINE)


def strip_recalled_context(text: str) -> str:
    """The text without what recall, or the block of a system prompt, has put into it."""
    if LINE_PREFIX not in text and "<memory-" not in text:
        return text
    return _RECALLED_LINE.sub("", _FENCED_BLOCK.sub("", text)).strip()
