"""Tokens by their format: the prefixes of all issuers in one pass, then marks inside longer runs.

Behind each prefix at most `_LONGEST` characters are examined, because a prefix may occur at every third character. A
token has no maximal length: a match that reaches the limit is followed to its end. Each character is scanned once.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final

from sync.redaction.model import SecretSpan
from sync.redaction.pattern import Pattern, escape_literal
from sync.redaction.rules.boundaries import may_end, may_start
from sync.redaction.rules.token_formats import MARKED_FORMATS, PREFIXED_FORMATS
from sync.redaction.rules.value_tests import is_sample

_LONGEST: Final = 2_000  # characters examined behind each prefix
_SAMPLE_WINDOW: Final = 200  # characters of a token in which to look for a sample
_STEP: Final = 512  # characters of a longer token scanned at a time
_TOKEN_CHARACTERS: Final = Pattern(r"(?:[A-Za-z0-9_\-+/=.%]|\\/)*")  # JSON may write / as \/
_RUN: Final = Pattern(r"[A-Za-z0-9_~.][A-Za-z0-9_\-+/=.~:|%@]{24,}")
_INNER: Final = tuple((shape.mark, shape.kind, Pattern(shape.pattern)) for shape in MARKED_FORMATS)


def prefixed_tokens(text: str) -> Iterator[SecretSpan]:
    """Tokens with the prefix and the format of an issuer."""
    finder, shapes = _compile_prefixes()
    walked = done = 0
    for groups in finder.find_all(text):
        start, end = groups[1]
        if start < done:
            continue
        edge = min(start + _LONGEST, len(text))
        if start >= walked and edge < len(text):
            walked = _end_of_token(text, start)
            edge = max(edge, walked)
        found = _token_at(text, start, edge, shapes[text[start:end]])
        if found and found.end == edge < len(text):
            done = walked = max(walked, _end_of_token(text, edge))
            found = SecretSpan(start, done, found.kind)
        if found:
            yield found


def _token_at(text: str, start: int, edge: int, formats: list[tuple[str, Pattern]]) -> SecretSpan | None:
    """The token at `start`, up to `edge`."""
    window = text[start:edge]
    for kind, pattern in formats:
        match = pattern.match(window)
        if match and may_end(window, match[0][1]) and not is_sample(window[: match[0][1]][:_SAMPLE_WINDOW]):
            return SecretSpan(start, start + match[0][1], kind)
    return None


def _end_of_token(text: str, at: int) -> int:
    """The end of the token characters from `at` on."""
    while (match := _TOKEN_CHARACTERS.match(text[at : at + _STEP])) and match[0][1]:
        at += match[0][1]
    return at


def marked_tokens(text: str) -> Iterator[SecretSpan]:
    """Tokens with a known mark inside."""
    for (start, end), *_ in _RUN.find_all(text):
        run = text[start:end]
        for mark, kind, pattern in _INNER:
            if mark not in run:
                continue
            for groups in pattern.find_all(run):
                first, last = groups[0]
                if may_start(text, start + first) and may_end(run, last) and not is_sample(run[first:last]):
                    yield SecretSpan(start + first, start + last, kind)


@cache
def _compile_prefixes() -> tuple[Pattern, dict[str, list[tuple[str, Pattern]]]]:
    """The pattern of all prefixes, longest first, and the formats of each."""
    own: dict[str, list[tuple[str, Pattern]]] = {}
    for shape in sorted(PREFIXED_FORMATS, key=lambda shape: -len(shape.prefix)):
        pattern = Pattern(escape_literal(shape.prefix) + f"(?:{shape.rest})")
        own.setdefault(shape.prefix, []).append((shape.kind, pattern))
    literals = list(own)
    shapes = {
        literal: [one for end in range(len(literal), 0, -1) for one in own.get(literal[:end], ())]
        for literal in literals
    }
    edge = r"(?:\b|_|\\[nrt]|%[0-9A-Fa-f]{2})"
    return Pattern(edge + "(" + "|".join(map(escape_literal, literals)) + ")"), shapes
