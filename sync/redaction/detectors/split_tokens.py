"""Tokens and identity numbers that are split by a line end or by code ("ghp_…" + "…").

The pieces are joined and searched; a match counts if it crosses a joint. The text behind a joint must look like the
rest of a token, because lines also begin with words.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from sync.redaction.detectors.tokens import prefixed_tokens
from sync.redaction.model import IDENTITY, SecretSpan
from sync.redaction.pattern import Pattern
from sync.redaction.rules.boundaries import may_start
from sync.redaction.rules.checksums import is_identity_number
from sync.redaction.rules.value_tests import has_digit, is_made_of_words, is_sample

_PIECE: Final = r"[A-Za-z0-9_\-./+=]"
_JOINT: Final = r"(?:[\"'`][ \t]*(?:[+.&]|\\\n|\.\.)?[ \t]*\n?[ \t]*[\"'`]|[ \t]*\\?\r?\n[ \t>]*)"
_PIECES: Final = Pattern(rf"{_PIECE}{{3,}}(?:{_JOINT}{_PIECE}{{4,}})+")
_BETWEEN: Final = Pattern(_JOINT)
_LONGEST: Final = 4_000  # characters of pieces that are joined


def split_tokens(text: str) -> Iterator[SecretSpan]:
    """Tokens that continue behind a line end or a plus sign, and identity numbers on two lines."""
    if "\n" not in text and '"' not in text and "'" not in text:
        return
    for (start, end), *_ in _PIECES.find_all(text):
        yield from _tokens_across_joints(text, start, min(end, start + _LONGEST))


def _tokens_across_joints(text: str, start: int, end: int) -> Iterator[SecretSpan]:
    """Matches that cross a joint between `start` and `end`."""
    inner = [(start + first, start + last) for (first, last), *_ in _BETWEEN.find_all(text[start:end])]
    pieces = list(zip([start, *(last for _, last in inner)], [*(first for first, _ in inner), end], strict=True))
    for (first, stop), (begin, last) in pairwise(pieces):
        left, right = text[first:stop], text[begin:last]
        if left[-6:].isdecimal() and right[:1].isdecimal():
            yield from _identity_across_joint(text, (first, stop), (begin, last))
        elif _is_token_rest(right):
            for span in prefixed_tokens(left + right):
                if span.start < len(left) < span.end and may_start(text, first + span.start):
                    yield SecretSpan(first + span.start, begin + span.end - len(left), span.kind)


def _identity_across_joint(text: str, left: tuple[int, int], right: tuple[int, int]) -> Iterator[SecretSpan]:
    digits = len(text[slice(*left)]) - len(text[slice(*left)].rstrip("0123456789"))
    rest = text[slice(*right)]
    count = len(rest) - len(rest.lstrip("0123456789Xx"))
    if digits + count == _IDENTITY_LENGTH and is_identity_number(text[left[1] - digits : left[1]] + rest[:count]):
        yield SecretSpan(left[1] - digits, right[0] + count, IDENTITY)


_IDENTITY_LENGTH: Final = 18


def _is_token_rest(piece: str) -> bool:
    return has_digit(piece) and not is_made_of_words(piece) and not is_sample(piece)
