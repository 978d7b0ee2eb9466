"""The conversations of an export, one after the other, from pieces of its JSON: bounded, however it was packed. Pure.

Decisions
    An export is a list of objects, or an object with such a list under `conversations`. Whatever begins otherwise is
    refused at once.
    A conversation is at most `LARGEST_ITEM` bytes and `MOST_TOKENS` values: what decodes to many times its size is
    refused while it is scanned, before anything is decoded.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from sync.errors import InvalidInput

LARGEST_ITEM: Final = 64 * 1024 * 1024  # bytes of one conversation
MOST_TOKENS: Final = 2_000_000  # strings, brackets and commas of one, or between two
LONGEST_OPENING: Final = 64 * 1024  # bytes before the list

_SCALAR: Final = rb'(?:"(?:[^"\\]|\\.)*+"|[-+.\w]+)'
_OPENING: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*+(?:\[|\{\s*+(?:"(?:[^"\\]|\\.)*+"\s*+:\s*+'
    + _SCALAR
    + rb'\s*+,\s*+)*+"conversations"\s*+:\s*+\[)'
)
_TOKEN: Final = re.compile(rb'["\[\]{},]')
_STRING: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)


class Items:
    """Feed it pieces of JSON; it gives the objects of the list, each as JSON."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._at = self._begins = self._depth = self._tokens = 0
        self._opened = self._in_string = self.closed = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The objects that end in this piece. Raises InvalidInput."""
        self._kept += piece
        if not self._opened and not self._open():
            return
        while not self.closed and self._next_token():
            token = bytes(self._kept[self._at - 1 : self._at])
            if token == b'"':
                self._in_string = True
            elif token in (b"[", b"{"):
                if self._depth == 0:
                    self._begin(token)
                self._depth += 1
            elif token in (b"]", b"}"):
                self.closed = self._depth == 0
                self._depth -= 1
                if self._depth == 0:
                    yield bytes(self._kept[self._begins : self._at])
                    self._tokens = 0
        self._drop()

    def _open(self) -> bool:
        if (found := _OPENING.match(self._kept)) is not None:
            self._at, self._opened = found.end(), True
        elif len(self._kept) > LONGEST_OPENING:
            raise _unknown()
        return self._opened

    def _next_token(self) -> bool:
        """Go behind the next token; False where the piece ends before it does."""
        if self._in_string:
            found = _STRING.match(self._kept, self._at)
            assert found is not None  # it matches nothing as well
            self._at = found.end()
            if self._kept[self._at : self._at + 1] != b'"':  # the end, or a lone backslash there
                return False
            self._at, self._in_string = self._at + 1, False
        if (token := _TOKEN.search(self._kept, self._at)) is None:
            self._at = len(self._kept)
            return False
        self._at, self._tokens = token.end(), self._tokens + 1
        if self._tokens > MOST_TOKENS:
            raise _too_large()
        return True

    def _begin(self, token: bytes) -> None:
        if token != b"{":
            raise _unknown()
        self._begins = self._at - 1

    def _drop(self) -> None:
        """Forget what no open object needs."""
        done = self._begins if self._depth > 0 else self._at
        del self._kept[:done]
        self._at, self._begins = self._at - done, 0
        if len(self._kept) > LARGEST_ITEM:
            raise _too_large()


def items(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The objects of the list in these pieces. Raises InvalidInput, also where the list does not end."""
    found = Items()
    for piece in pieces:
        yield from found.feed(piece)
        if found.closed:
            return
    raise _unknown()


def _unknown() -> InvalidInput:
    return InvalidInput("it is no export that is known here", field="path")


def _too_large() -> InvalidInput:
    return InvalidInput("it holds a conversation that is larger than any export writes", field="path")
