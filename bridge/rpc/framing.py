"""Bytes to frames and back, without any input or output of its own.

Decisions that live here
    * Two framings, told apart by the first bytes: a header name means `Content-Length:` headers (language-server
      tooling), anything else means one JSON text per line. The choice holds for the whole connection, both ways.
    * Everything is cut on bytes. A UTF-8 character may arrive in pieces; a frame is decoded only when it is whole.
    * A frame above the bound is answered when the bound is passed and then skipped to its end without being kept, so
      memory is bounded by one frame and one chunk, and the next frame is read as if nothing had happened.
    * After a header that cannot be understood the end of its body is unknown: we look for the next thing that can
      only be a header. Inside a JSON text a line break is always escaped, so `Content-Length: 5` followed by a real
      line break is never part of one.
"""

import enum
import re
from typing import Final

FRAME_LIMIT: Final = 8 * 1024 * 1024  # bytes; 64 KiB events in batches of a hundred fit with room to spare
SEND_LESS_HINT: Final = "Send less at once."
HEADER_LIMIT: Final = 4096  # bytes of one header block; real ones are below 100
MAX_LENGTH_DIGITS: Final = 10  # a longer Content-Length is a typing error, not a size to skip

_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r\n"
_HEADER_START: Final = b"content-"
_BLOCK_END: Final = re.compile(rb"\r?\n\r?\n")
_HEADER_LINE: Final = re.compile(rb"(?i)content-(?:length|type)[ \t]*:[^\r\n\"{}]*\r?\n")
_GLUED: Final = re.compile(rb"(?i)(?<=[}\]])content-length[ \t]*:[ \t]*[0-9]+[ \t]*\r?\n")
_LENGTH: Final = re.compile(rb"(?i)content-length[ \t]*:[ \t]*([0-9]+)[ \t]*")


class Framing(enum.Enum):
    """How the peer marks where a JSON text ends."""

    LINES = "lines"
    HEADERS = "headers"


class FramingError(enum.Enum):
    """Why bytes did not become a frame."""

    TOO_LARGE = "a request is at most 8 MiB"
    BAD_HEADER = "the header block has no usable Content-Length"


Frame = bytes | FramingError


