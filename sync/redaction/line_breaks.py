"""One definition of a line: what `str.splitlines` splits. Accepted text has no other break than LF. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final

UNUSUAL_BREAKS: Final = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")


def with_line_feeds(value: Any) -> Any:
    """Return a text, or all texts in a JSON value, in which CRLF is LF and every other break but LF is a space."""
    if isinstance(value, str):
        return UNUSUAL_BREAKS.sub(" ", value.replace("\r\n", "\n").replace("\r", " "))
    if isinstance(value, Mapping):
        return {name: with_line_feeds(item) for name, item in value.items()}
    return [with_line_feeds(item) for item in value] if isinstance(value, list) else value
