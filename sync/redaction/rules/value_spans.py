"""Where unquoted values end. Each character is scanned once, however many names precede it.

In `key=key=key=…` every fourth character begins a value, and all of them end at the end of the same run.
"""

from typing import Final

_TRAILING: Final = ".,;:)]}>*|'\"`\\"
_LEADING: Final = "([|'\"`"


class ValueSpans:
    """Finds unquoted values: runs of visible ASCII and letters in `text`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._begin = self._end = 0  # the last run that was scanned
        self._bracket = -1  # its last opening bracket
        self._end_without_bracket = self._end_with_bracket = 0  # without trailing punctuation: after and up to it

    def span_at(self, at: int) -> tuple[int, int]:
        """Start and end of the value at `at`; they are equal if there is none."""
        if not self._begin <= at < self._end:
            self._scan(at)
        end = self._end_with_bracket if at <= self._bracket else self._end_without_bracket
        return _strip_leading(self._text, at, max(at, end)), max(at, end)

    def _scan(self, at: int) -> None:
        text, end = self._text, at
        while end < len(text) and _is_visible(text[end]) and not _ends_value(text, end):
            end += 1
        self._begin, self._end = at, end
        self._bracket = text.rfind("(", at, end)
        self._end_without_bracket = _strip_trailing(text, at, end, bracketed=False)
        self._end_with_bracket = _strip_trailing(text, at, end, bracketed=True)


def _is_visible(char: str) -> bool:
    """Whether a character is visible ASCII or a letter of another alphabet: Chinese has no blanks between words."""
    return "!" <= char <= "~" or ("~" < char < _FIRST_CJK and char.isalpha())


_FIRST_CJK: Final = "\u2e80"


def strip_punctuation(text: str, start: int, end: int) -> tuple[int, int]:
    """Strip the punctuation of the surrounding sentence or table."""
    end = _strip_trailing(text, start, end, bracketed="(" in text[start:end])
    return _strip_leading(text, start, end), end


def _strip_trailing(text: str, start: int, end: int, *, bracketed: bool) -> int:
    while end > start and text[end - 1] in _TRAILING and not (text[end - 1] == ")" and bracketed):
        end -= 1
    return end


def _strip_leading(text: str, start: int, end: int) -> int:
    while end > start and text[start] in _LEADING:
        start += 1
    return start


def _ends_value(text: str, at: int) -> bool:
    """Whether an unquoted value ends at this character."""
    char, rest = text[at], text[at + 1 : at + 40]
    if char in "\"'`<":
        return True
    if char == "\\":
        return rest[:1] in ("n", "r", "t", '"')
    if char in ",;&":
        key = rest.lstrip(" \"'").partition("=")[0].partition(":")[0]
        return (
            not rest
            or rest[0] in " \n"
            or (key != rest.lstrip(" \"'") and key.replace("_", "").rstrip("\"' ").isalnum())
        )
    return False
