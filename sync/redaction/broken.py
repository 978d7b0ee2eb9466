"""Tokens and identity numbers in pieces: broken by the end of a line, or joined by a program ("ghp_…" + "…").

The pieces are put together and read as one; a find counts if it goes over a joint. Whatever is behind a joint has to
look like the rest of a token, because words stand at the beginnings of lines too.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from sync.redaction.checksums import is_identity
from sync.redaction.edges import opens
from sync.redaction.engine import Pattern
from sync.redaction.model import IDENTITY, Span
from sync.redaction.tokens import issued
from sync.redaction.values import has_digit, is_sample, is_wordy

_PIECE: Final = r"[A-Za-z0-9_\-./+=]"
_JOINT: Final = r"(?:[\"'`][ \t]*(?:[+.&]|\\\n|\.\.)?[ \t]*\n?[ \t]*[\"'`]|[ \t]*\\?\r?\n[ \t>]*)"
_PIECES: Final = Pattern(rf"{_PIECE}{{3,}}(?:{_JOINT}{_PIECE}{{4,}})+")
_BETWEEN: Final = Pattern(_JOINT)
_LONGEST: Final = 4_000  # characters of a piece chain that are read together


def broken(text: str) -> Iterator[Span]:
    """Tokens that go on behind a line end or a plus sign, and identity numbers that go on in the next line."""
    if "\n" not in text and '"' not in text and "'" not in text:
        return
    for (start, end), *_ in _PIECES.every(text):
        yield from _joined(text, start, min(end, start + _LONGEST))


def _joined(text: str, start: int, end: int) -> Iterator[Span]:
    """Finds that go over a joint between `start` and `end`."""
    inner = [(start + first, start + last) for (first, last), *_ in _BETWEEN.every(text[start:end])]
    pieces = list(zip([start, *(last for _, last in inner)], [*(first for first, _ in inner), end], strict=True))
    for (first, stop), (begin, last) in pairwise(pieces):
        left, right = text[first:stop], text[begin:last]
        if left[-6:].isdecimal() and right[:1].isdecimal():
            yield from _identity(text, (first, stop), (begin, last))
        elif _is_rest(right):
            for span in issued(left + right):
                if span.start < len(left) < span.end and opens(text, first + span.start):
                    yield Span(first + span.start, begin + span.end - len(left), span.kind)


def _identity(text: str, left: tuple[int, int], right: tuple[int, int]) -> Iterator[Span]:
    digits = len(text[slice(*left)]) - len(text[slice(*left)].rstrip("0123456789"))
    rest = text[slice(*right)]
    count = len(rest) - len(rest.lstrip("0123456789Xx"))
    if digits + count == _IDENTITY_LENGTH and is_identity(text[left[1] - digits : left[1]] + rest[:count]):
        yield Span(left[1] - digits, right[0] + count, IDENTITY)


_IDENTITY_LENGTH: Final = 18


def _is_rest(piece: str) -> bool:
    return has_digit(piece) and not is_wordy(piece) and not is_sample(piece)
