r"""Patterns in google-re2, whose time is linear in the text for any pattern, so that no text can stall a capture.

`\b` and `\w` are ASCII, so a Chinese neighbour is a word boundary, as the rules need it. There is no look-around;
detectors check the neighbours of a match in Python. Patterns are compiled, and the library imported, at the first use.
Matching runs on bytes: on a str, the library counts characters again for every group.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final

from sync.errors import SettingsError

Groups = tuple[tuple[int, int], ...]
_UNUSED: Final = (-1, -1)  # the span of a group that took no part


class Pattern:
    """One RE2 pattern over text; `(?i)` and the like are written inside it.

    One that holds values of the user is not cached, for the cache outlives them.
    """

    def __init__(self, source: str, *, is_cached: bool = True) -> None:
        self.source = source
        self._compile = compile_pattern if is_cached else compile_pattern.__wrapped__

    def __repr__(self) -> str:
        return f"Pattern({self.source!r})"

    @cached_property
    def _compiled(self) -> Any:
        return self._compile(self.source)

    @cached_property
    def _may_be_empty(self) -> bool:
        return self._compiled.fullmatch(b"") is not None

    def find_all(self, text: str) -> Iterator[Groups]:
        """The spans of each match: the whole first, then its groups ((-1, -1) if unused)."""
        if text.isascii():
            for match in self._compiled.finditer(text.encode()):
                yield tuple(match._spans)  # noqa: SLF001 - one tuple instead of a call per group
        elif self._may_be_empty:  # an empty match could split a character
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
        """The match at the beginning of `text`, or None."""
        data = text.encode()
        match = self._compiled.match(data)
        return None if match is None else _byte_spans_to_characters(match._spans, data, 0)  # noqa: SLF001 - as above

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in `text`."""
        return self._compiled.search(text.encode()) is not None

    def fullmatch(self, text: str) -> bool:
        """Whether the pattern matches all of `text`."""
        return self._compiled.fullmatch(text.encode()) is not None


def _byte_spans_to_characters(spans: Sequence[tuple[int, int]], data: bytes, characters: int) -> Groups:
    """Convert the spans of one match from bytes to characters. `characters`: how many precede the match."""
    begin, end = spans[0]
    if data[begin:end].isascii():
        ahead = begin - characters
        return tuple([(first - ahead, last - ahead) if first >= 0 else _UNUSED for first, last in spans])

    def counted(place: int) -> int:
        return characters + len(data[begin:place].decode())

    return tuple([(counted(first), counted(last)) if first >= 0 else _UNUSED for first, last in spans])


@lru_cache(maxsize=1024)
def compile_pattern(source: str) -> Any:
    import re2  # noqa: PLC0415 - 5 ms

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 32 << 20
    return re2.compile(source, options)


def _compile_errors() -> tuple[type[Exception], ...]:
    import re2  # noqa: PLC0415 - as above

    return re2.error, TypeError, UnicodeError


def parse_user_pattern(source: str) -> Pattern:
    """A pattern from the settings, compiled at once.

    Raises SettingsError with the pattern in it: it is a setting, not text of the memory.
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
    """Escape a literal for RE2."""
    return "".join(char if not char.isascii() or char.isalnum() or char in "_-/ " else "\\" + char for char in literal)
