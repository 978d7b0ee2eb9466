"""Frames: what is sent is what is read, and nothing else is."""

import pytest

from sync.lan.protocol import frames
from sync.lan.protocol.frames import ProtocolError


@pytest.mark.parametrize(
    "message",
    [
        frames.Hello(1, "device-a", "书房", "0.2.0"),
        frames.Have("rep_a", {"rep_a": [(1, 3)]}, {"rep_b": [(1, 1), (4, 9)]}, {"rep_a": (3, "evt_3")}),
        frames.Want("rep_a", {"rep_a": [(1, 3)]}),
        frames.Events("rep_a", [{"event_id": "evt_1", "payload": {"text": "字"}}]),
        frames.Sent("rep_a"),
        frames.Ping(),
        frames.Bye("revoked"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_message_comes_back_as_it_was(message: frames.Message) -> None:
    frame = frames.encode(message)
    assert frames.body_length(frame[:4]) == len(frame) - 4
    assert frames.decode(frame[4:]) == message


@pytest.mark.parametrize("header", [b"\0\0\0\0", b"\xff\xff\xff\xff", (8 * 1024 * 1024 + 1).to_bytes(4, "big")])
def test_an_empty_or_oversized_frame_is_refused_by_its_header(header: bytes) -> None:
    with pytest.raises(ProtocolError):
        frames.body_length(header)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"GET / HTTP/1.1",
        b'{"type":"shell"}',
        b'{"type":"want","epoch":"e","numbers":{"rep_a":[[0,3]]}}',
        b'{"type":"want","epoch":"e","numbers":{"rep_a":[[1,9007199254740993]]}}',
        b'{"type":"want","epoch":"e"}',
        b'{"type":"bye","cause":"' + b"x" * 300 + b'"}',
        b"[" * 100_000,
        b'{"type":"ping\xff"}',
    ],
    ids=range(9),
)
def test_what_is_no_message_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        frames.decode(body)


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ProtocolError):
        frames.from_wire_ranges({"rep_a": [(3, 1)]})


def test_ranges_of_a_peer_are_put_in_order() -> None:
    assert frames.from_wire_ranges({"rep_a": [(5, 9), (1, 3), (2, 4)], "rep_b": []}) == {"rep_a": ((1, 9),)}


def test_a_message_that_is_too_large_is_never_sent() -> None:
    with pytest.raises(ValueError, match="fit"):
        frames.encode(frames.Events("e", [{"payload": "x" * frames.MAX_FRAME_BYTES}]))
