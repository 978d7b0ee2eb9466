"""Tokens by their shape: the literal beginnings of all issuers in one pass, then marks inside longer runs.

A token has no greatest length: one with many claims in it is several thousand characters. What stands at a beginning
is looked at as far as `_LONGEST`, because there may be a beginning at every third character; where the characters of
a token go on without a break, the first beginning of theirs is looked at to their end, and what matched up to the
edge of what was looked at is followed there. Each character is walked over once, whatever the text.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final

from sync.redaction.edges import closes, opens
from sync.redaction.engine import Pattern, quoted
from sync.redaction.issuers import BEGINNINGS, INNER
from sync.redaction.model import Span
from sync.redaction.values import is_sample

_LONGEST: Final = 2_000  # characters behind each beginning that are looked at
_SAMPLED: Final = 200  # characters of a token in which a sample says that it is one
_STEP: Final = 512  # characters of a longer token that are walked over at a time
_ON: Final = Pattern(r"(?:[A-Za-z0-9_\-+/=.%]|\\/)*")  # how a token goes on; JSON may write / as \/
_RUN: Final = Pattern(r"[A-Za-z0-9_~.][A-Za-z0-9_\-+/=.~:|%@]{24,}")
_INNER: Final = tuple((shape.mark, shape.kind, Pattern(shape.pattern)) for shape in INNER)


def issued(text: str) -> Iterator[Span]:
    """Tokens that begin as an issuer's tokens do and go on as they must."""
    finder, shapes = _beginnings()
    walked = done = 0
    for groups in finder.every(text):
        start, end = groups[1]
        if start < done:
            continue
        edge = min(start + _LONGEST, len(text))
        if start >= walked and edge < len(text):
            walked = _run_end(text, start)
            edge = max(edge, walked)
        found = _issued(text, start, edge, shapes[text[start:end]])
        if found and found.end == edge < len(text):
            done = walked = max(walked, _run_end(text, edge))
            found = Span(start, done, found.kind)
        if found:
            yield found


def _issued(text: str, start: int, edge: int, shapes: list[tuple[str, Pattern]]) -> Span | None:
    """The token that begins at `start`, as far as `edge`."""
    window = text[start:edge]
    for kind, pattern in shapes:
        match = pattern.at_start(window)
        if match and closes(window, match[0][1]) and not is_sample(window[: match[0][1]][:_SAMPLED]):
            return Span(start, start + match[0][1], kind)
    return None


def _run_end(text: str, at: int) -> int:
    """Where the characters that a token is made of stop, from `at` on."""
    while (match := _ON.at_start(text[at : at + _STEP])) and match[0][1]:
        at += match[0][1]
    return at


def marked(text: str) -> Iterator[Span]:
    """Tokens that are known by what stands inside them."""
    for (start, end), *_ in _RUN.every(text):
        run = text[start:end]
        for mark, kind, pattern in _INNER:
            if mark not in run:
                continue
            for groups in pattern.every(run):
                first, last = groups[0]
                if opens(text, start + first) and closes(run, last) and not is_sample(run[first:last]):
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
