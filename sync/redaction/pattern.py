r"""Patterns in google-re2: linear in the text whatever the pattern, so that no text can stall a capture.

Two properties of RE2 carry the rules of this package. `\b` and `\w` are ASCII by definition, hence a Chinese
neighbour *is* a word boundary, which is what a token in 我的密钥是… needs. And there is no look-around: what stands
beside a match is looked at in Python, in constant time.

Compiling is lazy: a rule that never comes near its text costs nothing, and the library (some 5 ms) is imported by
the first one that does.

The library reads bytes; given a str, it counts the characters up to each end of each group anew. Here it is given the
bytes, and what is ASCII, which most matches are, is not counted: a text full of secrets takes a fifth less.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final

from sync.errors import SettingsError

Groups = tuple[tuple[int, int], ...]
_UNUSED: Final = (-1, -1)  # the span of a group that took no part


class Pattern:
    """One RE2 pattern over text; `(?i)` and the like are written inside it."""

    def __init__(self, source: str) -> None:
        self.source = source

    def __repr__(self) -> str:
        return f"Pattern({self.source!r})"

    @cached_property
    def _compiled(self) -> Any:
        return compile_pattern(self.source)

    @cached_property
    def _may_be_empty(self) -> bool:
        return self._compiled.fullmatch(b"") is not None

    def find_all(self, text: str) -> Iterator[Groups]:
        """Spans of each match from left to right: the whole first, then its groups ((-1, -1) when unused)."""
        if text.isascii():
            for match in self._compiled.finditer(text.encode()):
                yield tuple(match._spans)  # noqa: SLF001 - one tuple instead of a call per group
        elif self._may_be_empty:  # between bytes it could be anywhere
            for match in self._compiled.finditer(text):
                yield tuple(match._spans)  # noqa: SLF001 - as above
        else:
            data, at, characters = text.encode(), 0, 0
            for match in self._compiled.finditer(data):
                spans = match._spans  # noqa: SLF001 - as above
                begin = spans[0][0]
                characters += len(data[at:begin].decode())
                at = begin
                yield _byte_spans_to_characters(spans, data, characters)

    def match(self, text: str) -> Groups | None:
        """The match at the very beginning of `text`, or None."""
        data = text.encode()
        match = self._compiled.match(data)
        return None if match is None else _byte_spans_to_characters(match._spans, data, 0)  # noqa: SLF001 - as above

    def search(self, text: str) -> bool:
        """Does the pattern match anywhere in `text`?"""
        return self._compiled.search(text.encode()) is not None

    def fullmatch(self, text: str) -> bool:
        """Does the pattern describe all of `text`?"""
        return self._compiled.fullmatch(text.encode()) is not None


def _byte_spans_to_characters(spans: Sequence[tuple[int, int]], data: bytes, characters: int) -> Groups:
    """The spans of one match, from bytes to characters; the match begins behind so many of them."""
    begin, end = spans[0]
    if data[begin:end].isascii():
        ahead = begin - characters
        return tuple([(first - ahead, last - ahead) if first >= 0 else _UNUSED for first, last in spans])

    def counted(place: int) -> int:
        return characters + len(data[begin:place].decode())

    return tuple([(counted(first), counted(last)) if first >= 0 else _UNUSED for first, last in spans])


@lru_cache(maxsize=1024)
def compile_pattern(source: str) -> Any:
    import re2  # noqa: PLC0415 - not before the first text needs it

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 32 << 20
    return re2.compile(source, options)


def _compile_errors() -> tuple[type[Exception], ...]:
    import re2  # noqa: PLC0415 - as above

    return re2.error, TypeError, UnicodeError


def parse_user_pattern(source: str) -> Pattern:
    """A pattern from the configuration file, compiled at once so that a bad one is known at start.

    Raises SettingsError that shows the pattern: it is the user's own setting, not text of the memory.
    """
    try:
        compile_pattern(source)
    except _compile_errors() as error:
        raise SettingsError(
            f"redaction.patterns: {source!r} is not a pattern of google-re2 ({type(error).__name__}: {error})",
            hint="RE2 knows no look-around and no back references; see github.com/google/re2/wiki/Syntax.",
        ) from None
    return Pattern(source)


def escape_literal(literal: str) -> str:
    """The pattern that matches `literal` and nothing else."""
    return "".join(char if char.isalnum() or char in "_-/ " else "\\" + char for char in literal)
