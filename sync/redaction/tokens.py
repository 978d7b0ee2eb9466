"""Tokens by their shape: the literal beginnings of all issuers in one pass, then marks inside longer runs."""

from collections.abc import Iterator
from functools import cache
from typing import Final

from sync.redaction.edges import closes, opens
from sync.redaction.engine import Pattern, quoted
from sync.redaction.issuers import BEGINNINGS, INNER
from sync.redaction.model import Span

_LONGEST: Final = 2_000  # characters of a token that are looked at
_RUN: Final = Pattern(r"[A-Za-z0-9_~.][A-Za-z0-9_\-+/=.~:|%@]{24,}")
_INNER: Final = tuple((shape.mark, shape.kind, Pattern(shape.pattern)) for shape in INNER)


def issued(text: str) -> Iterator[Span]:
    """Tokens that begin as an issuer's tokens do and go on as they must."""
    finder, shapes = _beginnings()
    for groups in finder.every(text):
        start, end = groups[1]
        window = text[start : start + _LONGEST]
        for kind, pattern in shapes[text[start:end]]:
            match = pattern.at_start(window)
            if match and closes(window, match[0][1]):
                yield Span(start, start + match[0][1], kind)
                break


def marked(text: str) -> Iterator[Span]:
    """Tokens that are known by what stands inside them."""
    for (start, end), *_ in _RUN.every(text):
        run = text[start : min(end, start + _LONGEST)]
        for mark, kind, pattern in _INNER:
            if mark not in run:
                continue
            for groups in pattern.every(run):
                first, last = groups[0]
                if opens(text, start + first) and closes(run, last):
                    yield Span(start + first, start + last, kind)


@cache
def _beginnings() -> tuple[Pattern, dict[str, list[tuple[str, Pattern]]]]:
    """The pattern of all beginnings, longest first, and for each the shapes that may stand there."""
    longest_first = sorted(BEGINNINGS, key=lambda shape: -len(shape.beginning))
    patterns = [
        (shape.beginning, shape.kind, Pattern(quoted(shape.beginning) + f"(?:{shape.rest})")) for shape in longest_first
    ]
    literals = list(dict.fromkeys(shape.beginning for shape in longest_first))
    shapes = {
        literal: [(kind, pattern) for beginning, kind, pattern in patterns if literal.startswith(beginning)]
        for literal in literals
    }
    edge = r"(?:\b|_|\\[nrt]|%[0-9A-Fa-f]{2})"
    return Pattern(edge + "(" + "|".join(map(quoted, literals)) + ")"), shapes