class FrameDecoder:
    """Cuts one direction of a connection into frames. `feed` chunks of any size; `finish` at the end of the stream."""

    __slots__ = ("_body_length", "_buffer", "_bytes_to_skip", "_limit", "_resyncing", "framing")

    def __init__(self, limit: int = FRAME_LIMIT) -> None:
        self.framing: Framing | None = None
        self._limit = limit
        self._buffer = bytearray()
        self._bytes_to_skip = 0  # bytes of an oversized body still to be thrown away
        self._resyncing = False  # an oversized line, or a header that made no sense: looking for the next start
        self._body_length: int | None = None  # length of the body that follows the header just read

    def feed(self, chunk: bytes) -> list[Frame]:
        """Every frame that this chunk completes, in order, faults at their place."""
        if self.framing is None:
            self._buffer += chunk
            if not self._detect_framing():
                return []
            chunk = bytes(self._buffer)
            self._buffer.clear()
        return self._read_lines(chunk) if self.framing is Framing.LINES else self._read_header_frames(chunk)

    def finish(self) -> list[Frame]:
        """What the end of the stream completes: a last line without its newline."""
        rest = bytes(self._buffer).strip(_BLANK)
        self._buffer.clear()
        if not rest or self._resyncing or self._bytes_to_skip:
            return []
        if self.framing is Framing.HEADERS:
            return [] if self._body_length is not None else [FramingError.BAD_HEADER]
        return [rest]

    def _detect_framing(self) -> bool:
        """Decide the framing as soon as the bytes allow it."""
        if self._buffer.startswith(_BOM):
            del self._buffer[: len(_BOM)]
        elif _BOM.startswith(self._buffer):
            return False
        start = bytes(self._buffer.lstrip(_BLANK)[: len(_HEADER_START)]).lower()
        if not start:
            self._buffer.clear()  # blank lines before anything else mean nothing
            return False
        if start == _HEADER_START:
            self.framing = Framing.HEADERS
        elif not _HEADER_START.startswith(start):
            self.framing = Framing.LINES
        return self.framing is not None

    # --- one JSON text per line ---------------------------------------------------------------------------

    def _read_lines(self, chunk: bytes) -> list[Frame]:
        found: list[Frame] = []
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            if not self._buffer and not self._resyncing and len(piece) <= self._limit:
                if line := piece.strip(_BLANK):  # the usual case: a whole line in one chunk, nothing to copy
                    found.append(line)
                continue
            self._append_to_line(piece, found)
            if self._resyncing:
                self._resyncing = False  # the newline ends the oversized line; it has been answered already
                continue
            if line := bytes(self._buffer).strip(_BLANK):
                found.append(line)
            self._buffer.clear()
        self._append_to_line(rest, found)
        return found

    def _append_to_line(self, piece: bytes, frames: list[Frame]) -> None:
        """More of the current line, unless it is, or hereby becomes, oversized."""
        if self._resyncing:
            return
        if len(self._buffer) + len(piece) > self._limit + 1:  # one more for the carriage return of CRLF
            self._buffer.clear()
            self._resyncing = True
            frames.append(FramingError.TOO_LARGE)
            return
        self._buffer += piece

    # --- Content-Length headers ---------------------------------------------------------------------------

    def _read_header_frames(self, chunk: bytes) -> list[Frame]:
        found: list[Frame] = []
        if self._bytes_to_skip:
            skipped = min(self._bytes_to_skip, len(chunk))
            self._bytes_to_skip -= skipped
            chunk = chunk[skipped:]
        self._buffer += chunk
        while (self._buffer or self._body_length == 0) and not self._bytes_to_skip:
            step = self._read_body(found) if self._body_length is not None else self._read_header(found)
            if not step:
                break
        return found

    def _read_body(self, frames: list[Frame]) -> bool:
        length = self._body_length or 0
        if len(self._buffer) < length:
            return False
        frames.append(bytes(self._buffer[:length]))
        del self._buffer[:length]
        self._body_length = None
        return True

    def _read_header(self, frames: list[Frame]) -> bool:
        if not self._find_header():
            return False
        end = _BLOCK_END.search(self._buffer)
        if end is None:
            if len(self._buffer) <= HEADER_LIMIT:
                return False
            self._report_bad_header(len(_HEADER_START), frames)
            return True
        length = content_length(bytes(self._buffer[: end.start()])) if end.start() <= HEADER_LIMIT else None
        if length is None:
            glued = _GLUED.search(self._buffer, 0, end.end())  # a body longer than its header said
            self._report_bad_header(glued.start() if glued else end.end(), frames)
        elif length > self._limit:
            self._skip_oversized_body(length, end.end(), frames)
        else:
            del self._buffer[: end.end()]
            self._body_length = length
        return True

    def _find_header(self) -> bool:
        """Move to the start of the next header; False until there is one."""
        if not self._resyncing:
            if self._buffer[0] in _BLANK:
                self._buffer[:] = self._buffer.lstrip(_BLANK)
            return bool(self._buffer)
        start = _HEADER_LINE.search(self._buffer)
        if start is None:
            del self._buffer[: max(0, len(self._buffer) - HEADER_LIMIT)]
            return False
        del self._buffer[: start.start()]
        self._resyncing = False
        return True

    def _report_bad_header(self, consumed: int, frames: list[Frame]) -> None:
        del self._buffer[:consumed]
        self._resyncing = True
        frames.append(FramingError.BAD_HEADER)

    def _skip_oversized_body(self, length: int, header_length: int, frames: list[Frame]) -> None:
        frames.append(FramingError.TOO_LARGE)
        here = min(len(self._buffer), header_length + length)
        self._bytes_to_skip = length - (here - header_length)
        del self._buffer[:here]


def content_length(block: bytes) -> int | None:
    """The one Content-Length of a header block; None if it is missing, doubled, unreadable, or a line is no header."""
    length: int | None = None
    for line in block.replace(b"\r\n", b"\n").split(b"\n"):
        match = _LENGTH.fullmatch(line)
        if match is None:
            if b":" not in line or line[:15].lower() == b"content-length:":
                return None
            continue
        if length is not None or len(match.group(1)) > MAX_LENGTH_DIGITS:
            return None
        length = int(match.group(1))
    return length


def encode_frame(payload: bytes, framing: Framing | None) -> bytes:
    """One JSON text as the peer wants to receive it."""
    if framing is Framing.HEADERS:
        return b"Content-Length: %d\r\n\r\n%b" % (len(payload), payload)
    return payload + b"\n"
