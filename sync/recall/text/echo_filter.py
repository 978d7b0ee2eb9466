"""Remove recalled context from a text, so that it is not indexed again as if it were new. Pure."""

import re
from typing import Final

from sync.texts.language import EN, ZH

LINE_PREFIXES: Final = {ZH: "【忆 ", EN: "【memory "}  # begin every line of a context, perhaps after quotation marks
LINE_MARK: Final = rf"(?:{'|'.join(re.escape(prefix) for prefix in LINE_PREFIXES.values())})"
_FENCED_BLOCK: Final = re.compile(r"<memory-([0-9a-f]{6,32})>.*?(?:</memory-\1>|\Z)", re.DOTALL)
_RECALLED_LINE: Final = re.compile(rf"^[ \t>*+-]*{LINE_MARK}[^\n】]*】.*$\n?", re.MULTILINE)


def strip_recalled_context(text: str) -> str:
    """The text without the lines of a recalled context and without the memory block of a system prompt."""
    if "<memory-" not in text and not any(prefix in text for prefix in LINE_PREFIXES.values()):
        return text
    return _RECALLED_LINE.sub("", _FENCED_BLOCK.sub("", text)).strip()
