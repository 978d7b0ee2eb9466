"""Where values without quotes end: each character of a text is looked at once, however many names stand before it.

`key=key=key=…` names a value at every fourth character, and each of them goes on to the end of the same run. Where
that run ends depends on nothing before it, so it is found once.
"""

from typing import Final

_TRAILING: Final = ".,;:)]}>*|'\"`\\"
_LEADING: Final = "([|'\"`"


class Runs:
    """The runs of visible ASCII in `text` that values are."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._begin = self._end = 0  # the run that was looked at last
        self._bracket = -1  # its last opening bracket,
        self._bare = self._bracketed = 0  # and its end without what closes the sentence: behind that bracket, before it

    def value(self, at: int) -> tuple[int, int]:
        """Start and end of the value that begins at `at`; they are the same where there is none."""
        if not self._begin <= at < self._end:
            self._look(at)
        end = self._bracketed if at <= self._bracket else self._bare
        return _unopened(self._text, at, max(at, end)), max(at, end)

    def _look(self, at: int) -> None:
        text, end = self._text, at
        while end < len(text) and "!" <= text[end] <= "~" and not _ends(text, end):
            end += 1
        self._begin, self._end = at, end
        self._bracket = text.rfind("(", at, end)
        self._bare = _unclosed(text, at, end, bracketed=False)
        self._bracketed = _unclosed(text, at, end, bracketed=True)


def untrailed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without the punctuation of the sentence or table around it."""
    end = _unclosed(text, start, end, bracketed="(" in text[start:end])
    return _unopened(text, start, end), end


def _unclosed(text: str, start: int, end: int, *, bracketed: bool) -> int:
    while end > start and text[end - 1] in _TRAILING and not (text[end - 1] == ")" and bracketed):
        end -= 1
    return end


def _unopened(text: str, start: int, end: int) -> int:
    while end > start and text[start] in _LEADING:
        start += 1
    return start


def _ends(text: str, at: int) -> bool:
    """Does a new piece of syntax begin at this character of an unquoted value?"""
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
