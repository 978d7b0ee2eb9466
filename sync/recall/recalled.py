"""Text that recall has handed out, recognised when it comes back: it is never kept as if it were new. Pure."""

import re
from typing import Final

OPEN: Final = "【忆 "  # every line that recall hands out begins with it, after whatever quotes it
_FENCED: Final = re.compile(r"<memory-([0-9a-f]{6,32})>.*?(?:</memory-\1>|\Z)", re.DOTALL)
_LINE: Final = re.compile(rf"^[ \t>*+-]*{re.escape(OPEN)}[^\n】]*】.*$\n?", re.MULTILINE)


def without_recalled(text: str) -> str:
    """The text without what recall, or the block of a system prompt, has put into it."""
    if OPEN not in text and "<memory-" not in text:
        return text
    return _LINE.sub("", _FENCED.sub("", text)).strip()
