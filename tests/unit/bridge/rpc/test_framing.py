"""Cutting bytes into frames."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.rpc.framing import HEADER_LIMIT, Frame, FrameDecoder, Framing, FramingError, content_length, encode_frame

LIMIT = 100


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """Pieces of the given sizes, over and over, until the data is used up."""
    pieces: list[bytes] = []
    while data:
        for size in sizes or [1]:
            pieces.append(data[:size])
            data = data[size:]
    return pieces


def frames_of(data: bytes, sizes: list[int] | None = None, limit: int = LIMIT) -> list[Frame]:
    frames = FrameDecoder(limit)
    found = [frame for piece in cut(data, sizes or [len(data) or 1]) for frame in frames.feed(piece)]
    return found + frames.finish()


def header(body: bytes) -> bytes:
    return encode_frame(body, Framing.HEADERS)


@pytest.mark.parametrize("sizes", [[1], [2], [3, 1], [7], [1000]])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}\r\n{"b":2}\r\n', [b'{"a":1}', b'{"b":2}']),
        (b'\n\r\n  {"a":1}\n\n\n[2]\n', [b'{"a":1}', b"[2]"]),
        (b'\xef\xbb\xbf{"a":1}\n', [b'{"a":1}']),
        (b'{"a":1}\n{"last":1}', [b'{"a":1}', b'{"last":1}']),
        ('{"字":"记忆😀"}\n'.encode(), ['{"字":"记忆😀"}'.encode()]),
        (b"content\n[1]\n", [b"content", b"[1]"]),
        (header(b"[1]") + header(b"[22]"), [b"[1]", b"[22]"]),
        (b"content-length:3\r\n\r\n[1]", [b"[1]"]),
        (b"Content-Type: application/json; charset=utf-8\r\nContent-Length: 3\r\n\r\n[1]", [b"[1]"]),
        (b"Content-Length: 3\n\n[1]", [b"[1]"]),
        (b"\r\n" + header(b"[1]") + b"\r\n" + header(b"[2]"), [b"[1]", b"[2]"]),
        (header("记忆".encode()), ["记忆".encode()]),
        (header(b"") + header(b"[1]"), [b"", b"[1]"]),
        (b"", []),
        (b"\n \n", []),
    ],
)
def test_frames_are_the_same_however_the_bytes_arrive(data: bytes, expected: list[Frame], sizes: list[int]) -> None:
    assert frames_of(data, sizes) == expected


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=30)), st.lists(st.integers(1, 9))
)
def test_lines_survive_any_cut(lines: list[str], sizes: list[int]) -> None:
    wire = b"[]\n" + b"".join(line.encode() + b"\n" for line in lines)
    expected = [b"[]", *(stripped for line in lines if (stripped := line.encode().strip(b" \t\r\n")))]
    assert frames_of(wire, sizes, limit=1000) == expected


@given(st.lists(st.binary(max_size=60)), st.lists(st.integers(1, 9)))
def test_bodies_with_headers_survive_any_cut(bodies: list[bytes], sizes: list[int]) -> None:
    assert frames_of(b"".join(map(header, bodies)), sizes) == bodies


@pytest.mark.parametrize("sizes", [[1], [3], [64], [1000]])
def test_an_oversized_line_is_one_fault_and_the_next_line_is_read(sizes: list[int]) -> None:
    assert frames_of(b"[0]\n" + b"x" * 500 + b"\n[1]\n", sizes) == [b"[0]", FramingError.TOO_LARGE, b"[1]"]


@pytest.mark.parametrize("sizes", [[1], [3], [64], [1000]])
def test_an_oversized_body_is_one_fault_and_the_next_body_is_read(sizes: list[int]) -> None:
    assert frames_of(header(b"x" * 500) + header(b"[1]"), sizes) == [FramingError.TOO_LARGE, b"[1]"]


def test_a_line_of_exactly_the_bound_is_accepted_also_with_a_carriage_return() -> None:
    assert frames_of(b"x" * LIMIT + b"\r\n" + b"y" * LIMIT + b"\n") == [b"x" * LIMIT, b"y" * LIMIT]


def test_the_oversized_line_is_answered_before_its_end_has_come() -> None:
    frames = FrameDecoder(LIMIT)
    assert frames.feed(b"[" + b"x" * 500) == [FramingError.TOO_LARGE]
    assert frames.feed(b"x" * 500) == []
    assert frames.finish() == []


def test_memory_stays_bounded_while_an_endless_frame_is_skipped() -> None:
    for start in (b"[", b"Content-Length: 9999999999\r\n\r\n", b"Content-Length: no\r\n\r\n"):
        frames = FrameDecoder(64 * 1024)
        chunk = b"x" * 4096
        frames.feed(start)
        tracemalloc.start()
        for _ in range(5000):
            frames.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 512 * 1024


@pytest.mark.parametrize("sizes", [[1], [5], [1000]])
@pytest.mark.parametrize(
    "broken",
    [
        b"Content-Length: abc\r\n\r\n{}",
        b"Content-Length: -5\r\n\r\n{}",
        b"Content-Length: 99999999999999\r\n\r\n{}",
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Type: text/plain\r\n\r\n{}",
        b"Content-Length 2\r\n\r\n{}",
        b"Content-" + b"x" * (2 * HEADER_LIMIT),
    ],
)
def test_a_broken_header_is_answered_and_the_next_frame_is_found(broken: bytes, sizes: list[int]) -> None:
    assert frames_of(header(b"[0]") + broken + header(b"[1]"), sizes) == [b"[0]", FramingError.BAD_HEADER, b"[1]"]


def test_a_body_longer_than_its_header_said_costs_no_other_frame() -> None:
    wire = b'Content-Length: 5\r\n\r\n{"a":1,"b":2}' + header(b"[1]")
    assert frames_of(wire) == [b'{"a":', FramingError.BAD_HEADER, b"[1]"]


@given(st.binary(max_size=300), st.lists(st.integers(1, 50)))
def test_any_bytes_are_cut_without_an_exception_and_the_same_whatever_the_chunks(data: bytes, sizes: list[int]) -> None:
    whole = frames_of(data)
    assert all(isinstance(frame, FramingError) or len(frame) <= LIMIT for frame in whole)
    if FramingError.BAD_HEADER not in whole:
        assert frames_of(data, sizes) == whole


@pytest.mark.parametrize(
    ("block", "length"),
    [
        (b"Content-Length: 12", 12),
        (b"CONTENT-LENGTH:12 ", 12),
        (b"X-Other: 1\r\nContent-Length: 12", 12),
        (b"Content-Length: ", None),
        (b"Content-Length: 1 2", None),
        (b"Content-Length: +1", None),
        ("Content-Length: １".encode(), None),
        (b"nonsense", None),
    ],
)
def test_the_length_is_read_strictly(block: bytes, length: int | None) -> None:
    assert content_length(block) == length


def test_answers_take_the_framing_of_the_peer() -> None:
    assert encode_frame("记".encode(), Framing.HEADERS) == "Content-Length: 3\r\n\r\n记".encode()
    assert encode_frame(b"{}", Framing.LINES) == b"{}\n"
    assert encode_frame(b"{}", None) == b"{}\n"
