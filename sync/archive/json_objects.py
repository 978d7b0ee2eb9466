"""Scan the objects of a JSON export from pieces, in bounded memory. Pure.

An export is a list of objects, an object with such a list under `conversations`, or objects one after the other.
Another value in the list comes as `null`. A conversation has at most `MAX_OBJECT_BYTES` bytes and `MAX_TOKENS` values;
a larger one is refused before it is decoded.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from sync.errors import InvalidInput

MAX_OBJECT_BYTES: Final = 64 * 1024 * 1024
MAX_TOKENS: Final = 2_000_000  # strings, brackets and commas in an object, or between two
MAX_OPENING_BYTES: Final = 64 * 1024  # before the list

_SCALAR: Final = rb'(?:"(?:[^"\\]|\\.)*+"|[-+.\w]+)'
_OPENING: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*+(?:\[|\{\s*+(?:"(?:[^"\\]|\\.)*+"\s*+:\s*+'
    + _SCALAR
    + rb'\s*+,\s*+)*+"conversations"\s*+:\s*+\[)'
)
_TOKEN: Final = re.compile(rb'["\[\]{},]')
_STRING: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)


class JsonObjectScanner:
    """Takes pieces of JSON and yields the objects of the list, each as JSON."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = self._object_start = self._depth = self._tokens = 0
        self._is_list_open = self._in_string = self._has_scalar = self.is_closed = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the objects that end in this piece. Raises InvalidInput."""
        self._buffer += piece
        if not self._is_list_open and not self._open():
            return
        while not self.is_closed and self._next_token():
            token = bytes(self._buffer[self._at - 1 : self._at])
            if token == b'"':
                self._in_string, self._has_scalar = True, self._has_scalar or self._depth == 0
            elif token in (b"[", b"{"):
                if self._depth == 0:
                    self._object_start = self._at - 1
                self._depth += 1
            elif token in (b"]", b"}"):
                self.is_closed = self._depth == 0
                self._depth -= 1
                if self._depth == 0:
                    yield bytes(self._buffer[self._object_start : self._at])
                    self._tokens = 0
            if self._has_scalar and self._depth <= 0 and token in (b",", b"]"):
                self._has_scalar = False
                yield b"null"
        self._discard_consumed()

    def _open(self) -> bool:
        if (opening := _OPENING.match(self._buffer)) is not None:
            self._at, self._is_list_open = opening.end(), True
        elif len(self._buffer) > MAX_OPENING_BYTES:
            raise _unknown_format()
        return self._is_list_open

    def _next_token(self) -> bool:
        """Advance past the next token; return False if the piece ends first."""
        if self._in_string:
            string = _STRING.match(self._buffer, self._at)
            assert string is not None  # the pattern also matches the empty string
            self._at = string.end()
            if self._buffer[self._at : self._at + 1] != b'"':  # the end of the piece, or a lone backslash
                return False
            self._at, self._in_string = self._at + 1, False
        token = _TOKEN.search(self._buffer, self._at)
        end = len(self._buffer) if token is None else token.start()
        self._has_scalar |= self._depth == 0 and not self._buffer[self._at : end].isspace() and self._at < end
        if token is None:
            self._at = end
            return False
        self._at, self._tokens = token.end(), self._tokens + 1
        if self._tokens > MAX_TOKENS:
            raise _object_too_large()
        return True

    def _discard_consumed(self) -> None:
        """Drop the bytes before the open object."""
        done = self._object_start if self._depth > 0 else self._at
        del self._buffer[:done]
        self._at, self._object_start = self._at - done, 0
        if len(self._buffer) > MAX_OBJECT_BYTES:
            raise _object_too_large()


def scan_objects(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the objects in these pieces. Raises InvalidInput, also if the text is cut off."""
    pieces, head = iter(pieces), b""
    while _OPENING.match(head) is None and len(head) <= MAX_OPENING_BYTES and (piece := next(pieces, b"")):
        head += piece
    start = head.removeprefix(BOM_UTF8).lstrip()
    if _OPENING.match(head) is None and start.startswith(b"{"):  # objects one after the other
        pieces, head = chain(pieces, (b"]",)), b"[" + start
    scanner = JsonObjectScanner()
    for piece in chain((head,), pieces):
        yield from scanner.feed(piece)
        if scanner.is_closed:
            return
    raise _unknown_format()


def _unknown_format() -> InvalidInput:
    return InvalidInput("it is no export that is known here", field="path")


def _object_too_large() -> InvalidInput:
    return InvalidInput("it holds a conversation that is larger than any export writes", field="path")
